// SPDX-License-Identifier: Apache-2.0
// Arithmetic of one softmax stream: 16 query rows of one warp against one KV tile at a time.
// Used by role `attend`. All values are in the fragment layout of mma.sync m16n8k16: lane = 4 row
// + column pair; element e of an output tile is row (lane / 4) + 8 (e / 2), column 2 (lane % 4) +
// e % 2. What must hold: a row's bits never depend on the other rows of the warp.
#pragma once

#include <cmath>
#include <limits>

#include "kernel/hopper/config.h"
#include "kernel/hopper/schedule.h"
#include "kernel/machine.h"
#include "kernel/softmax.h"

namespace deuce::hopper {

/// Which keys of a piece are seen, as positions.
struct Visible {
  Keys row[2];  // by this lane's rows lane / 4 and lane / 4 + 8
  Keys some;    // by some row of the item: V beyond is garbage and must count as zero
  Keys all;     // by every row: tiles inside need no mask
};

/// Where the keys of a tile lie: [box][half][slot of the box][span], swizzled by address. Boxes
/// have at least 8 slots here, so a block of 8 keys is one period of the swizzle.
template <Config kConfig>
class TileLayout {
 public:
  DEUCE_DEVICE explicit TileLayout(const Params& params) {
    const bool whole = params.box_halves == kConfig.halves();
    const int32_t rows = whole ? params.box_rows : kTileTokens;
    box_mask_ = -(rows / 8);
    half_bytes_ = rows * kConfig.span_bytes();
  }
  /// Byte offset of block `block` of 8 keys, column `half`.
  DEUCE_DEVICE int32_t block(int block, int half) const {
    constexpr int kBlockBytes = 8 * kConfig.span_bytes();
    if constexpr (kConfig.halves() == 1) return block * kBlockBytes;
    return (block + (block & box_mask_)) * kBlockBytes + half * half_bytes_;
  }
  /// Byte offset inside a block of a 16-byte chunk of one key.
  DEUCE_DEVICE static int32_t chunk(int key, int chunk) {
    constexpr int kKeysPerStep = 128 / kConfig.span_bytes();  // keys that share a swizzle value
    return key * kConfig.span_bytes() + ((chunk ^ (key / kKeysPerStep)) * 16);
  }

 private:
  int32_t box_mask_;    // clears the position inside a box from a block number
  int32_t half_bytes_;  // from one column of a box to the next
};

template <Config kConfig, class Machine>
class Stream {
 public:
  static constexpr int kScoreTiles = kTileTokens / 8;
  static constexpr int kChunks = kConfig.span_bytes() / 16;
  static constexpr int kStepsPerGroup = kConfig.element == Element::e4m3 ? 4 : 2;
  using Scores = float[kScoreTiles][4];
  struct RowScales {  // of this lane's two rows
    float at[2];
  };

  DEUCE_DEVICE explicit Stream(Machine& machine) : machine_(machine) {}

  DEUCE_DEVICE void reset() {
    DEUCE_UNROLL
    for (int i = 0; i < 2; ++i) {
      max_[i] = kNoKey;
      sum_[i] = 0;
    }
    far_ = false;
    DEUCE_UNROLL
    for (int j = 0; j < kConfig.output_tiles(); ++j) {
      DEUCE_UNROLL
      for (int e = 0; e < 4; ++e) o_[j][e] = 0;
    }
  }

  /// s = Q K^T for 64 keys.
  DEUCE_DEVICE void multiply_keys(const unsigned char* tile, const TileLayout<kConfig>& layout,
                                  Scores& s) {
    DEUCE_UNROLL
    for (int n = 0; n < kScoreTiles; ++n) {
      DEUCE_UNROLL
      for (int e = 0; e < 4; ++e) s[n][e] = 0;
    }
    const int lane = machine_.lane();
    DEUCE_UNROLL
    for (int half = 0; half < kConfig.halves(); ++half) {
      DEUCE_UNROLL
      for (int chunk = 0; chunk < kChunks; chunk += 4) {
        const int within = TileLayout<kConfig>::chunk(lane % 8, chunk + lane / 8);
        DEUCE_UNROLL
        for (int n = 0; n < kScoreTiles; ++n) {
          uint32_t keys[4];
          machine_.load_matrices(keys, tile + layout.block(n, half) + within);
          key_step((half * kChunks + chunk) / 4, keys, s[n]);
        }
      }
    }
  }

