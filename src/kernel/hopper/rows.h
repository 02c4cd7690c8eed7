// SPDX-License-Identifier: Apache-2.0
// PackGQA rows of an item: where row = token * group + head lies in q, out and lse, and how a
// finished row is written. Used by the attend warps and by the writer of rows without work.
#pragma once

#include <bit>
#include <cmath>
#include <limits>

#include "kernel/hopper/schedule.h"
#include "kernel/hopper/shared.h"
#include "kernel/hopper/stream.h"

namespace deuce::hopper {

DEUCE_DEVICE Word4 words_of(const float (&o)[4]) {
  return {std::bit_cast<uint32_t>(o[0]), std::bit_cast<uint32_t>(o[1]),
          std::bit_cast<uint32_t>(o[2]), std::bit_cast<uint32_t>(o[3])};
}

DEUCE_DEVICE void floats_of(const Word4& words, float (&o)[4]) {
  o[0] = std::bit_cast<float>(words.x);
  o[1] = std::bit_cast<float>(words.y);
  o[2] = std::bit_cast<float>(words.z);
  o[3] = std::bit_cast<float>(words.w);
}

/// Query head of a packed row.
DEUCE_DEVICE int32_t head_of(const Params& params, const Piece& piece, int32_t row) {
  return piece.head * params.group + params.by_group.remainder(row);
}

/// Elements from a tensor's start to the (request, token, head) of a packed row.
DEUCE_DEVICE int64_t row_offset(const Params& params, const Piece& piece,
                                const int64_t (&stride)[3], int32_t row) {
  const int32_t token = params.by_group.quotient(row);
  const bool ragged = params.cu_q_len != nullptr;
  return (ragged ? 0 : piece.request * stride[0]) +
         (ragged ? piece.shape.first_row + token : token) * stride[1] +
         head_of(params, piece, row) * stride[2];
}

/// Four neighbouring dims of a row at `offset` elements, rounded once. 2-byte elements are written
/// as pairs: the strides of out are even.
template <class Machine>
DEUCE_DEVICE void store_dims(Machine& machine, const Params& params, int64_t offset,
                             const float (&o)[4]) {
  const auto element = params.out_element;
  if (element == FloatType::f32) {
    DEUCE_UNROLL
    for (int i = 0; i < 4; ++i) {
      machine.store_global(static_cast<float*>(params.out) + offset + i, o[i]);
    }
    return;
  }
  auto* out = reinterpret_cast<uint32_t*>(static_cast<uint16_t*>(params.out) + offset);
  DEUCE_UNROLL
  for (int i = 0; i < 2; ++i) {
    machine.store_global(out + i, element == FloatType::bf16
                                      ? machine.template pack<Bf16>(o[2 * i], o[2 * i + 1])
                                      : machine.template pack<Half>(o[2 * i], o[2 * i + 1]));
  }
}

/// Adds the sink to a row's softmax; returns the factor for its output, and its log-sum-exp.
template <class Machine>
DEUCE_DEVICE float finish_row(Machine& machine, const Params& params, const Piece& piece,
                              int32_t row, const RowState& state, float& lse) {
  const float sink = sink_log2(machine, params.sinks, head_of(params, piece, row));
  const float max = fmaxf(state.max, sink);
  if (max == kNoKey) {  // no key and no sink; a poisoned sum stays
    lse = state.sum == 0 ? kNoKey : state.sum;
    return state.sum == 0 ? 0.0f : state.sum;
  }
  const float kept = state.max == kNoKey ? 0.0f : machine.exp2(state.max - max);
  const float added = sink == kNoKey ? 0.0f : machine.exp2(sink - max);
  const float sum = machine.fma(state.sum, kept, added);
  const float sum_log2 = machine.log2(sum);
  lse = (max + sum_log2) * params.lse_factor;
  float factor = kept * machine.exp2(-sum_log2) * params.out_scale;
  if (params.v_descale != nullptr) {
    factor *= machine.load_constant(params.v_descale + piece.request * params.v_descale_stride[0] +
                                    piece.head * params.v_descale_stride[1]);
  }
  return factor;
}

/// Normalises and writes dims dim .. dim + 3, and those 64 further on, of a packed row.
template <int kVectors, class Machine>
DEUCE_DEVICE void write_row(Machine& machine, const Params& params, const Piece& piece, int32_t row,
                            int dim, const float (&o)[kVectors][4], const RowState& state) {
  float lse;
  const float factor = finish_row(machine, params, piece, row, state, lse);
  const int64_t offset = row_offset(params, piece, params.out_stride, row) + dim;
  DEUCE_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const float values[4] = {o[v][0] * factor, o[v][1] * factor, o[v][2] * factor,
                             o[v][3] * factor};
    store_dims(machine, params, offset + 64 * v, values);
  }
  if (params.lse != nullptr && dim == 0) {
    machine.store_global(params.lse + row_offset(params, piece, params.lse_stride, row), lse);
  }
}

}  // namespace deuce::hopper
