// SPDX-License-Identifier: Apache-2.0
// The load role: K and V tiles into the ring, in the order in which the mma warp reads them.
// A tile is cut at page borders into boxes of power-of-two height; rows outside the live keys come
// as boxes of a page that does not exist, i.e. as zeros that were never read from memory.
#pragma once

#include "kernel/blackwell/pieces.h"
#include "kernel/ring.h"

namespace deuce::blackwell {

/// One box: rows first .. first + 2^height - 1 of the tile.
struct Box {
  int first, height;
  int32_t page, slot;  // page -1: dead rows
};

/// Cuts the rows of a KV tile into boxes, from row 0 on.
class BoxWalk {
 public:
  /// Keys `begin` .. begin + 127 of a request whose live keys are `live`.
  DEUCE_DEVICE BoxWalk(int64_t begin, const KeySpan& live, int32_t page_size)
      : page_size_(page_size) {
    live_first_ = static_cast<int>(max64(0, min64(128, live.first - begin)));
    live_last_ = static_cast<int>(max64(live_first_, min64(128, live.last - begin)));
    const int64_t first = begin + live_first_;
    page_ = static_cast<int32_t>(first / page_size);
    slot_ = static_cast<int32_t>(first - int64_t{page_} * page_size);
  }
  DEUCE_DEVICE bool next(Box& box) {
    if (row_ == 128) return false;
    const bool live = row_ >= live_first_ && row_ < live_last_;
    int rows = (live ? live_last_ : row_ < live_first_ ? live_first_ : 128) - row_;
    if (live && rows > page_size_ - slot_) rows = page_size_ - slot_;
    int height = kBoxHeights - 1;
    while ((1 << height) > rows) --height;
    box = Box{row_, height, live ? page_ : -1, live ? slot_ : 0};
    row_ += 1 << height;
    if (live) slot_ += 1 << height;
    if (slot_ == page_size_) {
      slot_ = 0;
      ++page_;
    }
    return true;
  }

 private:
  int row_ = 0, live_first_, live_last_;
  int32_t page_size_, page_, slot_;
};

template <Config kConfig, class Machine>
class Load {
 public:
  DEUCE_DEVICE Load(Machine& machine, SharedStorage<kConfig>& shared, const Params& params)
      : machine_(machine), shared_(shared), params_(params) {}

  DEUCE_DEVICE void run() {
    constexpr int kAhead = kConfig.score_slots - 1;
    Pieces<kConfig, Machine> pieces(machine_, shared_);
    int first_block = 0;  // running number of the piece's first KV block
    for (PieceRecord piece; pieces.next(piece);) {
      const int blocks = piece.blocks();
      live_ = visible_span(piece);
      const auto put = [&](char tensor, int j) {
        machine_.at_block(first_block + j);
        put_tile(piece, tensor, piece.tile_last - 1 - j, first_block + j);
      };
      for (int j = 0; j < kAhead && j < blocks; ++j) put('k', j);
      for (int j = 0; j < blocks; ++j) {
        if (j + kAhead < blocks) put('k', j + kAhead);
        put('v', j);
      }
      first_block += blocks;
    }
    drain();
  }

 private:
  /// Keys that some row of the item sees. All others are dead: their slots may hold anything.
  DEUCE_DEVICE KeySpan visible_span(const PieceRecord& piece) const {
    const WorkShape& shape = params_.shape;
    const int32_t first = piece.row_tile * shape.row_tile;
    return visible_keys(shape.mask, piece.sizes(), first / shape.group,
                        (first + piece.rows - 1) / shape.group);
  }

  DEUCE_DEVICE static Event issue_of(char tensor) {
    return tensor == 'k' ? Event::tma_issue_K : Event::tma_issue_V;
  }

  DEUCE_DEVICE void put_tile(const PieceRecord& piece, char tensor, int32_t tile, int block) {
    const int slot = ring_.slot();
    if constexpr (Machine::kTraces)
      machine_.trace_begin({Event::tma_wait, ring_.slot(), ring_.phase(), block});
    machine_.wait(shared_.kv_released[slot], ring_.phase());
    if constexpr (Machine::kTraces) machine_.trace_end({Event::tma_wait});
    if constexpr (Machine::kTraces)
      machine_.trace_begin({issue_of(tensor), ring_.slot(), ring_.phase(), block});
    Barrier& arrived = shared_.kv_arrived[slot];
    if (machine_.elect()) machine_.arrive_expect(arrived, kConfig.tile_bytes());
    machine_.sync_warp();
    machine_.mark_operand(tensor, block);
    const int64_t begin = piece.kv_start + int64_t{tile} * Config::kTileRows;
    BoxWalk walk(begin, live_, params_.page_size);
    const auto& maps = tensor == 'k' ? params_.k_map : params_.v_map;
    int number = 0;
    for (Box box; walk.next(box); ++number) {
      if (number % 32 != machine_.lane()) continue;
      const int32_t page = page_id(piece.request, box.page);
      for (int part = 0; part < kConfig.head_dim / Config::kBlockColumns; ++part) {
        unsigned char* target =
            shared_.kv[slot].bytes + part * 128 * Config::kTileRows + 128 * box.first;
        const int32_t coordinate[4] = {Config::kBlockColumns * part, box.slot, piece.kv_head, page};
        machine_.copy_tensor(target, maps[static_cast<std::size_t>(box.height)], coordinate,
                             arrived);
      }
    }
    machine_.sync_warp();
    if constexpr (Machine::kTraces) machine_.trace_end({issue_of(tensor)});
    ring_.advance();
  }