  /// s <- cap tanh(s inner_scale).
  DEUCE_DEVICE void cap(Scores& s, const float (&inner_scale)[2], float softcap) {
    DEUCE_UNROLL
    for (int n = 0; n < kScoreTiles; ++n) {
      DEUCE_UNROLL
      for (int e = 0; e < 4; ++e) s[n][e] = softcap * machine_.tanh(s[n][e] * inner_scale[e / 2]);
    }
  }

  /// Scores of keys that a row does not see become -inf, by assignment.
  DEUCE_DEVICE void mask(Scores& s, const Visible& visible, int32_t position) {
    const int32_t first = position + 2 * (machine_.lane() % 4);
    DEUCE_UNROLL
    for (int n = 0; n < kScoreTiles; ++n) {
      DEUCE_UNROLL
      for (int e = 0; e < 4; ++e) {
        const int32_t key = first + 8 * n + e % 2;
        const Keys& keys = visible.row[e / 2];
        if (key < keys.first || key >= keys.last) s[n][e] = kNoKey;
      }
    }
  }

  /// Writes zeros over V of keys that nobody sees, since 0 x NaN = NaN. The tile is this warp's (or
  /// its stream's, whose warps all write the same); the next copy into it comes after the fence.
  DEUCE_DEVICE void clear_values(unsigned char* tile, const TileLayout<kConfig>& layout,
                                 const Keys& live, int32_t position) {
    const int chunk = machine_.lane() % kChunks, half = machine_.lane() / kChunks;
    DEUCE_ROLLED
    for (int key = 0; key < kTileTokens; ++key) {
      if (position + key >= live.first && position + key < live.last) continue;
      if (half < kConfig.halves()) {
        unsigned char* target =
            tile + layout.block(key / 8, half) + TileLayout<kConfig>::chunk(key % 8, chunk);
        machine_.store_shared(*reinterpret_cast<Word4*>(target), Word4{});
      }
    }
    machine_.fence_async();
    machine_.sync_warp();
  }

  /// Moves the reference maximum if it must and leaves p = 2^(scale s - max) in s; the sum takes p
  /// before it is rounded to 16 bits.
  DEUCE_DEVICE void softmax(Scores& s, const RowScales& scale) {
    float top[2] = {kNoKey, kNoKey};
    DEUCE_UNROLL
    for (int n = 0; n < kScoreTiles; ++n) {
      DEUCE_UNROLL
      for (int e = 0; e < 4; ++e) top[e / 2] = fmaxf(top[e / 2], s[n][e]);
    }
    bool moves = false;
    DEUCE_UNROLL
    for (int i = 0; i < 2; ++i) {
      top[i] = fmaxf(top[i], machine_.shuffle_xor(top[i], 1));
      top[i] = fmaxf(top[i], machine_.shuffle_xor(top[i], 2));
      moves = moves || outgrows(top[i], max_[i], scale.at[i]);
    }
    if (machine_.any(moves)) rescale(top, scale);
    float base[2] = {offset_of(machine_, max_[0], scale.at[0]),
                     offset_of(machine_, max_[1], scale.at[1])};
    if (far_) subtract_maximum(s, base);
    DEUCE_UNROLL
    for (int n = 0; n < kScoreTiles; ++n) {
      DEUCE_UNROLL
      for (int e = 0; e < 4; ++e) {
        s[n][e] = machine_.exp2(machine_.fma(s[n][e], scale.at[e / 2], base[e / 2]));
        sum_[e / 2] += s[n][e];
      }
    }
    machine_.charge(Work::exp2, 4 * kScoreTiles);
  }

