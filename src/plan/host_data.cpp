// SPDX-License-Identifier: Apache-2.0
// One pass over the requests: extents first, then the page ids that a visible key needs.
// Costs a compare per request and per needed page; nothing is allocated unless a fault is found.
#include "plan/host_data.h"

#include <algorithm>

namespace deuce {
namespace {

struct Request {
  int32_t index = 0;
  int64_t q_len = 0;
  int64_t kv_len = 0, kv_start = 0;
  int64_t capacity = 0;               // key slots that its cache row or its table can address
  const int32_t* page_ids = nullptr;  // its first page id
};

Status check_q_len(const Problem& problem, const Call& call, Request& request) {
  if (call.cu_q_len == nullptr) {
    request.q_len = call.q_len;
    return {};
  }
  const int64_t first = call.cu_q_len[request.index], last = call.cu_q_len[request.index + 1];
  request.q_len = last - first;
  if (first < 0) {
    return invalid("cu_q_len", "cu_q_len[{}] is {}: it must be 0 or more", request.index, first);
  }
  if (request.q_len < 0) {
    return invalid("cu_q_len", "cu_q_len[{}] is {} after {}: it must not decrease",
                   request.index + 1, last, first);
  }
  const int64_t longest = std::min<int64_t>(call.q_len, problem.max_q_len);
  if (request.q_len > longest) {
    return invalid("cu_q_len", "cu_q_len gives request {} {} rows: q_len allows {}", request.index,
                   request.q_len, longest);
  }
  return {};
}

// Capacity, first page id and, where the table style implies it, the length.
Status locate_pages(const Problem& problem, const Call& call, Request& request) {
  const int32_t b = request.index;
  if (call.page_indptr == nullptr) {
    request.capacity = int64_t{call.block_table_columns} * problem.page_size;
    if (call.block_table != nullptr)
      request.page_ids = call.block_table + b * call.block_table_stride;
    return {};
  }
  const int64_t first = call.page_indptr[b], last = call.page_indptr[b + 1];
  if (first < 0)
    return invalid("page_indptr", "page_indptr[{}] is {}: it must be 0 or more", b, first);
  if (last < first) {
    return invalid("page_indptr", "page_indptr[{}] is {} after {}: it must not decrease", b + 1,
                   last, first);
  }
  const int64_t pages = last - first;
  request.capacity = pages * problem.page_size;
  if (pages > 0 && call.page_indices == nullptr) {
    return invalid("page_indices", "page_indices is null: request {} has {} pages", b, pages);
  }
  request.page_ids = pages > 0 ? call.page_indices + first : nullptr;
  if (call.kv_len != nullptr) return {};
  if (pages > 0) {
    const int32_t filled = call.last_page_len[b];
    if (filled < 1 || filled > problem.page_size) {
      return invalid("last_page_len", "last_page_len[{}] is {}: it must be in 1 .. {}", b, filled,
                     problem.page_size);
    }
    request.kv_len = (pages - 1) * problem.page_size + filled;
  }
  return {};
}

Status locate_row(const Call& call, Request& request) {
  request.capacity = call.cache_slots;
  if (call.cache_row == nullptr) return {};
  const int32_t row = call.cache_row[request.index];
  if (row < 0 || row >= call.num_pages) {
    return invalid("cache_row", "cache_row[{}] is {}: it must be in 0 .. {}", request.index, row,
                   call.num_pages - 1);
  }
  return {};
}

Status check_lengths(const Problem& problem, const Call& call, Request& request) {
  const int32_t b = request.index;
  if (call.kv_len != nullptr) {
    request.kv_len = call.kv_len[b];
  } else if (call.page_indptr == nullptr) {
    request.kv_len = call.kv_len_all;
  }
  if (request.kv_len < 0 || request.kv_len > request.capacity) {
    return invalid("kv_len", "kv_len[{}] is {}: it must be in 0 .. {}, the slots of its {}", b,
                   request.kv_len, request.capacity,
                   problem.page_size > 0 ? "page table" : "cache row");
  }
  request.kv_start = call.kv_start != nullptr ? call.kv_start[b] : 0;
  if (request.kv_start < 0 || request.kv_start > request.kv_len) {
    return invalid("kv_start", "kv_start[{}] is {}: it must be in 0 .. kv_len, {}", b,
                   request.kv_start, request.kv_len);
  }
  if (request.kv_len - request.kv_start > problem.max_kv_len) {
    return invalid("kv_len", "kv_len[{}] gives {} live keys: the plan's max_kv_len is {}", b,
                   request.kv_len - request.kv_start, problem.max_kv_len);
  }
  return {};
}

// First slot that some row of the request sees; the last one is always kv_len - 1.
int64_t first_visible(const Problem& problem, const Request& request) {
  if (problem.window_left < 0) return request.kv_start;
  return std::max(request.kv_start, request.kv_len - request.q_len - problem.window_left);
}

Status check_pages(const Problem& problem, const Call& call, const Request& request) {
  const int64_t first_slot = first_visible(problem, request);
  if (request.q_len == 0 || first_slot >= request.kv_len) return {};
  const int64_t first = first_slot / problem.page_size;
  const int64_t last = (request.kv_len - 1) / problem.page_size;
  // Sign bit of the union: set when an id is negative or above the last page. Branch-free, so that
  // it runs at the speed of the loads.
  const uint32_t last_page = static_cast<uint32_t>(call.num_pages) - 1u;
  uint32_t outside = call.num_pages == 0 ? 1u << 31 : 0u;
  for (int64_t column = first; column <= last; ++column) {
    const auto id = static_cast<uint32_t>(request.page_ids[column]);
    outside |= id | (last_page - id);
  }
  if (outside >> 31 == 0) return {};
  const char* field = call.page_indptr != nullptr ? "page_indices" : "block_table";
  for (int64_t column = first; column <= last; ++column) {
    const int32_t id = request.page_ids[column];
    if (id >= 0 && id < call.num_pages) continue;
    return invalid(field, "{} of request {}, column {} is {}: it must be in 0 .. {}", field,
                   request.index, column, id, call.num_pages - 1);
  }
  return {};
}

}  // namespace

Status check_host_data(const Problem& problem, const Call& call) {
  for (int32_t b = 0; b < call.batch; ++b) {
    Request request;
    request.index = b;
    if (Status bad = check_q_len(problem, call, request); !bad.ok()) return bad;
    Status located =
        problem.page_size > 0 ? locate_pages(problem, call, request) : locate_row(call, request);
    if (!located.ok()) return located;
    if (Status bad = check_lengths(problem, call, request); !bad.ok()) return bad;
    if (problem.page_size == 0) continue;
    if (Status bad = check_pages(problem, call, request); !bad.ok()) return bad;
  }
  return {};
}

}  // namespace deuce
