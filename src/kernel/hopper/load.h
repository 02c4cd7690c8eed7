// SPDX-License-Identifier: Apache-2.0
// Role `load`: two warps, one for K and one for V, bring KV tiles into the ring by TMA boxes, or
// key by key where a box would be too small to land.
// waits for: kv_released
// signals: k_arrived (the K warp), v_arrived (the V warp)
// owns: nothing but its cursor; never stops at item borders
// Page ids are fetched 32 columns ahead, one a lane, and the lanes issue boxes in parallel: a
// look-up in the critical path halves the bandwidth.
#pragma once

#include "kernel/hopper/queries.h"
#include "kernel/hopper/schedule.h"
#include "kernel/hopper/shared.h"
#include "kernel/ring.h"

namespace deuce::hopper {

template <Config kConfig, class Machine>
class Load {
 public:
  DEUCE_DEVICE Load(Machine& machine, SharedStorage<kConfig>& shared, const Params& params,
                    bool is_v)
      : machine_(machine), shared_(shared), params_(params), is_v_(is_v) {}

  DEUCE_DEVICE void run(Schedule<kConfig, Machine>& schedule) {
    Piece piece;
    DEUCE_ROLLED
    while (schedule.next(piece)) {
      enter(piece);
      DEUCE_ROLLED
      for (int32_t tile = 0; tile < piece.tiles; ++tile) {
        const int slot = ring_.slot();
        if constexpr (Machine::kTraces) machine_.trace_begin(here(Event::tma_wait));
        machine_.wait(shared_.kv_released[slot], ring_.phase());
        machine_.charge(Work::dependent, kTileSteps);
        if constexpr (Machine::kTraces) {
          machine_.trace_end({Event::tma_wait});
          machine_.trace_begin(here(is_v_ ? Event::tma_issue_V : Event::tma_issue_K));
        }
        const int32_t begin = piece.shape.grid_begin + (piece.tile + tile) * kTileTokens;
        if (begin + kTileTokens > new_from_) wait_for_new_tokens();
        issue_tile(begin, is_v_ ? params_.v_map : params_.k_map,
                   is_v_ ? shared_.v[slot] : shared_.k[slot],
                   is_v_ ? shared_.v_arrived[slot] : shared_.k_arrived[slot]);
        if constexpr (Machine::kTraces)
          machine_.trace_end({is_v_ ? Event::tma_issue_V : Event::tma_issue_K});
        ring_.advance();
        if (is_v_ && tile == 0) prefetch_queries<kConfig>(machine_, params_, piece);
      }
    }
  }

 private:
  /// Steps of integer arithmetic from one tile to the next, and those that a page table adds. In
  /// the machine code (ptxas 13.0, head dim 64 and 128, bf16) 717 cycles stand from the wait of one
  /// tile to that of the next, with the code of pages; 835 did while a tile divided twice.
  static constexpr int kTileSteps = 83, kPagedSteps = 50;

  /// Of the tile at the cursor: its number in this CTA.
  DEUCE_DEVICE trace::At here(Event event) const {
    const int tile = (ring_.phase() + 1) * kConfig.stages + ring_.slot();
    return {event, ring_.slot(), ring_.phase(), tile};
  }

  /// What the kernel before this one may still be writing lies behind; older tiles need not wait.
  DEUCE_DEVICE void wait_for_new_tokens() {
    if (params_.starts_early == 0 || has_waited_) return;
    machine_.wait_previous_grid();
    has_waited_ = true;
  }