  /// o += P V, 16 tokens at a time.
  DEUCE_DEVICE void multiply_values(const unsigned char* tile, const TileLayout<kConfig>& layout,
                                    const Scores& p) {
    const int lane = machine_.lane();
    DEUCE_UNROLL
    for (int k = 0; k < kTileTokens / 16; ++k) {
      const uint32_t weights[4] = {machine_.template pack<Type>(p[2 * k][0], p[2 * k][1]),
                                   machine_.template pack<Type>(p[2 * k][2], p[2 * k][3]),
                                   machine_.template pack<Type>(p[2 * k + 1][0], p[2 * k + 1][1]),
                                   machine_.template pack<Type>(p[2 * k + 1][2], p[2 * k + 1][3])};
      const int block = 2 * k + (lane / 8) % 2;
      DEUCE_UNROLL
      for (int half = 0; half < kConfig.halves(); ++half) {
        const unsigned char* keys = tile + layout.block(block, half);
        DEUCE_UNROLL
        for (int chunk = 0; chunk < kChunks; chunk += 2) {
          uint32_t values[4];
          machine_.load_matrices_transposed(
              values, keys + TileLayout<kConfig>::chunk(lane % 8, chunk + lane / 16));
          value_step(half * kChunks + chunk, values, weights);
        }
      }
    }
  }

  // --- state, for the merge ---
  /// After the last tile, while the scale is still that of the piece: the maximum in log2 units.
  DEUCE_DEVICE void end(const RowScales& scale) {
    DEUCE_UNROLL
    for (int i = 0; i < 2; ++i) max_[i] = max_log2_of(machine_, max_[i], scale.at[i]);
  }
  DEUCE_DEVICE float max(int i) const { return max_[i]; }  // log2 units
  /// Sum of row i over the four lanes that share it, in lane order.
  DEUCE_DEVICE float row_sum(int i) const {
    const float pair = sum_[i] + machine_.shuffle_xor(sum_[i], 1);
    return pair + machine_.shuffle_xor(pair, 2);
  }
  DEUCE_DEVICE void poison() { sum_[0] = sum_[1] = std::numeric_limits<float>::quiet_NaN(); }
  /// Writes this lane's dims of its row i to a row in shared memory.
  DEUCE_DEVICE void store_row(float (&row)[kConfig.head_dim + 8], int i) const {
    const int pair = machine_.lane() % 4;
    DEUCE_UNROLL
    for (int j = 0; j < kConfig.output_tiles(); j += 2) {
      const float first[2] = {o_[j][2 * i], o_[j][2 * i + 1]};
      const float second[2] = {o_[j + 1][2 * i], o_[j + 1][2 * i + 1]};
      if constexpr (kConfig.element == Element::e4m3) {  // even dims in one tile, odd in the next
        float& place = row[8 * j + 4 * pair];
        machine_.store_shared(reinterpret_cast<Float2&>(place), Float2{first[0], second[0]});
        machine_.store_shared(reinterpret_cast<Float2&>((&place)[2]), Float2{first[1], second[1]});
      } else {
        float& place = row[8 * j + 2 * pair];
        machine_.store_shared(reinterpret_cast<Float2&>(place), Float2{first[0], first[1]});
        machine_.store_shared(reinterpret_cast<Float2&>((&place)[8]), Float2{second[0], second[1]});
      }
    }
  }
  DEUCE_DEVICE uint32_t (&queries())[kConfig.depth_steps()][4] { return q_; }

 private:
  using Type = MmaType<kConfig>;

