// SPDX-License-Identifier: Apache-2.0
// One pass over the requests: extents first, then the page ids that a visible key needs.
// Costs a few compares per request and two operations per needed page id; nothing is allocated
// unless a fault is found.
#include "plan/host_data.h"

#include <algorithm>

#include "plan/cache_view.h"

namespace deuce {
namespace {

Status descending(const char* field, const int32_t* offsets, int64_t request) {
  if (offsets[request] < 0) {
    return invalid(field, "{}[{}] is {}: it must be 0 or more", field, request, offsets[request]);
  }
  return invalid(field, "{}[{}] is {} after {}: it must not decrease", field, request + 1,
                 offsets[request + 1], offsets[request]);
}

bool ascends_from_zero(const int32_t* offsets, int64_t request) {
  return offsets[request] >= 0 && offsets[request + 1] >= offsets[request];
}

Status check_q_len(const Call& call, const CacheView& view, int64_t request) {
  if (call.cu_q_len == nullptr) return {};
  if (!ascends_from_zero(call.cu_q_len, request)) {
    return descending("cu_q_len", call.cu_q_len, request);
  }
  if (view.q_len(request) > call.q_len) {
    return invalid("cu_q_len", "cu_q_len gives request {} {} rows: q_len allows {}", request,
                   view.q_len(request), call.q_len);
  }
  return {};
}

// Makes every later look at the request's part of the table or cache legal.
Status check_place(const Problem& problem, const Call& call, const CacheView& view,
                   int64_t request) {
  if (!view.paged()) {
    const int64_t row = view.cache_row(request);
    if (call.cache_row == nullptr || (row >= 0 && row < call.num_pages)) return {};
    return invalid("cache_row", "cache_row[{}] is {}: it must be in 0 .. {}", request, row,
                   call.num_pages - 1);
  }
  if (!view.has_indptr()) return {};
  if (!ascends_from_zero(call.page_indptr, request)) {
    return descending("page_indptr", call.page_indptr, request);
  }
  const int64_t pages = view.column_count(request);
  if (pages == 0) return {};
  if (call.page_indices == nullptr) {
    return invalid("page_indices", "page_indices is null: request {} has {} pages", request, pages);
  }
  if (call.kv_len != nullptr) return {};
  const int32_t filled = call.last_page_len[request];
  if (filled < 1 || filled > problem.page_size) {
    return invalid("last_page_len", "last_page_len[{}] is {}: it must be in 1 .. {}", request,
                   filled, problem.page_size);
  }
  return {};
}

// The argument that says how long requests are.
const char* length_field(const Call& call) {
  if (call.kv_len != nullptr) return "kv_len";
  return call.page_indptr != nullptr ? "last_page_len" : "kv_len_all";
}

Status check_lengths(const Problem& problem, const Call& call, const CacheView& view,
                     int64_t request) {
  const int64_t kv_len = view.kv_len(request), kv_start = view.kv_start(request);
  const int64_t capacity = view.capacity(request);
  if (kv_len < 0 || kv_len > capacity) {
    return invalid("kv_len", "kv_len[{}] is {}: it must be in 0 .. {}, the slots of its {}",
                   request, kv_len, capacity, view.paged() ? "page table row" : "cache row");
  }
  if (kv_start < 0 || kv_start > kv_len) {
    return invalid("kv_start", "kv_start[{}] is {}: it must be in 0 .. {}, the request's length",
                   request, kv_start, kv_len);
  }
  if (kv_len - kv_start > problem.max_kv_len) {
    const char* field = length_field(call);
    return invalid(field, "{} gives request {} {} live keys: the plan's max_kv_len is {}", field,
                   request, kv_len - kv_start, problem.max_kv_len);
  }
  return {};
}

// Columns of the page table that hold a key which some row sees. Rows follow each other by one
// position, so their windows leave no gap; the last row's own position is the last live key.
IndexRange needed_columns(const Problem& problem, const CacheView& view, int64_t request) {
  const int64_t kv_len = view.kv_len(request), q_len = view.q_len(request);
  int64_t first = view.kv_start(request);
  if (problem.window_left >= 0) first = std::max(first, kv_len - q_len - problem.window_left);
  if (q_len == 0 || first >= kv_len) return {};
  return {first / problem.page_size, (kv_len - 1) / problem.page_size + 1};
}

Status check_page_ids(const Problem& problem, const Call& call, const CacheView& view,
                      int64_t request) {
  const IndexRange columns = needed_columns(problem, view, request);
  if (columns.count() == 0) return {};
  if (call.num_pages == 0) {
    return invalid("num_pages", "num_pages is 0: request {} has keys on pages", request);
  }
  const int32_t* ids = view.has_indptr() ? call.page_indices + call.page_indptr[request]
                                         : call.block_table + request * call.block_table_stride;
  // The sign bit of the union is set when an id is negative or above the last page. Branch-free, so
  // that it runs at the speed of the loads.
  const uint32_t last_page = static_cast<uint32_t>(call.num_pages) - 1U;
  uint32_t outside = 0;
  for (int64_t column = columns.first; column < columns.last; ++column) {
    const auto id = static_cast<uint32_t>(ids[column]);
    outside |= id | (last_page - id);
  }
  if (outside >> 31 == 0) return {};

  const int32_t* bad = std::find_if(ids + columns.first, ids + columns.last,
                                    [&](int32_t id) { return id < 0 || id >= call.num_pages; });
  const char* field = view.has_indptr() ? "page_indices" : "block_table";
  return invalid(field, "{} of request {}, column {} is {}: it must be a page id in 0 .. {}", field,
                 request, bad - ids, *bad, call.num_pages - 1);
}

}  // namespace

Status check_host_data(const Problem& problem, const Call& call) {
  const CacheView view(problem, call);
  for (int64_t request = 0; request < call.batch; ++request) {
    Status bad = check_q_len(call, view, request);
    if (bad.ok()) bad = check_place(problem, call, view, request);
    if (bad.ok()) bad = check_lengths(problem, call, view, request);
    if (bad.ok() && view.paged()) bad = check_page_ids(problem, call, view, request);
    if (!bad.ok()) return bad;
  }
  return {};
}

}  // namespace deuce
