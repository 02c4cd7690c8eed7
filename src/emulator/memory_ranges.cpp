// SPDX-License-Identifier: Apache-2.0
// The caller's arrays; see memory_ranges.h.
#include "emulator/memory_ranges.h"

#include <algorithm>
#include <cstdlib>

#include "plan/cache_view.h"

namespace deuce::emulator {
namespace {

using Bytes = std::size_t;

/// Whether bytes offset .. offset + count - 1 lie in one run of the repeats from `axis` on.
bool in_run(const GlobalRange& range, std::size_t axis, int64_t offset, int64_t count) {
  const auto run = static_cast<int64_t>(range.bytes);
  if (offset < 0) return false;
  if (axis == range.repeats.size()) return offset + count <= run;
  const Repeat& repeat = range.repeats[axis];
  if (repeat.count == 1) return in_run(range, axis + 1, offset, count);
  // Runs of the inner repeats end `reach` behind their first byte: only so many steps come close.
  int64_t reach = run;
  for (std::size_t i = axis + 1; i < range.repeats.size(); ++i) {
    reach += (range.repeats[i].count - 1) * range.repeats[i].stride_bytes;
  }
  const int64_t last = std::min(offset / repeat.stride_bytes, repeat.count - 1);
  for (int64_t step = last; step >= 0 && offset - step * repeat.stride_bytes < reach; --step) {
    if (in_run(range, axis + 1, offset - step * repeat.stride_bytes, count)) return true;
  }
  return false;
}

}  // namespace

bool GlobalRange::contains(const void* address, std::size_t count) const {
  const auto at = reinterpret_cast<uintptr_t>(address), first = reinterpret_cast<uintptr_t>(base);
  return at >= first &&
         in_run(*this, 0, static_cast<int64_t>(at - first), static_cast<int64_t>(count));
}

GlobalRange for_strides(const char* name, const void* base, const int64_t (&size)[3],
                        const int64_t (&stride)[3], int64_t inner, int element_bytes,
                        bool writable) {
  GlobalRange range{name, base, static_cast<Bytes>(inner * element_bytes), writable};
  int64_t first = 0;  // of the run at the lowest address, in bytes
  for (std::size_t i = 0; i < 3; ++i) {
    const int64_t step = stride[i] * element_bytes;
    if (size[i] <= 0) range.bytes = 0;
    if (size[i] <= 1 || step == 0) continue;  // one run, or the same run again
    range.repeats[i] = {size[i], std::abs(step)};
    if (step < 0) first += (size[i] - 1) * step;
  }
  range.base = static_cast<const std::byte*>(base) + first;
  std::sort(range.repeats.begin(), range.repeats.end(),
            [](const Repeat& a, const Repeat& b) { return a.stride_bytes > b.stride_bytes; });
  // Runs without a gap between them are one: an access may go from one to the next.
  for (auto repeat = range.repeats.rbegin(); repeat != range.repeats.rend(); ++repeat) {
    if (repeat->count == 1) continue;
    if (repeat->stride_bytes != static_cast<int64_t>(range.bytes)) break;
    range.bytes *= static_cast<Bytes>(repeat->count);
    *repeat = {};
  }
  return range;
}

std::vector<GlobalRange> memory_ranges(const Problem& problem, const Call& call) {
  std::vector<GlobalRange> ranges;
  const auto add = [&](const char* name, const void* base, Bytes bytes) {
    if (base != nullptr && bytes > 0) ranges.push_back({name, base, bytes, false});
  };
  const auto add_strided = [&](const char* name, const void* base, const int64_t(&size)[3],
                               const int64_t(&stride)[3], int64_t inner, DType type,
                               bool writable = false) {
    if (base == nullptr) return;
    ranges.push_back(for_strides(name, base, size, stride, inner, dtype_bytes(type), writable));
    if (ranges.back().bytes == 0) ranges.pop_back();
  };
  const bool ragged = call.cu_q_len != nullptr;
  const auto batch = static_cast<Bytes>(call.batch);
  const int64_t rows = ragged ? call.cu_q_len[call.batch] : call.q_len;
  const int64_t rows_size[3] = {ragged ? 1 : call.batch, rows, problem.num_q_heads};
  const int64_t slots = problem.page_size == 0 ? call.cache_slots : problem.page_size;
  const int64_t cache_size[3] = {call.num_pages, slots, problem.num_kv_heads};
  const DType kv = problem.kv_type, out = problem.out_type;
  add_strided("q", call.q, rows_size, call.q_stride, problem.head_dim_qk, problem.q_type);
  add_strided("k", call.k, cache_size, call.k_stride, problem.head_dim_qk, kv);
  add_strided("v", call.v, cache_size, call.v_stride, problem.head_dim_v, kv);
  add_strided("out", call.out, rows_size, call.out_stride, problem.head_dim_v, out, true);
  add_strided("lse", call.lse, rows_size, call.lse_stride, 1, DType::f32, true);
  add("kv_len", call.kv_len, 4 * batch);
  add("kv_start", call.kv_start, 4 * batch);
  add("cu_q_len", call.cu_q_len, 4 * (batch + 1));
  add("cache_row", call.cache_row, 4 * batch);
  add("page_indptr", call.page_indptr, 4 * (batch + 1));
  add("last_page_len", call.last_page_len, 4 * batch);
  if (call.page_indptr != nullptr) {
    add("page_indices", call.page_indices, 4 * static_cast<Bytes>(call.page_indptr[call.batch]));
  }
  add_strided("block_table", call.block_table, {call.batch, 1, 1}, {call.block_table_stride, 0, 0},
              call.block_table_columns, DType::f32);  // ids, 4 bytes each
  const int64_t scales[3] = {call.batch, problem.num_kv_heads, 1};
  const auto add_scales = [&](const char* name, const float* base, const int64_t(&stride)[2]) {
    add_strided(name, base, scales, {stride[0], stride[1], 0}, 1, DType::f32);
  };
  add_scales("k_descale", call.k_descale, call.k_descale_stride);
  add_scales("v_descale", call.v_descale, call.v_descale_stride);
  add("sink", call.sink,
      static_cast<Bytes>(problem.num_q_heads) * static_cast<Bytes>(dtype_bytes(problem.sink_type)));
  return ranges;
}

}  // namespace deuce::emulator
