// SPDX-License-Identifier: Apache-2.0
// The Blackwell kernel with K/V rings of 2 to 6 tiles, for explorations: small rings wrap within
// few blocks of keys.
#include <utility>

#include "emulator/blackwell_variant.h"

namespace deuce::emulator {
namespace {

using blackwell::Config;

template <int kSlots, int... kMore>
void add_rings(std::vector<BlackwellVariant>& list, std::integer_sequence<int, kMore...>) {
  (list.push_back(blackwell_variant<Config{
                      .head_dim = 64, .score_slots = kSlots, .kv_slots = kFewestTiles + kMore}>()),
   ...);
}

}  // namespace

std::vector<BlackwellVariant> blackwell_variants_rings() {
  using Rings = std::make_integer_sequence<int, kMostTiles - kFewestTiles + 1>;
  std::vector<BlackwellVariant> list;
  add_rings<1>(list, Rings{});
  add_rings<2>(list, Rings{});
  add_rings<3>(list, Rings{});
  return list;
}

}  // namespace deuce::emulator
