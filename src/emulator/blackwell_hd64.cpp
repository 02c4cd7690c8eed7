// SPDX-License-Identifier: Apache-2.0
// The Blackwell kernel at head dimension 64, instantiated on the emulator's machine.
#include "emulator/blackwell_variant.h"

namespace deuce::emulator {

std::vector<BlackwellVariant> blackwell_variants_64() {
  using blackwell::Config;
  std::vector<BlackwellVariant> list{
      blackwell_variant<Config{.head_dim = 64, .score_slots = 1, .bf16 = true}>(),
      blackwell_variant<Config{.head_dim = 64, .score_slots = 2, .bf16 = true}>(),
      blackwell_variant<Config{.head_dim = 64, .score_slots = 3, .bf16 = true}>(),
      blackwell_variant<Config{.head_dim = 64, .score_slots = 1, .bf16 = false}>(),
      blackwell_variant<Config{.head_dim = 64, .score_slots = 2, .bf16 = false}>(),
      blackwell_variant<Config{.head_dim = 64, .score_slots = 3, .bf16 = false}>(),
  };
  add_strict_order<1>(list);
  return list;
}

}  // namespace deuce::emulator
