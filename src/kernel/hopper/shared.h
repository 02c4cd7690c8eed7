// SPDX-License-Identifier: Apache-2.0
// The whole shared memory of a Hopper CTA, one struct: offsets and size come from the compiler.
// Tiles start at multiples of 1024 bytes because the 128-byte swizzle repeats there.
#pragma once

#include "kernel/hopper/config.h"
#include "kernel/machine.h"

namespace deuce::hopper {

/// Running softmax of one row: reference maximum in the log2 domain, and the sum of 2^(s - max).
struct alignas(8) RowState {
  float max, sum;
};

/// Unnormalised output of one stream. Rows are padded so that the four rows that a half warp of
/// fragments writes at once fall into different banks.
template <Config kConfig>
struct StreamState {
  alignas(16) float o[kConfig.rows()][kConfig.head_dim + kConfig.state_padding()];
};

/// What a warp keeps here while it walks tiles, so that registers are free for them: what spills to
/// local memory comes back through an L2 that is busy with KV.
struct ParkedWords {
  Word4 at[8];
};

template <Config kConfig>
struct SharedStorage {
  alignas(1024) unsigned char k[kConfig.stages][kConfig.tile_bytes()];
  alignas(1024) unsigned char v[kConfig.stages][kConfig.tile_bytes()];
  StreamState<kConfig> state[kConfig.states()];  // one piece is merged at a time
  RowState rows[kConfig.states()][kConfig.rows()];
  Barrier k_arrived[kConfig.stages], v_arrived[kConfig.stages], kv_released[kConfig.stages];
  ParkedWords parked[kConfig.parks() ? kConfig.attend_warps() : 1];
  uint32_t poisoned[kConfig.stages];  // the tile needed a page that does not exist
};

}  // namespace deuce::hopper
