// SPDX-License-Identifier: Apache-2.0
// The Blackwell kernel with row replicas at head dimension 64, on the emulator's machine.
#include "emulator/blackwell_variant.h"

namespace deuce::emulator {
namespace {

template <bool kBf16, int kReplicas>
void add_slots(std::vector<BlackwellVariant>& list) {
  [&]<int... kSlots>(std::integer_sequence<int, kSlots...>) {
    (list.push_back(blackwell_variant<blackwell::Config{.head_dim = 64,
                                                        .score_slots = kSlots + 1,
                                                        .bf16 = kBf16,
                                                        .row_replicas = kReplicas}>()),
     ...);
  }
  (std::make_integer_sequence<int, 3>{});
}

}  // namespace

std::vector<BlackwellVariant> blackwell_variants_64_replicas() {
  std::vector<BlackwellVariant> list;
  add_slots<true, 2>(list);
  add_slots<true, 4>(list);
  add_slots<false, 2>(list);
  add_slots<false, 4>(list);
  return list;
}

}  // namespace deuce::emulator
