// SPDX-License-Identifier: Apache-2.0
// The Blackwell kernel with row replicas at head dimension 64, on the emulator's machine.
#include "emulator/blackwell_variant.h"

namespace deuce::emulator {

std::vector<BlackwellVariant> blackwell_variants_64_replicas() {
  std::vector<BlackwellVariant> list = replicated_variants<64>();
  add_strict_order<2>(list);
  add_strict_order<4>(list);
  return list;
}

}  // namespace deuce::emulator
