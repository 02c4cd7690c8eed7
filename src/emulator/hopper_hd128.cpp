// SPDX-License-Identifier: Apache-2.0
// The Hopper kernels of head dimension 128, instantiated on the emulator's machine.
#include "emulator/hopper_variant.h"

namespace deuce::emulator {

std::vector<HopperVariant> hopper_variants_128() { return hopper_variants<128, false>(); }

}  // namespace deuce::emulator
