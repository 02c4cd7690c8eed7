// SPDX-License-Identifier: Apache-2.0
// Words of the later steps: tiles in shared memory, MMAs on them, one row of softmax.
// A thread owns one row: S in 128 columns of tensor memory, P over their upper half, O in 64.
#pragma once

#include "kernel/blackwell/descriptors.h"
#include "ladder.h"

namespace deuce::ladder {

using Tiles = blackwell::TileDescriptors<blackwell::Config{.head_dim = kDim}>;

struct alignas(1024) Tile {
  unsigned char bytes[kTileKeys * kDim * 2];
};

/// Rows 128 * `index` and up of a tensor; the bytes arrive on `arrived`, which must expect them.
inline void copy_tile(Machine& machine, Tile& tile, const TensorMap& map, int index,
                      Barrier& arrived) {
  const int32_t coordinate[2] = {0, kTileKeys * index};
  machine.copy_tensor(tile.bytes, map, coordinate, arrived);
}

/// S = Q K^T, by one thread.
inline void issue_scores(Machine& machine, uint32_t s, const Tile& q, const Tile& k) {
  const uint64_t a = blackwell::operand_descriptor<Tiles::kRowsByDim>(machine.shared_address(&q));
  const uint64_t b = blackwell::operand_descriptor<Tiles::kRowsByDim>(machine.shared_address(&k));
  for (int step = 0; step < Tiles::kQkSteps; ++step) {
    machine.mma_shared(s, a + Tiles::qk_step(step), b + Tiles::qk_step(step), Tiles::kQk, step > 0);
  }
}

/// O (+)= P V, by the same thread.
inline void issue_output(Machine& machine, uint32_t o, uint32_t s, const Tile& v, bool first) {
  const uint64_t b = blackwell::operand_descriptor<Tiles::kDimByKeys>(machine.shared_address(&v));
  for (int step = 0; step < Tiles::kPvSteps; ++step) {
    machine.mma_tensor(o, s + 64 + 8 * static_cast<uint32_t>(step), b + Tiles::pv_step(step),
                       Tiles::kPv, step > 0 || !first);
  }
}

/// What a row keeps between tiles.
struct RowState {
  float max = -__builtin_huge_valf(), sum = 0;
};

/// Scores of a row, raw.
struct Scores {
  float s[4][32];
};
inline Scores read_scores(Machine& machine, uint32_t column) {
  Scores row;
  for (uint32_t j = 0; j < 4; ++j) machine.load_tensor(row.s[j], column + 32 * j);
  machine.wait_tensor_loads();
  return row;
}

/// The new maximum; returns what O and the sum must shrink by.
inline float update_max(Machine& machine, const Scores& row, RowState& state) {
  float max = state.max;
  for (const auto& part : row.s) {
    for (const float value : part) max = value * kScaleLog2 > max ? value * kScaleLog2 : max;
  }
  machine.charge(Work::alu, kTileKeys / 2);
  const float shrink = machine.exp2(state.max - max);
  state.max = max;
  return shrink;
}

/// P = 2^(s - max) as bf16 over the upper half of S; adds to the row's sum.
inline void write_probabilities(Machine& machine, const Scores& row, uint32_t column, float shrink,
                                RowState& state) {
  state.sum *= shrink;
  for (uint32_t j = 0; j < 4; ++j) {
    uint32_t words[16];
    for (int i = 0; i < 32; i += 2) {
      const float x = machine.exp2(machine.fma(row.s[j][i], kScaleLog2, -state.max));
      const float y = machine.exp2(machine.fma(row.s[j][i + 1], kScaleLog2, -state.max));
      state.sum += x + y;
      words[i / 2] = machine.pack<Bf16>(x, y);
    }
    machine.charge(Work::exp2, 32);
    machine.charge(Work::fma, 64);
    machine.store_tensor(column + 64 + 16 * j, words);
  }
  machine.wait_tensor_stores();
}

/// O *= shrink, where some row of the warp has a new maximum.
inline void scale_output(Machine& machine, uint32_t o, float shrink) {
  if (!machine.any(shrink < 1.0F)) return;
  for (uint32_t column = o; column < o + kDim; column += 16) {
    float values[16];
    machine.load_tensor(values, column);
    machine.wait_tensor_loads();
    for (float& value : values) value *= shrink;
    machine.charge(Work::fma, 16);
    machine.store_tensor(column, values);
  }
  machine.wait_tensor_stores();
}

/// O / sum of the row, to `to` (global or shared memory).
template <class Store>
void finish_output(Machine& machine, uint32_t o, float sum, const Store& store) {
  for (int column = 0; column < kDim; column += 16) {
    float values[16];
    machine.load_tensor(values, o + static_cast<uint32_t>(column));
    machine.wait_tensor_loads();
    for (int i = 0; i < 16; ++i) store(column + i, values[i] / sum);
  }
}

/// One warp takes and frees the tensor memory of a block.
inline void begin_block(Machine& machine, uint32_t& address) {
  if (machine.warp() == 0) machine.allocate_tensor_memory(address, 512);
  if (machine.thread() == 0) machine.fence_barrier_init();
  machine.sync_block();
}
inline void end_block(Machine& machine, uint32_t& address) {
  machine.fence_before_sync();
  machine.sync_block();
  if (machine.warp() == 0) machine.free_tensor_memory(machine.load_shared(address), 512);
}

}  // namespace deuce::ladder