  /// Page of the pool, or one past its end for rows that must arrive as zeros.
  DEUCE_DEVICE int32_t page_id(int32_t request, int32_t page) {
    if (page < 0) return params_.num_pages;
    // Without ids a request has a row of its own, or all share the one that there is.
    if (params_.page_ids == nullptr) return request < params_.num_pages ? request : 0;
    const int64_t first = params_.page_indptr != nullptr
                              ? machine_.load_constant(params_.page_indptr + request)
                              : request * params_.page_ids_stride;
    const int32_t id = machine_.load_constant(params_.page_ids + first + page);
    if (id >= 0 && id < params_.num_pages) return id;
    report_fault(machine_, params_.fault, params_.paged ? FaultCode::page_id : FaultCode::cache_row,
                 FaultRecord{.request = request,
                             .column = params_.paged ? page : -1,
                             .value = id,
                             .highest = params_.num_pages - 1,
                             .tag = params_.tag});
    return params_.num_pages;
  }

  /// Stays until the last tiles have been read: their commits must find the block alive.
  DEUCE_DEVICE void drain() {
    for (int i = 0; i < kConfig.ring_slots(); ++i) {
      if constexpr (Machine::kTraces)
        machine_.trace_begin({Event::tma_wait, ring_.slot(), ring_.phase()});
      machine_.wait(shared_.kv_released[ring_.slot()], ring_.phase());
      if constexpr (Machine::kTraces) machine_.trace_end({Event::tma_wait});
      ring_.advance();
    }
  }

  Machine& machine_;
  SharedStorage<kConfig>& shared_;
  const Params& params_;
  KeySpan live_ = {};  // of the piece
  Ring<kConfig.ring_slots()> ring_ = Ring<kConfig.ring_slots()>::producer();
};

/// The load_q role: one Q tile per piece, from a warp of its own so that K and V never wait for it.
template <Config kConfig, class Machine>
class LoadQ {
 public:
  DEUCE_DEVICE LoadQ(Machine& machine, SharedStorage<kConfig>& shared, const Params& params)
      : machine_(machine), shared_(shared), params_(params) {}

  DEUCE_DEVICE void run() {
    Pieces<kConfig, Machine> pieces(machine_, shared_);
    auto ring = Ring<Config::kQueryStages>::producer();
    for (PieceRecord piece; pieces.next(piece); ring.advance()) {
      if constexpr (Machine::kTraces)
        machine_.trace_begin({Event::tma_wait_Q, ring.slot(), ring.phase()});
      machine_.wait(shared_.q_released[ring.slot()], ring.phase());
      if constexpr (Machine::kTraces) machine_.trace_end({Event::tma_wait_Q});
      machine_.mark_operand('q', -1);
      if constexpr (Machine::kTraces)
        machine_.trace_begin({Event::tma_issue_Q, ring.slot(), ring.phase()});
      put_rows(piece, ring.slot());
      if constexpr (Machine::kTraces) machine_.trace_end({Event::tma_issue_Q});
    }
    for (int i = 0; i < Config::kQueryStages; ++i) {
      if constexpr (Machine::kTraces)
        machine_.trace_begin({Event::tma_wait_Q, ring.slot(), ring.phase()});
      machine_.wait(shared_.q_released[ring.slot()], ring.phase());
      if constexpr (Machine::kTraces) machine_.trace_end({Event::tma_wait_Q});
      ring.advance();
    }
  }

 private:
  /// Every replica of the rows gets the same boxes.
  /// Uniform queries come in one box, whose missing tokens are zeros. Ragged ones come token by
  /// token, because nobody knows on the host where the last one ends; rows behind them keep what an
  /// earlier piece left, and are never stored.
  DEUCE_DEVICE void put_rows(const PieceRecord& piece, int stage) {
    const bool ragged = params_.cu_q_len != nullptr;
    const int32_t group = params_.shape.group;
    const int32_t tokens = ragged ? piece.rows / group : params_.query_tokens;
    const int32_t boxes = ragged ? tokens : 1;
    Barrier& arrived = shared_.q_arrived[stage];
    if (machine_.elect()) {
      machine_.arrive_expect(arrived, static_cast<uint32_t>(kConfig.row_replicas * 2 *
                                                            kConfig.head_dim * group * tokens));
    }
    machine_.sync_warp();
    const int32_t first = piece.first_token + piece.row_tile * params_.query_tokens;
    for (int32_t i = machine_.lane(); i < kConfig.row_replicas * boxes; i += 32) {
      const int32_t box = i / kConfig.row_replicas;
      const int32_t row = i % kConfig.row_replicas * kConfig.rows_per_replica() + box * group;
      for (int part = 0; part < kConfig.head_dim / Config::kBlockColumns; ++part) {
        const int32_t coordinate[5] = {Config::kBlockColumns * part, 0, first + box, piece.kv_head,
                                       ragged ? 0 : piece.request};
        machine_.copy_tensor(shared_.q[stage].bytes + part * 128 * Config::kTileRows + 128 * row,
                             params_.q_map, coordinate, arrived);
      }
    }
    machine_.sync_warp();
  }

  Machine& machine_;
  SharedStorage<kConfig>& shared_;
  const Params& params_;
};

}  // namespace deuce::blackwell
