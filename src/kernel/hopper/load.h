// SPDX-License-Identifier: Apache-2.0
// Role `load`: two warps, one for K and one for V, bring KV tiles into the ring by TMA boxes, or
// key by key where a box would be too small to land.
// waits for: kv_released
// signals: k_arrived (the K warp), v_arrived (the V warp)
// owns: its cursor and two rounds of boxes; never stops at item borders
// The lanes work out 32 boxes at a time, a round, which is one tile or many, and fetch the page ids
// of the next one meanwhile: what stands between two tiles is a wait and the issue of their boxes.
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
      if (params_.rounds_per_tile == 1) {
        walk_rounds(piece);
      } else {
        walk_tiles(piece);
      }
      if constexpr (Machine::kTraces)
        machine_.trace_end({is_v_ ? Event::tma_issue_V : Event::tma_issue_K});
    }
  }

 private:
  /// Steps of integer arithmetic from one tile to the next, and those of a round: by a trace of an
  /// H200 and by the machine code (docs/emulator.md).
  static constexpr int kTileSteps = 20, kRoundSteps = 30;

  static constexpr int32_t kNoToken = 0x7fffffff;

  /// Of the tile at the cursor: its number in this CTA.
  DEUCE_DEVICE trace::At here(Event event) const {
    const int tile = (ring_.phase() + 1) * kConfig.stages + ring_.slot();
    return {event, ring_.slot(), ring_.phase(), tile};
  }

  /// What the kernel before this one may still be writing lies behind; older tiles need not wait.
  DEUCE_DEVICE void wait_for_new_tokens() {
    machine_.wait_previous_grid();
    has_waited_ = true;
    waits_from_ = kNoToken;
  }

  DEUCE_DEVICE void enter(const Piece& piece) {
    head_ = piece.head;
    request_ = piece.request;
    waits_from_ = params_.starts_early != 0 && !has_waited_ ? piece.shape.kv_end - piece.shape.q_len
                                                            : kNoToken;
    live_ = {
        visible_keys(params_, piece.shape, params_.by_group.quotient(piece.rows.first)).first,
        visible_keys(params_, piece.shape, params_.by_group.quotient(piece.rows.last - 1)).last};
    if (params_.paged == 0) {
      row_ = params_.shared_row != 0        ? 0
             : params_.cache_row != nullptr ? machine_.load_constant(params_.cache_row + request_)
                                            : request_;
    } else {
      pages_ = params_.page_indptr != nullptr
                   ? params_.page_indices + machine_.load_constant(params_.page_indptr + request_)
                   : params_.block_table + request_ * params_.block_table_stride;
    }
    first_ = piece.shape.grid_begin + piece.tile * kTileTokens;
    number_ = machine_.lane();
    fetch_round();
  }

  /// A box: its first key, its column of 128 bytes, its place in a tile of shared memory.
  struct Box {
    int32_t begin, half, place;
  };
  /// By its number in the piece.
  DEUCE_DEVICE Box box_of(int number) const {
    const int part = number & (params_.boxes_per_tile - 1);
    const int ahead = (part & (params_.boxes_per_half - 1)) * params_.box_rows;
    const int half = part < params_.boxes_per_half ? 0 : 1;
    return {first_ + (number >> params_.boxes_per_tile_log2) * kTileTokens + ahead, half,
            (half * kTileTokens + ahead * params_.box_halves) * kConfig.span_bytes()};
  }
  /// Page, or row of a contiguous cache, that holds a box. Without a visible key the table is not
  /// read and num_pages returned, which lies beyond the pool: such a box arrives as zeros.
  DEUCE_DEVICE int32_t page_of(int32_t begin) const {
    if (!is_live(begin)) return params_.num_pages;
    return params_.paged != 0 ? machine_.load_constant(pages_ + params_.by_page.quotient(begin))
                              : row_;
  }
  DEUCE_DEVICE bool is_live(int32_t begin) const {
    return begin < live_.last && begin + params_.box_rows > live_.first;
  }

  /// Warp. Coordinates of the boxes of the next round, one a lane.
  DEUCE_DEVICE void next_round() {
    machine_.charge(Work::dependent, kRoundSteps);
    box_ = next_box_;
    page_ = next_page_;
    const int32_t column = params_.by_page.quotient(box_.begin);
    const bool bad = is_live(box_.begin) &&
                     static_cast<uint32_t>(page_) >= static_cast<uint32_t>(params_.num_pages);
    bad_ = machine_.any(bad);
    if (bad && !is_v_ && box_.half == 0) report_page(column, page_);
    box_.begin -= column * params_.page_size;
  }
  /// What a later call of next_round() will take.
  DEUCE_DEVICE void fetch_round() {
    next_box_ = box_of(number_);
    next_page_ = page_of(next_box_.begin);
    number_ += 32;
  }

  /// A round is one tile or many.
  DEUCE_DEVICE void walk_rounds(const Piece& piece) {
    DEUCE_ROLLED
    for (int32_t tile = 0; tile < piece.tiles;) {
      next_round();
      const int32_t first = tile, end = min_of(tile + params_.tiles_per_round, piece.tiles);
      const int turn = machine_.lane() >> params_.boxes_per_tile_log2;
      DEUCE_ROLLED
      for (; tile < end; ++tile) {
        wait_for_slot(tile);
        if (first + turn == tile) issue_box();
        end_tile(kConfig.tile_bytes());
        if (tile != first) continue;
        fetch_round();
        if (is_v_ && tile == 0) prefetch_queries<kConfig>(machine_, params_, piece);
      }
    }
  }
  /// Boxes of one key, or of two where a tile has two columns: several rounds a tile.
  DEUCE_DEVICE void walk_tiles(const Piece& piece) {
    DEUCE_ROLLED
    for (int32_t tile = 0; tile < piece.tiles; ++tile) {
      wait_for_slot(tile);
      bool bad = false;
      uint32_t bytes = 0;
      DEUCE_ROLLED
      for (int round = 0; round < params_.rounds_per_tile; ++round) {
        next_round();
        fetch_round();
        bad = bad || bad_;
        if constexpr (kConfig.has_small_slots()) {
          bytes += issue_slot(machine_.lane() + 32 * round);
        } else {
          issue_box();
        }
      }
      bad_ = bad;
      if constexpr (kConfig.has_small_slots()) {
        machine_.fence_async();
        machine_.sync_warp();
        DEUCE_ROLLED
        for (int mask = 16; mask > 0; mask /= 2) bytes += machine_.shuffle_xor(bytes, mask);
      } else {
        bytes = kConfig.tile_bytes();
      }
      end_tile(bytes);
      if (is_v_ && tile == 0) prefetch_queries<kConfig>(machine_, params_, piece);
    }
  }

  DEUCE_DEVICE void wait_for_slot(int32_t tile) {
    if constexpr (Machine::kTraces) {
      if (tile == 0) {
        machine_.trace_begin(here(Event::tma_wait));
      } else {
        machine_.trace_next(here(Event::tma_wait));
      }
    }
    machine_.wait(shared_.kv_released[ring_.slot()], ring_.phase());
    machine_.charge(Work::dependent, kTileSteps);
    if constexpr (Machine::kTraces)
      machine_.trace_next(here(is_v_ ? Event::tma_issue_V : Event::tma_issue_K));
    if (first_ + (tile + 1) * kTileTokens > waits_from_) wait_for_new_tokens();
  }

  DEUCE_DEVICE unsigned char* tile() const {
    return is_v_ ? shared_.v[ring_.slot()] : shared_.k[ring_.slot()];
  }
  DEUCE_DEVICE Barrier& arrived() const {
    return is_v_ ? shared_.v_arrived[ring_.slot()] : shared_.k_arrived[ring_.slot()];
  }

  DEUCE_DEVICE void issue_box() {
    const int32_t coordinate[5] = {0, box_.begin, box_.half, head_, page_};
    machine_.copy_tensor(tile() + box_.place, is_v_ ? params_.v_map : params_.k_map, coordinate,
                         arrived());
  }

  /// Warp. How many bytes come, and whether some page of the piece does not exist.
  DEUCE_DEVICE void end_tile(uint32_t bytes) {
    machine_.sync_warp();  // lanes whose boxes lie in other tiles have no reason to keep together
    if (machine_.elect()) {
      if (!is_v_) machine_.store_shared(shared_.poisoned[ring_.slot()], bad_ ? 1u : 0u);
      machine_.arrive_expect(arrived(), bytes);
    }
    ring_.advance();
  }

  /// Key `key` of the tile in the 16-byte chunks that the swizzle moves. Without a visible key its
  /// slot is not read, as elsewhere, and becomes zeros. Returns the bytes that come.
  DEUCE_DEVICE uint32_t issue_slot(int key) {
    unsigned char* block = tile() + key / 8 * 8 * kConfig.span_bytes();
    if (static_cast<uint32_t>(page_) >= static_cast<uint32_t>(params_.num_pages)) {
      clear_slot(block, key % 8);
      return 0;
    }
    const int64_t(&step)[3] = is_v_ ? params_.v_step : params_.k_step;
    copy_slot((is_v_ ? params_.v_data : params_.k_data) + head_ * step[2] + page_ * step[0] +
                  box_.begin * step[1],
              block, key % 8, arrived());
    return kConfig.span_bytes();
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
  int32_t waits_from_ = kNoToken;   // position of the request's first new token, until waited for
  bool has_waited_ = false;         // for the grid before this one
  Keys live_;                       // of the item; the rest of its tiles is garbage
  int32_t row_ = 0;                 // contiguous: cache row of the request
  const int32_t* pages_ = nullptr;  // paged: the request's page ids
  int32_t first_ = 0;               // position of the piece's first key
  // Of this lane: number in the piece of the box after the next, then box and page of the next
  // round and of the one at hand, whose `begin` counts from the page's first slot.
  int32_t number_ = 0, next_page_ = 0, page_ = 0;
  Box next_box_{}, box_{};
  bool bad_ = false;  // some box of the round needs a page that does not exist
};

}  // namespace deuce::hopper
