// SPDX-License-Identifier: Apache-2.0
// Arithmetic of one softmax stream between its matrix products: 16 query rows of one warp.
// Base of warp_stream.h and group_stream.h, which add the products. All values are in the fragment
// layout of mma.sync m16n8k16, which is also that of a warp's rows in wgmma: lane = 4 row + column
// pair; element e of an output tile is row (lane / 4) + 8 (e / 2), column 2 (lane % 4) + e % 2.
// What must hold: a row's bits never depend on the other rows of the warp.
#pragma once

#include <cmath>
#include <limits>

#include "kernel/hopper/config.h"
#include "kernel/hopper/schedule.h"
#include "kernel/hopper/shared.h"
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

/// What a state counts for in a merge whose maximum is `max`.
template <class Machine>
DEUCE_DEVICE float weight_of(Machine& machine, const RowState& state, float max) {
  return state.max == kNoKey ? 0.0f : machine.exp2(state.max - max);
}

template <Config kConfig, class Machine>
class Stream {
 public:
  static constexpr int kScoreTiles = kTileTokens / 8;
  static constexpr int kChunks = kConfig.span_bytes() / 16;
  using Scores = float[kScoreTiles][4];
  using Weights = uint32_t[kTileTokens / 16][4];  // P in 16 bits, as an A operand
  struct RowScales {                              // of this lane's two rows
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

  /// Moves the reference maxima of the rows that need it. True if some row of the warp did: then
  /// the output must be rescaled before the tile is added.
  DEUCE_DEVICE bool raise(const Scores& s, const RowScales& scale) {
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
    moves = machine_.any(moves);
    if (!moves) return false;
    DEUCE_UNROLL
    for (int i = 0; i < 2; ++i) {
      factor_[i] = raise_maximum(machine_, max_[i], top[i], scale.at[i]);
      sum_[i] *= factor_[i];
    }
    far_ = machine_.any(is_far(offset_of(machine_, max_[0], scale.at[0])) ||
                        is_far(offset_of(machine_, max_[1], scale.at[1])));
    return true;
  }

  /// A factor of exactly 1 leaves the bits of the rows that did not move alone.
  DEUCE_DEVICE void rescale_output() {
    DEUCE_UNROLL
    for (int j = 0; j < kConfig.output_tiles(); ++j) {
      DEUCE_UNROLL
      for (int e = 0; e < 4; ++e) o_[j][e] *= factor_[e / 2];
    }
    machine_.charge(Work::fma, 4 * kConfig.output_tiles());
  }

  /// Leaves p = 2^(scale s - max) in s; the sum takes p before it is rounded to 16 bits.
  DEUCE_DEVICE void weigh(Scores& s, const RowScales& scale) {
    float base[2] = {offset_of(machine_, max_[0], scale.at[0]),
                     offset_of(machine_, max_[1], scale.at[1])};
    if (far_) subtract_maximum(s, base);
    DEUCE_UNROLL
    for (int n = 0; n < kScoreTiles; ++n) {
      DEUCE_UNROLL
      for (int e = 0; e < 4; ++e) {
        s[n][e] = machine_.exp2(machine_.fma(s[n][e], scale.at[e / 2], base[e / 2]));
      }
    }
    machine_.charge(Work::exp2, 4 * kScoreTiles);
    float sum[2] = {0, 0};
    DEUCE_UNROLL
    for (int n = 0; n < kScoreTiles; ++n) {
      DEUCE_UNROLL
      for (int e = 0; e < 4; ++e) sum[e / 2] += s[n][e];
    }
    sum_[0] += sum[0];
    sum_[1] += sum[1];
  }

