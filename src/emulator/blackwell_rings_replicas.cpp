// SPDX-License-Identifier: Apache-2.0
// The Blackwell kernel with row replicas and K/V rings of 2 to 6 tiles, for explorations.
#include "emulator/blackwell_variant.h"

namespace deuce::emulator {

std::vector<BlackwellVariant> blackwell_variants_rings_replicas() {
  std::vector<BlackwellVariant> list = ring_variants<2>();
  for (BlackwellVariant& variant : ring_variants<4>()) list.push_back(std::move(variant));
  return list;
}

}  // namespace deuce::emulator
