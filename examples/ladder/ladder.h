// SPDX-License-Identifier: Apache-2.0
// The problem that every step of the ladder solves, and what runs and judges a step: 128 query rows
// that share one head of 768 keys, head dimension 64, bf16. Each step is a kernel on the emulator.
#pragma once

#include <array>
#include <functional>

#include "emulator/machine.h"
#include "kernel/numbers.h"

namespace deuce::ladder {

using emulator::Machine;

inline constexpr int kRows = 128, kDim = 64;
inline constexpr int kTileKeys = 128, kTiles = 6, kKeys = kTileKeys * kTiles;
inline constexpr float kScaleLog2 = 0.125F * 1.44269504F;  // 1 / sqrt(64), exponents of two

struct Inputs {
  const Bf16 *q, *k, *v;          // [row][dim], [key][dim], [key][dim]
  float* out;                     // [row][dim]
  TensorMap q_map, k_map, v_map;  // boxes of 128 rows x 64 columns, 128-byte swizzled
};

/// Two bf16 numbers of a 32-bit word.
inline Float2 pair(uint32_t word) {
  return {to_float(Bf16{static_cast<uint16_t>(word)}),
          to_float(Bf16{static_cast<uint16_t>(word >> 16)})};
}

using Row = std::array<float, kDim>;

/// A row of Q, K or V by one thread, from global memory.
inline Row load_row(Machine& machine, const Bf16* from) {
  Row row;
  for (int d = 0; d < kDim; d += 8) {
    const auto words = machine.load_constant(reinterpret_cast<const Word4*>(from + d));
    const uint32_t part[4] = {words.x, words.y, words.z, words.w};
    for (int i = 0; i < 4; ++i) {
      const Float2 two = pair(part[i]);
      row[static_cast<std::size_t>(d + 2 * i)] = two.x;
      row[static_cast<std::size_t>(d + 2 * i + 1)] = two.y;
    }
  }
  machine.charge(Work::fma, kDim);  // what the caller does with it
  return row;
}

/// Runs the kernel under every schedule mode, compares its output with double precision, prints one
/// line with the simulated cycles. Returns the exit status of the step.
int run_step(const char* name, const emulator::KernelSpec& kernel,
             const std::function<void(Machine&, const Inputs&)>& body);

}  // namespace deuce::ladder
