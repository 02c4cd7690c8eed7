// SPDX-License-Identifier: Apache-2.0
// Q fragments of one warp, straight from global memory into registers.
// Used by role `attend` at the start of a piece. What must hold: the score scale that comes out is
// positive, because the softmax takes the maximum before it scales.
#pragma once

#include <cmath>

#include "kernel/hopper/rows.h"

namespace deuce::hopper {

/// Warp. Brings a piece's queries into the L2, long before the attend warps load them.
template <Config kConfig, class Machine>
DEUCE_DEVICE void prefetch_queries(Machine& machine, const Params& params, const Piece& piece) {
  const auto* q = static_cast<const uint16_t*>(params.q);
  DEUCE_ROLLED
  for (int32_t row = piece.rows.first + machine.lane(); row < piece.rows.last; row += 32) {
    const uint16_t* start = q + row_offset(params, piece, params.q_stride, row);
    DEUCE_UNROLL
    for (int dim = 0; dim < kConfig.head_dim; dim += 64) machine.prefetch(start + dim);
  }
}

/// Two dims of q at `dim` of a row's start, as bits; the order of dims matches the K fragments.
template <Config kConfig, class Machine>
DEUCE_DEVICE uint32_t load_query_pair(Machine& machine, const uint16_t* row, int step, int part) {
  const int pair = machine.lane() % 4;
  const int dim = kConfig.element == Element::e4m3 ? 16 * step + 4 * pair + 2 * part
                                                   : 16 * step + 8 * part + 2 * pair;
  return machine.load_global(reinterpret_cast<const uint32_t*>(row + dim));
}

DEUCE_DEVICE uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

/// bf16 q for half-precision MMAs: scaled by a power of two that brings the row's largest value to
/// 2^14, so that nothing overflows and little is flushed. Returns the inverse factor.
template <Config kConfig, class Machine>
DEUCE_DEVICE float halve_row(Machine& machine, uint32_t (&q)[kConfig.depth_steps()][4], int i) {
  uint32_t top = 0;
  DEUCE_UNROLL
  for (int step = 0; step < kConfig.depth_steps(); ++step) {
    DEUCE_UNROLL
    for (int part = 0; part < 2; ++part) {
      const uint32_t pair = q[step][2 * part + i] & 0x7fff7fffu;
      top = larger(larger(top, pair & 0xffffu), pair >> 16);
    }
  }
  top = larger(top, machine.shuffle_xor(top, 1));
  top = larger(top, machine.shuffle_xor(top, 2));
  const int exponent = static_cast<int>(top >> 7) - 127;
  const int shift =
      exponent < -100 || exponent > 126 ? 0 : 14 - exponent;  // zero, inf or NaN: none
  const float factor =
      std::bit_cast<float>(static_cast<uint32_t>(127 + (shift > 126 ? 126 : shift)) << 23);
  DEUCE_UNROLL
  for (int step = 0; step < kConfig.depth_steps(); ++step) {
    DEUCE_UNROLL
    for (int part = 0; part < 2; ++part) {
      uint32_t& pair = q[step][2 * part + i];
      pair = machine.template pack<Half>(std::bit_cast<float>(pair << 16) * factor,
                                         std::bit_cast<float>(pair & 0xffff0000u) * factor);
    }
  }
  return 1.0f / factor;
}

/// For a scale that is not positive: negates q, or clears it.
template <Config kConfig>
DEUCE_DEVICE void turn_queries(uint32_t (&q)[kConfig.depth_steps()][4], float scale) {
  const uint32_t flip = scale < 0 ? 0x80008000u : 0u;
  const uint32_t keep = scale == 0 ? 0u : ~0u;
  DEUCE_UNROLL
  for (int step = 0; step < kConfig.depth_steps(); ++step) {
    DEUCE_UNROLL
    for (int i = 0; i < 4; ++i) q[step][i] = (q[step][i] ^ flip) & keep;
  }
}

/// Fills q and the score scales of rows first_row and first_row + 8 (packed; log2 domain, or for
/// softcap the inner scale). Rows past the item's end are zero.
template <Config kConfig, class Machine>
DEUCE_DEVICE void load_queries(Machine& machine, const Params& params, const Piece& piece,
                               int32_t first_row, uint32_t (&q)[kConfig.depth_steps()][4],
                               float (&scale)[2]) {
  float common = params.softcap > 0 ? params.softcap_scale : params.scale_log2;
  if (params.k_descale != nullptr) {
    common *= machine.load_constant(params.k_descale + piece.request * params.k_descale_stride[0] +
                                    piece.head * params.k_descale_stride[1]);
  }
  DEUCE_UNROLL
  for (int i = 0; i < 2; ++i) {
    const int32_t row = first_row + 8 * i;
    const bool real = row < piece.rows.last;
    const auto* start = static_cast<const uint16_t*>(params.q) +
                        (real ? row_offset(params, piece, params.q_stride, row) : 0);
    DEUCE_UNROLL
    for (int step = 0; step < kConfig.depth_steps(); ++step) {
      DEUCE_UNROLL
      for (int part = 0; part < 2; ++part) {
        q[step][2 * part + i] = real ? load_query_pair<kConfig>(machine, start, step, part) : 0u;
      }
    }
    scale[i] = common > 0 ? common : common < 0 ? -common : 1.0f;
  }
  // Nothing waits for the loads before the first MMA, unless a scale is unusual.
  if (!(common > 0)) turn_queries<kConfig>(q, common);
  if constexpr (kConfig.element == Element::e4m3) {
    if (params.q_is_bf16 != 0) {
      DEUCE_UNROLL
      for (int i = 0; i < 2; ++i) {
        // Not 0, which would make rows with keys pass for rows without.
        scale[i] = fmaxf(scale[i] * halve_row<kConfig>(machine, q, i), 0x1p-126f);
      }
    }
  }
}

}  // namespace deuce::hopper
