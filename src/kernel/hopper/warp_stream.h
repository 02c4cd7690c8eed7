// SPDX-License-Identifier: Apache-2.0
// The matrix products of one softmax stream by instructions of a warp: K and V come through
// registers, by ldmatrix, and e4m3 is converted there.
// Used by warp_tiles.h.
#pragma once

#include "kernel/hopper/stream.h"

namespace deuce::hopper {

template <Config kConfig, class Machine>
class WarpStream : public Stream<kConfig, Machine> {
  using Base = Stream<kConfig, Machine>;
  using Base::machine_, Base::q_, Base::o_;
  using Type = MmaType<kConfig>;

 public:
  using Scores = typename Base::Scores;
  static constexpr int kScoreTiles = Base::kScoreTiles, kChunks = Base::kChunks;
  static constexpr int kStepsPerGroup = kConfig.element == Element::e4m3 ? 4 : 2;
  using Base::Base;

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

 private:
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
};

}  // namespace deuce::hopper
