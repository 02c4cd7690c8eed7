// SPDX-License-Identifier: Apache-2.0
// The Hopper kernels of head dimension 64 with fixed borders, instantiated on the emulator's
// machine.
#include "emulator/hopper_variant.h"

namespace deuce::emulator {

std::vector<HopperVariant> hopper_variants_64_fixed() { return hopper_variants<64, true>(); }

}  // namespace deuce::emulator
