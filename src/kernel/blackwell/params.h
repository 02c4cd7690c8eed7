// SPDX-License-Identifier: Apache-2.0
// Arguments of one launch of the Blackwell decode kernel, by value in constant memory.
// Filled by the launchers of src/gpu and src/emulator; live lengths and page ids are read through
// the pointers, on the device.
#pragma once

#include <array>
#include <cstdint>

#include "kernel/fault_word.h"
#include "kernel/machine.h"
#include "kernel/partials.h"
#include "kernel/sink.h"
#include "kernel/work.h"

namespace deuce::blackwell {

/// Boxes have heights 1, 2, 4 .. 128 rows; a map per height.
inline constexpr int kBoxHeights = 8;

/// Rows that a partial has room for: even, so that every slot begins on 16 bytes.
constexpr int64_t partial_rows(const WorkShape& shape) { return (shape.row_tile + 1) / 2 * 2; }

struct Params {
  TensorMap q_map;                           // (column, head in group, token, KV head, request)
  std::array<TensorMap, kBoxHeights> k_map;  // (column, slot, KV head, page), box 64 x 2^i
  std::array<TensorMap, kBoxHeights> v_map;

  WorkShape shape;
  PartialMap partial_map;
  float* partials = nullptr;
  uint32_t* counters = nullptr;

  // Live sizes; null pointers mean the uniform value.
  const int32_t* kv_len = nullptr;
  const int32_t* kv_start = nullptr;
  const int32_t* cu_q_len = nullptr;  // [batch + 1]
  int64_t kv_len_all = 0;
  int32_t q_len = 1, max_q_len = 1;

  // Cache: a contiguous cache is a pool of long pages, one per cache row.
  const int32_t* page_ids = nullptr;  // [request][page], null = identity
  int64_t page_ids_stride = 0;
  const int32_t* page_indptr = nullptr;    // [batch + 1]: where a request's ids begin, in place of
                                           // the stride
  const int32_t* last_page_len = nullptr;  // [batch], gives the length where kv_len is null
  int32_t page_size = 0;
  int32_t num_pages = 0;
  int64_t capacity = 0;    // keys that a request can have
  int64_t max_kv_len = 0;  // live keys that a request may have, as planned
  bool paged = false;

  FaultWord* fault = nullptr;  // mapped host memory, or null
  uint32_t tag = 0;            // the caller's mark in a fault record

  // Results.
  void* out = nullptr;  // 16-bit elements like q
  float* lse = nullptr;
  int64_t out_stride_request = 0, out_stride_row = 0, out_stride_head = 0;
  int64_t lse_stride_request = 0, lse_stride_row = 0, lse_stride_head = 0;
  bool lse_base2 = false;

  // Numbers.
  float score_scale = 1;  // natural: softmax_scale * factors, may be negative
  float softcap = 0;      // 0 = off
  float out_factor = 1;
  Sinks sinks;
  int32_t query_tokens = 1;  // tokens of a row tile: 128 / group, at most max_q_len
};

}  // namespace deuce::blackwell
