// SPDX-License-Identifier: Apache-2.0
// Where results go: a packed row's place in the caller's output and LSE, or in a partial's slot.
// Used by correction (whole items) and epilogue (merged items and rows without a key).
#pragma once

#include "kernel/blackwell/pieces.h"
#include "kernel/combine.h"

namespace deuce::blackwell {

/// One packed row of an item, as the caller sees it.
struct RowPlace {
  int64_t out, lse;  // element offsets
  int32_t q_head;
};

DEUCE_DEVICE RowPlace place_of_row(const Params& params, const Item& item, int32_t row,
                                   int32_t first_token) {
  const int32_t group = params.shape.group;
  const int32_t packed = item.row_tile * params.shape.row_tile + row;
  const int32_t token = packed / group;
  const int32_t head = item.kv_head * group + packed % group;
  // Ragged queries lie one after another in request 0.
  const bool ragged = params.cu_q_len != nullptr;
  const int64_t request = ragged ? 0 : item.request;
  const int64_t at = int64_t{first_token} + token;
  return {request * params.out_stride_request + at * params.out_stride_row +
              head * params.out_stride_head,
          request * params.lse_stride_request + at * params.lse_stride_row +
              head * params.lse_stride_head,
          head};
}

/// Rows of earlier requests, when queries are ragged.
template <class Machine>
DEUCE_DEVICE int32_t first_token_of(Machine& machine, const Params& params, int32_t request) {
  return params.cu_q_len == nullptr ? 0 : machine.load_constant(params.cu_q_len + request);
}

DEUCE_DEVICE Partial partial_in_slot(const Params& params, int64_t slot, int head_dim) {
  const int64_t rows = partial_rows(params.shape);
  return partial_at(params.partials + slot * partial_floats(rows, head_dim), rows, head_dim);
}

/// A block's staging slot, one for each replica of the rows, behind all others: states that the
/// epilogue reads before they go anywhere else.
template <Config kConfig>
DEUCE_DEVICE int64_t staging_slot(const Params& params, int32_t block, int32_t replica) {
  return params.partial_map.slot_count() + block * kConfig.row_replicas + replica;
}

/// Where the state of a piece of a cut item goes: the slot of part `split`, of the stretch that
/// block `block` holds, or the block's staging slot when splits are a tree.
template <Config kConfig>
DEUCE_DEVICE Partial partial_slot(const Params& params, const Item& item, int32_t split,
                                  int32_t block, bool starts_item) {
  const PartialMap& map = params.partial_map;
  const int64_t number = map.tree                      ? staging_slot<kConfig>(params, block, 0)
                         : params.shape.num_splits > 0 ? map.part_slot(item, split)
                                                       : map.stream_slot(block, starts_item);
  return partial_in_slot(params, number, kConfig.head_dim);
}

/// `kCount` values (a multiple of 8) to 16-bit output; rows are 16-byte aligned.
template <Config kConfig, int kCount, class Machine>
DEUCE_DEVICE void store_values(Machine& machine, const Params& params, int64_t at,
                               const float (&o)[kCount], float scale) {
  auto* target = static_cast<uint16_t*>(params.out) + at;
  const auto pair = [&](int i) {
    return machine.template pack<Element<kConfig>>(o[i] * scale, o[i + 1] * scale);
  };
  DEUCE_UNROLL
  for (int i = 0; i < kCount; i += 8) {
    const Word4 words{pair(i), pair(i + 2), pair(i + 4), pair(i + 6)};
    machine.store_global(reinterpret_cast<Word4*>(target + i), words);
  }
}

}  // namespace deuce::blackwell
