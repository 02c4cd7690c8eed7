// SPDX-License-Identifier: Apache-2.0
// Arguments of one launch of the Hopper kernel, as the host fills them and every role reads them.
// Tensor maps come first (64-byte aligned); all strides are in elements.
#pragma once

#include <cstdint>

#include "kernel/divide.h"
#include "kernel/fault_word.h"
#include "kernel/machine.h"
#include "kernel/sink.h"

namespace deuce::hopper {

/// Positions from here on are refused, as lengths that the cache cannot hold: a position and a
/// window of 2^29 then add up in 32 bits.
inline constexpr int64_t kMaxCapacity = int64_t{1} << 30;

struct alignas(64) Params {
  TensorMap k_map, v_map;  // dimensions (element, slot, half, KV head, page or cache row)

  // --- work ---
  int32_t batch = 0, kv_heads = 1, group = 1;
  // Keys a row sees around its own position, both ends inclusive; open and causal are values too.
  int32_t window_left = 0, window_right = 0;
  int32_t q_len = 0;  // rows a request when cu_q_len is null
  FastDivide by_group, by_page, by_workers;
  // Where all requests of a step are equally long, which the device sees: workers that take part, a
  // multiple of the items, and how many share an item, each a part of no other. 0: never.
  FastDivide by_used_workers, by_workers_per_item;
  int32_t workers_per_item = 0;
  int32_t kv_len_all = 0;  // when kv_len is null
  int32_t max_kv_len = 0, max_q_len = 0;
  int64_t capacity = 0;     // tokens a request can hold: table columns x page, or slots; to 2^30
  int32_t num_splits = 0;   // n > 0: every item in n parts
  int32_t split_tiles = 0;  // n > 0: borders at multiples of n tiles (split_kv_len)
  FastDivide by_split;
  const int32_t *kv_len = nullptr, *kv_start = nullptr,
                *cu_q_len = nullptr;  // [batch], [batch + 1]

  // The launch may start before the kernel before it has ended (DEUCE_FLAG_PDL in deuce.h).
  int32_t starts_early = 0;

  // --- cache ---
  int32_t page_size = 0;             // slots of a page; a contiguous cache is one page a row
  int32_t paged = 0, num_pages = 0;  // pages of the pool, or rows of the contiguous cache
  int32_t box_rows = 0;              // slots of one TMA box: a power of two that divides the page
  int32_t box_halves = 0;            // 128-byte columns that one box fetches
  int32_t boxes_per_half = 0, boxes_per_tile = 0;  // powers of two
  int32_t boxes_per_tile_log2 = 0;
  // The load warps take 32 boxes at a time: many tiles a round, or several rounds a tile.
  int32_t tiles_per_round = 1, rounds_per_tile = 1;
  // For copies of single slots, where a box would be too small: element 0, and bytes from one page,
  // slot and KV head to the next.
  const unsigned char *k_data = nullptr, *v_data = nullptr;
  int64_t k_step[3] = {}, v_step[3] = {};
  const int32_t* block_table = nullptr;  // [batch, columns]
  int64_t block_table_stride = 0;
  const int32_t *page_indptr = nullptr, *page_indices = nullptr, *last_page_len = nullptr;
  const int32_t* cache_row = nullptr;  // [batch] or null
  int32_t shared_row = 0;              // all requests use cache row 0

  // --- queries and results ---
  const void* q = nullptr;  // [request, row, head, head_dim]
  void* out = nullptr;      // likewise
  float* lse = nullptr;     // [request, row, head] or null
  int64_t q_stride[3] = {}, out_stride[3] = {}, lse_stride[3] = {};
  int32_t q_is_bf16 = 0;  // with an e4m3 cache: q is bf16, else half
  FloatType out_element = FloatType::f32;
  Sinks sinks;
  float lse_factor = 1;  // from base 2 to the base asked for
  float scale_log2 = 0;  // softmax scale x score_scale x log2(e); without softcap
  float softcap = 0,
        softcap_scale = 0;  // cap, and scale / cap: s = cap tanh(s_raw * softcap_scale)
  float out_scale = 1;
  const float *k_descale = nullptr, *v_descale = nullptr;  // [batch, KV head] or null
  int64_t k_descale_stride[2] = {}, v_descale_stride[2] = {};

  // --- workspace ---
  int32_t max_row_tiles = 1;      // of a request
  int32_t slots = 0;              // of partials
  int32_t tree_levels = 0;        // with split_tiles
  uint32_t* arrivals = nullptr;   // [slots and items, attend warps], see States::last_to_arrive
  float* partials = nullptr;      // [slots, rows, head_dim], not normalised
  float* partial_rows = nullptr;  // [slots, rows, 2]: maximum (log2 domain), sum
  FaultWord* fault = nullptr;     // mapped host memory, or null
  uint32_t tag = 0;
};

}  // namespace deuce::hopper