  DEUCE_DEVICE void enter(const Piece& piece) {
    head_ = piece.head;
    request_ = piece.request;
    new_from_ = piece.shape.kv_end - piece.shape.q_len;
    live_ = {
        visible_keys(params_, piece.shape, params_.by_group.quotient(piece.rows.first)).first,
        visible_keys(params_, piece.shape, params_.by_group.quotient(piece.rows.last - 1)).last};
    if (params_.paged == 0) {
      row_ = params_.shared_row != 0        ? 0
             : params_.cache_row != nullptr ? machine_.load_constant(params_.cache_row + request_)
                                            : request_;
      return;
    }
    pages_ = params_.page_indptr != nullptr
                 ? params_.page_indices + machine_.load_constant(params_.page_indptr + request_)
                 : params_.block_table + request_ * params_.block_table_stride;
    column_ = params_.by_page.quotient(piece.shape.grid_begin + piece.tile * kTileTokens);
    ids_ = load_ids(column_);
    next_ids_ = load_ids(column_ + 32);
  }

  /// Page ids of 32 table columns, one a lane. Columns without a visible key are not read; they get
  /// num_pages, which lies beyond the pool: such a box reads nothing and arrives as zeros.
  DEUCE_DEVICE int32_t load_ids(int32_t first) const {
    const int32_t column = first + machine_.lane();
    const bool live =
        column >= params_.by_page.quotient(live_.first) && column * params_.page_size < live_.last;
    return live ? machine_.load_constant(pages_ + column) : params_.num_pages;
  }

  DEUCE_DEVICE void issue_tile(int32_t tile_begin, const TensorMap& map, unsigned char* tile,
                               Barrier& arrived) {
    if (params_.paged != 0) {
      machine_.charge(Work::dependent, kPagedSteps);
      DEUCE_ROLLED
      while (params_.by_page.quotient(tile_begin) - column_ >= 32) {
        column_ += 32;
        ids_ = next_ids_;
        next_ids_ = load_ids(column_ + 32);
      }
    }
    if constexpr (kConfig.has_small_slots()) {
      if (params_.box_rows == 1) return issue_slots(tile_begin, tile, arrived);
    }
    bool bad = false;
    const int boxes = params_.boxes_per_half, parts = params_.boxes_per_tile;
    const auto pool = static_cast<uint32_t>(params_.num_pages);
    DEUCE_ROLLED
    for (int first = 0; first < parts; first += 32) {
      const int part = first + machine_.lane(), index = part & (boxes - 1);
      const int32_t begin = tile_begin + index * params_.box_rows;
      const bool live = begin < live_.last && begin + params_.box_rows > live_.first;
      int32_t page = row_, slot = begin;
      if (params_.paged != 0) {
        const int32_t column = params_.by_page.quotient(begin);
        page = page_in(column);
        slot = begin - column * params_.page_size;
        if (part < boxes && live && static_cast<uint32_t>(page) >= pool) {
          bad = true;
          if (!is_v_) report_page(column, page);
        }
      }
      if (!live) page = params_.num_pages;
      if (part < parts) issue_box(map, tile, arrived, index, part < boxes ? 0 : 1, slot, page);
    }
    announce(bad, kConfig.tile_bytes(), arrived);
  }

  /// Warp. Ends the issue of a tile: how many bytes come, and whether some lane met a bad page.
  DEUCE_DEVICE void announce(bool bad, uint32_t bytes, Barrier& arrived) {
    bad = machine_.any(bad);
    if (machine_.elect()) {
      if (!is_v_) machine_.store_shared(shared_.poisoned[ring_.slot()], bad ? 1u : 0u);
      machine_.arrive_expect(arrived, bytes);
    }
  }

  /// Warp. Page id in a column of this lane's choice, among the 64 at hand.
  DEUCE_DEVICE int32_t page_in(int32_t column) const {
    const int32_t ahead = column - column_;
    const auto near = machine_.shuffle(static_cast<uint32_t>(ids_), ahead & 31);
    const auto far = machine_.shuffle(static_cast<uint32_t>(next_ids_), ahead & 31);
    return static_cast<int32_t>(ahead < 32 ? near : far);
  }

