// SPDX-License-Identifier: Apache-2.0
// Rows without work: requests that no tile belongs to still need their output and LSE written.
// Used by a load warp once its last tile is on the way. Worker g looks through requests
// [gB/G, (g+1)B/G), so that a padding request costs O(1) and no second launch.
#pragma once

#include "kernel/hopper/rows.h"

namespace deuce::hopper {

/// Warp. One row: output 0 and LSE -inf (or the sink), or NaN in both.
template <Config kConfig, class Machine>
DEUCE_DEVICE void write_idle_row(Machine& machine, const Params& params, const Piece& piece,
                                 int32_t row, bool faulty) {
  float lse;
  finish_row(machine, params, piece, row, RowState{kNoKey, 0}, lse);
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const float fill = faulty ? kNaN : 0.0f;
  const int64_t out = row_offset(params, piece, params.out_stride, row);
  const int dim = 4 * machine.lane();
  if (dim < kConfig.head_dim) {
    const float values[4] = {fill, fill, fill, fill};
    store_dims(machine, params, out + dim, values);
  }
  if (params.lse != nullptr && machine.elect()) {
    machine.store_global(params.lse + row_offset(params, piece, params.lse_stride, row),
                         faulty ? kNaN : lse);
  }
}

/// One thread. Reads the offending value again, so that the usual path need not keep it.
template <class Machine>
DEUCE_DEVICE void report_request(Machine& machine, const Params& params, int32_t index,
                                 FaultCode code) {
  FaultRecord record{.request = index, .tag = params.tag};
  const int32_t kv_len =
      params.kv_len != nullptr ? machine.load_constant(params.kv_len + index) : params.kv_len_all;
  switch (code) {
    case FaultCode::kv_len:
      record.value = kv_len;
      record.highest = params.capacity < params.max_kv_len ? params.capacity : params.max_kv_len;
      break;
    case FaultCode::q_len:
      record.value = machine.load_constant(params.cu_q_len + index + 1) -
                     machine.load_constant(params.cu_q_len + index);
      record.highest = params.max_q_len;
      break;
    case FaultCode::last_page_len:
      record.value = machine.load_constant(params.last_page_len + index);
      record.lowest = 1;
      record.highest = params.page_size;
      break;
    case FaultCode::kv_start:
      record.value = machine.load_constant(params.kv_start + index);
      record.highest = kv_len;
      break;
    case FaultCode::cache_row:
      record.value = machine.load_constant(params.cache_row + index);
      record.highest = params.num_pages - 1;
      break;
    default: break;
  }
  report_fault(machine, params.fault, code, record);
}

/// Warp. All rows of this worker's share of the requests that have no tile.
template <Config kConfig, class Machine>
DEUCE_DEVICE void write_idle_rows(Machine& machine, const Params& params) {
  // The kernel before may still read what these rows overwrite.
  if (params.starts_early != 0) machine.wait_previous_grid();
  const int32_t worker = machine.block();
  const int32_t share = params.by_workers.quotient(params.batch);
  const int32_t longer = params.by_workers.remainder(params.batch);
  const int32_t begin = worker * share + min_of(worker, longer);
  const int32_t end = begin + share + (worker < longer ? 1 : 0);
  DEUCE_ROLLED
  for (int32_t index = begin; index < end; ++index) {
    Piece piece;
    piece.shape = request_of(machine, params, index);
    if (piece.shape.tiles() > 0) continue;
    // With a faulty length the rows that the launch expects still get their NaN.
    const bool faulty = piece.shape.fault != FaultCode::none;
    if (faulty && machine.elect()) report_request(machine, params, index, piece.shape.fault);
    const bool known = params.cu_q_len == nullptr || piece.shape.fault != FaultCode::q_len;
    const int32_t rows = known ? piece.shape.q_len * params.group : 0;
    piece.request = index;
    DEUCE_ROLLED
    for (piece.head = 0; piece.head < params.kv_heads; ++piece.head) {
      DEUCE_ROLLED
      for (int32_t row = 0; row < rows; ++row) {
        write_idle_row<kConfig>(machine, params, piece, row, faulty);
      }
    }
  }
}

}  // namespace deuce::hopper
