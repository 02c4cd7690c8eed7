// SPDX-License-Identifier: Apache-2.0
// The Blackwell kernel with row replicas at head dimension 128, on the emulator's machine.
#include "emulator/blackwell_variant.h"

namespace deuce::emulator {

std::vector<BlackwellVariant> blackwell_variants_128_replicas() {
  return replicated_variants<128>();
}

}  // namespace deuce::emulator