  /// Four 16-byte chunks of 8 keys. An fp8 chunk is 16 dims, a 16-bit one 8; q holds them likewise.
  DEUCE_DEVICE void key_step(int group, const uint32_t (&keys)[4], float (&s)[4]) {
    DEUCE_UNROLL
    for (int step = 0; step < kStepsPerGroup; ++step) {
      if constexpr (kConfig.element == Element::e4m3) {
        const uint32_t pair[2] = {machine_.half_from_e4m3(static_cast<uint16_t>(keys[step])),
                                  machine_.half_from_e4m3(static_cast<uint16_t>(keys[step] >> 16))};
        machine_.template mma_16x8x16<Type>(s, q_[kStepsPerGroup * group + step], pair);
      } else {
        const uint32_t pair[2] = {keys[2 * step], keys[2 * step + 1]};
        machine_.template mma_16x8x16<Type>(s, q_[kStepsPerGroup * group + step], pair);
      }
    }
  }

  /// Two 16-byte chunks of 16 tokens of V.
  DEUCE_DEVICE void value_step(int chunk, const uint32_t (&values)[4],
                               const uint32_t (&weights)[4]) {
    DEUCE_UNROLL
    for (int i = 0; i < 2; ++i) {
      if constexpr (kConfig.element == Element::e4m3) {
        // A transposed register holds two tokens of two neighbouring dims: even dims feed one
        // output tile, odd dims the next.
        const uint32_t low = machine_.swap_middle_bytes(values[2 * i]);
        const uint32_t high = machine_.swap_middle_bytes(values[2 * i + 1]);
        DEUCE_UNROLL
        for (int odd = 0; odd < 2; ++odd) {
          const uint32_t pair[2] = {
              machine_.half_from_e4m3(static_cast<uint16_t>(low >> (16 * odd))),
              machine_.half_from_e4m3(static_cast<uint16_t>(high >> (16 * odd)))};
          machine_.template mma_16x8x16<Type>(o_[2 * (chunk + i) + odd], weights, pair);
        }
      } else {
        const uint32_t pair[2] = {values[2 * i], values[2 * i + 1]};
        machine_.template mma_16x8x16<Type>(o_[chunk + i], weights, pair);
      }
    }
  }

  /// Raises the reference maximum of the rows that need it; a factor of exactly 1 leaves the other
  /// rows' bits alone.
  DEUCE_DEVICE void rescale(const float (&top)[2], const RowScales& scale) {
    float factor[2];
    DEUCE_UNROLL
    for (int i = 0; i < 2; ++i) {
      factor[i] = raise_maximum(machine_, max_[i], top[i], scale.at[i]);
      sum_[i] *= factor[i];
    }
    far_ = machine_.any(is_far(offset_of(machine_, max_[0], scale.at[0])) ||
                        is_far(offset_of(machine_, max_[1], scale.at[1])));
    DEUCE_UNROLL
    for (int j = 0; j < kConfig.output_tiles(); ++j) {
      DEUCE_UNROLL
      for (int e = 0; e < 4; ++e) o_[j][e] *= factor[e / 2];
    }
    machine_.charge(Work::fma, 4 * kConfig.output_tiles());
  }

  /// For the rows whose maximum is far from zero; the others keep their bits.
  DEUCE_DEVICE void subtract_maximum(Scores& s, float (&base)[2]) {
    float maximum[2];
    DEUCE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const bool far = is_far(base[i]);
      maximum[i] = far ? max_[i] : 0.0f;
      base[i] = far ? 0.0f : base[i];
    }
    DEUCE_UNROLL
    for (int n = 0; n < kScoreTiles; ++n) {
      DEUCE_UNROLL
      for (int e = 0; e < 4; ++e) s[n][e] -= maximum[e / 2];
    }
  }

  Machine& machine_;
  uint32_t q_[kConfig.depth_steps()][4];
  float o_[kConfig.output_tiles()][4];
  float
      max_[2];  // scores, until `end`; p, o and the sums are relative to their products with scale
  float sum_[2];
  bool far_ = false;  // some row of the warp has a maximum far from zero
};

}  // namespace deuce::hopper
