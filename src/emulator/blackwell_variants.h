// SPDX-License-Identifier: Apache-2.0
// The compiled Blackwell configurations of the emulator, in a few files so that they build side by
// side. Rows: score slots 1, 2, 3, row replicas 1, 2, 4 and both 16-bit types, two that do not
// rely on the order of the tensor pipe, and for explorations those with a K/V ring of 2 to 6 tiles.
#pragma once

#include <vector>

#include "emulator/launch.h"
#include "kernel/blackwell/config.h"
#include "kernel/blackwell/params.h"

namespace deuce::emulator {

struct BlackwellVariant {
  blackwell::Config config;
  KernelSpec spec;
  void (*run)(Machine&, const blackwell::Params&);
};

std::vector<BlackwellVariant> blackwell_variants_64();
std::vector<BlackwellVariant> blackwell_variants_128();
std::vector<BlackwellVariant> blackwell_variants_64_replicas();
std::vector<BlackwellVariant> blackwell_variants_128_replicas();
std::vector<BlackwellVariant> blackwell_variants_rings();
std::vector<BlackwellVariant> blackwell_variants_rings_replicas();

inline constexpr int kFewestTiles = 2, kMostTiles = 6;  // of the rings explored

}  // namespace deuce::emulator
