// SPDX-License-Identifier: Apache-2.0
// The compiled Blackwell configurations of the emulator, one file per head dimension so that they
// build side by side. Rows: score slots 1, 2, 3 and both 16-bit types, and two that do not rely on
// the order of the tensor pipe.
#pragma once

#include <vector>

#include "emulator/launch.h"
#include "kernel/blackwell/params.h"

namespace deuce::emulator {

struct BlackwellVariant {
  int head_dim, score_slots;
  bool bf16, strict_order;
  KernelSpec spec;
  void (*run)(Machine&, const blackwell::Params&);
};

std::vector<BlackwellVariant> blackwell_variants_64();
std::vector<BlackwellVariant> blackwell_variants_128();

}  // namespace deuce::emulator