  /// The same for rows that keep their maxima, and p in 16 bits, without looking for the maximum
  /// of the tile first: whoever outgrew its maximum has a p of 2^8 or more, and that shows in the
  /// sum. False, and nothing done, where some row of the warp may have to move.
  DEUCE_DEVICE bool weigh_settled(const Scores& s, const RowScales& scale, Weights& p) {
    if (far_) return false;
    const float base[2] = {offset_of(machine_, max_[0], scale.at[0]),
                           offset_of(machine_, max_[1], scale.at[1])};
    float sum[2] = {0, 0};
    DEUCE_UNROLL
    for (int n = 0; n < kScoreTiles; ++n) {
      float x[4];
      DEUCE_UNROLL
      for (int e = 0; e < 4; ++e) {
        x[e] = machine_.exp2(machine_.fma(s[n][e], scale.at[e / 2], base[e / 2]));
        sum[e / 2] += x[e];
      }
      DEUCE_UNROLL
      for (int i = 0; i < 2; ++i) {
        p[n / 2][2 * (n % 2) + i] = machine_.template pack<Type>(x[2 * i], x[2 * i + 1]);
      }
    }
    machine_.charge(Work::exp2, 4 * kScoreTiles);
    const bool settled =
        max_[0] != kNoKey && max_[1] != kNoKey && sum[0] <= kSettled && sum[1] <= kSettled;
    if (machine_.any(!settled)) return false;
    sum_[0] += sum[0];
    sum_[1] += sum[1];
    return true;
  }

  /// p in 16 bits: the scores' fragments are the operand's.
  DEUCE_DEVICE void round_weights(const Scores& s, Weights& p) {
    DEUCE_UNROLL
    for (int n = 0; n < kScoreTiles; ++n) {
      DEUCE_UNROLL
      for (int i = 0; i < 2; ++i) {
        p[n / 2][2 * (n % 2) + i] = machine_.template pack<Type>(s[n][2 * i], s[n][2 * i + 1]);
      }
    }
  }

  DEUCE_DEVICE static void clear_weights(Weights& p) {
    DEUCE_UNROLL
    for (auto& step : p) {
      DEUCE_UNROLL
      for (uint32_t& pair : step) pair = 0;
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
  /// Row i, whose state is `own`, takes in the stored state of the stream behind this one.
  DEUCE_DEVICE RowState merge_row(const float (&row)[kConfig.head_dim + kConfig.state_padding()],
                                  const RowState& other, const RowState& own, int i) {
    const float max = fmaxf(own.max, other.max);
    const float kept = weight_of(machine_, own, max), added = weight_of(machine_, other, max);
    const int pair = machine_.lane() % 4;
    DEUCE_UNROLL
    for (int j = 0; j < kConfig.output_tiles(); ++j) {
      const float& place = row[8 * j + 2 * pair];
      const auto dims = machine_.load_shared(reinterpret_cast<const Float2&>(place));
      o_[j][2 * i] = machine_.fma(dims.x, added, o_[j][2 * i] * kept);
      o_[j][2 * i + 1] = machine_.fma(dims.y, added, o_[j][2 * i + 1] * kept);
    }
    return {max, machine_.fma(other.sum, added, own.sum * kept)};
  }
  DEUCE_DEVICE void poison() { sum_[0] = sum_[1] = std::numeric_limits<float>::quiet_NaN(); }
  /// Writes this lane's dims of its row i to a row in shared memory.
  DEUCE_DEVICE void store_row(float (&row)[kConfig.head_dim + kConfig.state_padding()],
                              int i) const {
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

 protected:
  using Type = MmaType<kConfig>;
  /// Well below the 2^8 at which a row moves, so that rounding never hides one that must.
  static constexpr float kSettled = 128;

  Machine& machine_;
  uint32_t q_[kConfig.depth_steps()][4];
  float o_[kConfig.output_tiles()][4];

 private:
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

  float
      max_[2];  // scores, until `end`; p, o and the sums are relative to their products with scale
  float sum_[2];
  float factor_[2];   // of the last raise
  bool far_ = false;  // some row of the warp has a maximum far from zero
};

}  // namespace deuce::hopper