  /// Slot by slot, in the 16-byte chunks that the swizzle moves. Slots without a visible key are
  /// not read, as elsewhere; they become zeros.
  DEUCE_DEVICE void issue_slots(int32_t tile_begin, unsigned char* tile, Barrier& arrived) {
    const int64_t(&step)[3] = is_v_ ? params_.v_step : params_.k_step;
    const unsigned char* head = (is_v_ ? params_.v_data : params_.k_data) + head_ * step[2];
    bool bad = false;
    uint32_t bytes = 0;
    DEUCE_ROLLED
    for (int index = machine_.lane(); index < kTileTokens; index += 32) {
      const int32_t position = tile_begin + index;
      const int32_t column = params_.by_page.quotient(position), page = page_in(column);
      unsigned char* block = tile + index / 8 * 8 * kConfig.span_bytes();
      const bool live = position >= live_.first && position < live_.last;
      if (live && static_cast<uint32_t>(page) < static_cast<uint32_t>(params_.num_pages)) {
        const int32_t slot = position - column * params_.page_size;
        copy_slot(head + page * step[0] + slot * step[1], block, index % 8, arrived);
        bytes += kConfig.span_bytes();
        continue;
      }
      clear_slot(block, index % 8);
      if (!live) continue;
      bad = true;
      if (!is_v_) report_page(column, page);
    }
    machine_.fence_async();
    machine_.sync_warp();
    DEUCE_ROLLED
    for (int mask = 16; mask > 0; mask /= 2) bytes += machine_.shuffle_xor(bytes, mask);
    announce(bad, bytes, arrived);
  }

  DEUCE_DEVICE void copy_slot(const unsigned char* slot, unsigned char* block, int key,
                              Barrier& arrived) {
    DEUCE_ROLLED
    for (int chunk = 0; chunk < Stream<kConfig, Machine>::kChunks; ++chunk) {
      machine_.copy_bulk(block + TileLayout<kConfig>::chunk(key, chunk), slot + 16 * chunk, 16,
                         arrived);
    }
  }
  DEUCE_DEVICE void clear_slot(unsigned char* block, int key) {
    DEUCE_ROLLED
    for (int chunk = 0; chunk < Stream<kConfig, Machine>::kChunks; ++chunk) {
      unsigned char* place = block + TileLayout<kConfig>::chunk(key, chunk);
      machine_.store_shared(*reinterpret_cast<Word4*>(place), Word4{});
    }
  }

  DEUCE_DEVICE void issue_box(const TensorMap& map, unsigned char* tile, Barrier& arrived,
                              int index, int half, int32_t slot, int32_t page) {
    const int box_bytes = params_.box_rows * params_.box_halves * kConfig.span_bytes();
    const int32_t coordinate[5] = {0, slot, half, head_, page};
    machine_.copy_tensor(tile + half * kTileTokens * kConfig.span_bytes() + index * box_bytes, map,
                         coordinate, arrived);
  }

  DEUCE_DEVICE void report_page(int32_t column, int32_t page) {
    report_fault(machine_, params_.fault, FaultCode::page_id,
                 FaultRecord{.request = request_,
                             .column = column,
                             .value = page,
                             .highest = params_.num_pages - 1,
                             .tag = params_.tag});
  }

  Machine& machine_;
  SharedStorage<kConfig>& shared_;
  const Params& params_;
  const bool is_v_;
  Ring<kConfig.stages> ring_ = Ring<kConfig.stages>::producer();
  int32_t head_ = 0, request_ = 0;
  int32_t new_from_ = 0;                         // position of the request's first new token
  bool has_waited_ = false;                      // for the grid before this one
  Keys live_;                                    // of the item; the rest of its tiles is garbage
  int32_t row_ = 0;                              // contiguous: cache row of the request
  const int32_t* pages_ = nullptr;               // paged: the request's page ids
  int32_t column_ = 0, ids_ = 0, next_ids_ = 0;  // ids of columns column_ + lane, and 32 later
};

}  // namespace deuce::hopper
