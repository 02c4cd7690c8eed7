// SPDX-License-Identifier: Apache-2.0
// The caller's arrays; see memory_ranges.h.
#include "emulator/memory_ranges.h"

#include <algorithm>

#include "plan/cache_view.h"

namespace deuce::emulator {
namespace {

using Bytes = std::size_t;

/// Bytes from the first to behind the last element of an array of given sizes and strides, with an
/// inner contiguous run of `inner` elements.
Bytes extent(const int64_t (&size)[3], const int64_t (&stride)[3], int64_t inner, int bytes) {
  int64_t last = inner;
  for (int i = 0; i < 3; ++i) last += std::max<int64_t>(size[i] - 1, 0) * stride[i];
  return static_cast<Bytes>(last) * static_cast<Bytes>(bytes);
}

}  // namespace

std::vector<GlobalRange> memory_ranges(const Problem& problem, const Call& call) {
  std::vector<GlobalRange> ranges;
  const auto add = [&](const char* name, const void* base, Bytes bytes, bool writable = false) {
    if (base != nullptr && bytes > 0) ranges.push_back({name, base, bytes, writable});
  };
  const bool ragged = call.cu_q_len != nullptr;
  const auto batch = static_cast<Bytes>(call.batch);
  const int64_t rows = ragged ? call.cu_q_len[call.batch] : call.q_len;
  const int64_t rows_size[3] = {ragged ? 1 : call.batch, rows, problem.num_q_heads};
  const int64_t slots = problem.page_size == 0 ? call.cache_slots : problem.page_size;
  const int64_t cache_size[3] = {call.num_pages, slots, problem.num_kv_heads};
  add("q", call.q,
      extent(rows_size, call.q_stride, problem.head_dim_qk, dtype_bytes(problem.q_type)));
  add("k", call.k,
      extent(cache_size, call.k_stride, problem.head_dim_qk, dtype_bytes(problem.kv_type)));
  add("v", call.v,
      extent(cache_size, call.v_stride, problem.head_dim_v, dtype_bytes(problem.kv_type)));
  add("out", call.out,
      extent(rows_size, call.out_stride, problem.head_dim_v, dtype_bytes(problem.out_type)), true);
  add("lse", call.lse, extent(rows_size, call.lse_stride, 1, 4), true);
  add("kv_len", call.kv_len, 4 * batch);
  add("kv_start", call.kv_start, 4 * batch);
  add("cu_q_len", call.cu_q_len, 4 * (batch + 1));
  add("cache_row", call.cache_row, 4 * batch);
  add("page_indptr", call.page_indptr, 4 * (batch + 1));
  add("last_page_len", call.last_page_len, 4 * batch);
  if (call.page_indptr != nullptr) {
    add("page_indices", call.page_indices, 4 * static_cast<Bytes>(call.page_indptr[call.batch]));
  }
  if (call.block_table != nullptr && call.batch > 0) {
    const int64_t last = (call.batch - 1) * call.block_table_stride + call.block_table_columns;
    add("block_table", call.block_table, 4 * static_cast<Bytes>(last));
  }
  add("sink", call.sink,
      static_cast<Bytes>(problem.num_q_heads) * static_cast<Bytes>(dtype_bytes(problem.sink_type)));
  return ranges;
}

}  // namespace deuce::emulator
