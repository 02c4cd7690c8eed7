// SPDX-License-Identifier: Apache-2.0
// Where the rows and keys of a call lie: lengths, rows, pages and element offsets of every cache
// and page-table style (block table, indptr / indices / last page, contiguous).
// Used by validation and by the backends that run on host memory. It must hold that every product
// of an id, a position and a stride is 64-bit from its first factor.
#pragma once

#include <cstdint>

#include "plan/problem.h"

namespace deuce {

/// Keys or rows first .. last - 1; empty when last <= first.
struct IndexRange {
  int64_t first = 0, last = 0;
  int64_t count() const { return last > first ? last - first : 0; }
};

/// One slot of the cache: the page (or the row of a contiguous cache) and the slot inside it.
struct SlotPlace {
  int64_t page = 0, slot = 0;
};

/// Read-only view of a call. `problem` and `call` must outlive it; request indices are 0 ..
/// batch-1. Nothing here checks values: validation reads through the same functions before anything
/// else.
class CacheView {
 public:
  CacheView(const Problem& problem, const Call& call)
      : call_(&call), page_size_(problem.page_size) {}

  bool paged() const { return page_size_ > 0; }
  bool has_indptr() const { return call_->page_indptr != nullptr; }

  /// Length of a request, counted from slot 0. `kv_len` decides where it is given; otherwise the
  /// indptr style derives it from the last page, whose fill is not looked at without any page.
  int64_t kv_len(int64_t request) const {
    if (call_->kv_len != nullptr) return call_->kv_len[request];
    if (!has_indptr()) return call_->kv_len_all;
    const int64_t pages = column_count(request);
    return pages <= 0 ? 0 : (pages - 1) * page_size_ + call_->last_page_len[request];
  }
  int64_t kv_start(int64_t request) const {
    return call_->kv_start != nullptr ? call_->kv_start[request] : 0;
  }
  /// Slots that hold live keys, as logical positions.
  IndexRange live(int64_t request) const { return {kv_start(request), kv_len(request)}; }

  /// Page ids that belong to a request; 0 for a contiguous cache.
  int64_t column_count(int64_t request) const {
    if (!paged()) return 0;
    if (!has_indptr()) return call_->block_table_columns;
    return int64_t{call_->page_indptr[request + 1]} - call_->page_indptr[request];
  }
  /// Slots that the request's table row or cache row can address.
  int64_t capacity(int64_t request) const {
    return paged() ? column_count(request) * page_size_ : call_->cache_slots;
  }
  /// Id in a column of the request's page table. Reads the table.
  int64_t page_id(int64_t request, int64_t column) const {
    return has_indptr() ? call_->page_indices[call_->page_indptr[request] + column]
                        : call_->block_table[request * call_->block_table_stride + column];
  }
  /// Row of a contiguous cache that holds the request.
  int64_t cache_row(int64_t request) const {
    return call_->cache_row != nullptr ? call_->cache_row[request] : request;
  }

  /// Where a live slot lies. Reads the page table of a paged cache.
  SlotPlace place(int64_t request, int64_t position) const {
    if (!paged()) return {cache_row(request), position};
    return {page_id(request, position / page_size_), position % page_size_};
  }
  /// Slots from `position` on that follow each other at the slot stride: the rest of the page.
  int64_t run_length(int64_t request, int64_t position) const {
    if (!paged()) return capacity(request) - position;
    return page_size_ - position % page_size_;
  }

  // Element offsets from the base pointers; head is a KV head.
  int64_t k_offset(SlotPlace place, int64_t head) const {
    return offset(call_->k_stride, place.page, place.slot, head);
  }
  int64_t v_offset(SlotPlace place, int64_t head) const {
    return offset(call_->v_stride, place.page, place.slot, head);
  }
  float k_token_scale(SlotPlace place, int64_t head) const {
    if (call_->k_token_scale == nullptr) return 1;
    return call_->k_token_scale[offset(call_->k_token_scale_stride, place.page, place.slot, head)];
  }
  float v_token_scale(SlotPlace place, int64_t head) const {
    if (call_->v_token_scale == nullptr) return 1;
    return call_->v_token_scale[offset(call_->v_token_scale_stride, place.page, place.slot, head)];
  }

  float q_descale(int64_t request, int64_t kv_head) const {
    return descale(call_->q_descale, call_->q_descale_stride, request, kv_head);
  }
  float k_descale(int64_t request, int64_t kv_head) const {
    return descale(call_->k_descale, call_->k_descale_stride, request, kv_head);
  }
  float v_descale(int64_t request, int64_t kv_head) const {
    return descale(call_->v_descale, call_->v_descale_stride, request, kv_head);
  }

  /// Query rows of a request.
  int64_t q_len(int64_t request) const {
    return call_->cu_q_len == nullptr
               ? call_->q_len
               : int64_t{call_->cu_q_len[request + 1]} - call_->cu_q_len[request];
  }
  // Element offsets of row `row` of a request; head is a query head. One rule for q, out and lse:
  // packed rows are addressed by their token number alone.
  int64_t q_offset(int64_t request, int64_t row, int64_t head) const {
    return row_offset(call_->q_stride, request, row, head);
  }
  int64_t out_offset(int64_t request, int64_t row, int64_t head) const {
    return row_offset(call_->out_stride, request, row, head);
  }
  int64_t lse_offset(int64_t request, int64_t row, int64_t head) const {
    return row_offset(call_->lse_stride, request, row, head);
  }

 private:
  static int64_t offset(const int64_t (&stride)[3], int64_t a, int64_t b, int64_t c) {
    return a * stride[0] + b * stride[1] + c * stride[2];
  }
  static float descale(const float* values, const int64_t (&stride)[2], int64_t a, int64_t b) {
    return values == nullptr ? 1.0F : values[a * stride[0] + b * stride[1]];
  }
  int64_t row_offset(const int64_t (&stride)[3], int64_t request, int64_t row, int64_t head) const {
    if (call_->cu_q_len == nullptr) return offset(stride, request, row, head);
    return offset(stride, 0, call_->cu_q_len[request] + row, head);
  }

  const Call* call_;
  int64_t page_size_;
};

}  // namespace deuce
