// SPDX-License-Identifier: Apache-2.0
// The pieces of this block: every role walks the same list, from the same live lengths.
// One warp finds the block's stretch of the line of work at kernel start; roles continue from
// there.
#pragma once

#include <array>
#include <bit>

#include "kernel/blackwell/params.h"
#include "kernel/blackwell/shared.h"
#include "kernel/ring.h"

namespace deuce::blackwell {

/// A request as this launch sees it. One with a fault has no keys, so that nothing outside the
/// cache is ever addressed; its rows become NaN.
struct LiveRequest {
  RequestSizes sizes = {};
  FaultCode fault = FaultCode::none;
};

template <class Machine>
DEUCE_DEVICE LiveRequest live_request(Machine& machine, const Params& p, int32_t request) {
  LiveRequest live;
  RequestSizes& sizes = live.sizes;
  sizes = {.kv_start = 0, .kv_len = p.kv_len_all, .q_len = p.q_len};
  if (p.cu_q_len != nullptr) {
    sizes.q_len = machine.load_constant(p.cu_q_len + request + 1) -
                  machine.load_constant(p.cu_q_len + request);
    if (sizes.q_len < 0 || sizes.q_len > p.max_q_len) live.fault = FaultCode::q_len;
  }
  int64_t capacity = p.capacity;
  if (p.page_indptr != nullptr) {
    const int64_t pages = machine.load_constant(p.page_indptr + request + 1) -
                          machine.load_constant(p.page_indptr + request);
    capacity = pages * p.page_size;
    if (p.kv_len == nullptr) {
      const int32_t last = pages <= 0 ? 1 : machine.load_constant(p.last_page_len + request);
      if (last < 1 || last > p.page_size) live.fault = FaultCode::last_page_len;
      sizes.kv_len = pages <= 0 ? 0 : capacity - p.page_size + last;
    }
  }
  if (p.kv_len != nullptr) sizes.kv_len = machine.load_constant(p.kv_len + request);
  if (p.kv_start != nullptr) {
    sizes.kv_start = machine.load_constant(p.kv_start + request);
    if (sizes.kv_start < 0 || sizes.kv_start > sizes.kv_len) live.fault = FaultCode::kv_start;
  }
  if (sizes.kv_len < 0 || sizes.kv_len > capacity || sizes.kv_len - sizes.kv_start > p.max_kv_len) {
    live.fault = FaultCode::kv_len;
  }
  if (live.fault != FaultCode::none) {
    sizes = {.kv_start = 0, .kv_len = 0, .q_len = live.fault == FaultCode::q_len ? 0 : sizes.q_len};
  }
  return live;
}

/// As a function of the request alone, for the work cutting.
template <class Machine>
struct LiveSizes {
  Machine* machine;
  const Params* params;
  DEUCE_DEVICE RequestSizes operator()(int32_t request) const {
    return live_request(*machine, *params, request).sizes;
  }
};

/// One thread. Reads the offending value again, so that the usual path need not keep it.
template <class Machine>
DEUCE_DEVICE void report_request(Machine& machine, const Params& p, int32_t request,
                                 FaultCode code) {
  FaultRecord record{.request = request, .tag = p.tag};
  record.value = p.kv_len != nullptr ? machine.load_constant(p.kv_len + request) : p.kv_len_all;
  record.highest = p.capacity < p.max_kv_len ? p.capacity : p.max_kv_len;
  if (code == FaultCode::q_len) {
    record.value = machine.load_constant(p.cu_q_len + request + 1) -
                   machine.load_constant(p.cu_q_len + request);
    record.highest = p.max_q_len;
  } else if (code == FaultCode::last_page_len) {
    record.value = machine.load_constant(p.last_page_len + request);
    record.lowest = 1;
    record.highest = p.page_size;
  } else if (code == FaultCode::kv_start) {
    record.highest = record.value;
    record.value = machine.load_constant(p.kv_start + request);
  }
  report_fault(machine, p.fault, code, record);
}

template <class Machine>
DEUCE_DEVICE int64_t shuffle_wide(Machine& machine, int64_t value, int source) {
  const auto bits = static_cast<uint64_t>(value);
  const uint32_t low = machine.shuffle(static_cast<uint32_t>(bits), source);
  const uint32_t high = machine.shuffle(static_cast<uint32_t>(bits >> 32), source);
  return static_cast<int64_t>(static_cast<uint64_t>(high) << 32 | low);
}

template <class Machine>
DEUCE_DEVICE int64_t warp_inclusive_sum(Machine& machine, int64_t value) {
  for (int distance = 1; distance < 32; distance *= 2) {
    const int source = machine.lane() - distance;
    const int64_t below = shuffle_wide(machine, value, source < 0 ? machine.lane() : source);
    value += source < 0 ? 0 : below;
  }
  return value;
}

/// The schedule role.
template <Config kConfig, class Machine>
class Schedule {
 public:
  DEUCE_DEVICE Schedule(Machine& machine, SharedStorage<kConfig>& shared, const Params& params)
      : machine_(machine), shared_(shared), params_(params), sizes_{&machine, &params} {}

  DEUCE_DEVICE void run() {
    const int64_t total = count_tiles();
    if (machine_.elect()) machine_.store_shared(shared_.total_tiles, total);
    const Share share = share_of(total, params_.shape.workers, machine_.block());
    const RequestPlace place = find_place(share.first, total);
    PieceWalk<LiveSizes<Machine>> walk(params_.shape, sizes_, share, place);
    for (Piece piece; walk.next(piece);) publish(piece);
    publish(Piece{});
    for (int i = 0; i < kPieceSlots; ++i) {  // everybody has read the end
      if constexpr (Machine::kTraces)
        machine_.trace_begin({Event::wait_piece_slot, ring_.slot(), ring_.phase()});
      machine_.wait(shared_.piece_taken[ring_.slot()], ring_.phase());
      if constexpr (Machine::kTraces) machine_.trace_end({Event::wait_piece_slot});
      ring_.advance();
    }
  }

 private:
  DEUCE_DEVICE int64_t tiles_of(int32_t request) const {
    return request < params_.shape.batch ? request_tiles(params_.shape, sizes_(request)) : 0;
  }

  /// Tiles of the whole launch, by all lanes.
  DEUCE_DEVICE int64_t count_tiles() {
    int64_t mine = 0;
    for (int32_t r = machine_.lane(); r < params_.shape.batch; r += 32) mine += tiles_of(r);
    machine_.sync_warp();
    return shuffle_wide(machine_, warp_inclusive_sum(machine_, mine), 31);
  }

  /// The request that holds a position of the line.
  DEUCE_DEVICE RequestPlace find_place(int64_t position, int64_t total) {
    const int32_t batch = params_.shape.batch;
    int64_t begin = 0;
    for (int32_t base = 0; base < batch; base += 32) {
      const int64_t tiles = tiles_of(base + machine_.lane());
      machine_.sync_warp();
      const int64_t end = begin + warp_inclusive_sum(machine_, tiles);
      const uint32_t beyond = machine_.ballot(end > position);
      if (beyond != 0) {
        const int lane = machine_.lowest_lane(beyond);
        return {base + lane, shuffle_wide(machine_, end - tiles, lane)};
      }
      begin = shuffle_wide(machine_, end, 31);
    }
    return {batch, total};
  }

  DEUCE_DEVICE void publish(const Piece& piece) {
    const int slot = ring_.slot();
    if constexpr (Machine::kTraces)
      machine_.trace_begin({Event::wait_piece_slot, ring_.slot(), ring_.phase()});
    machine_.wait(shared_.piece_taken[slot], ring_.phase());
    if constexpr (Machine::kTraces) machine_.trace_end({Event::wait_piece_slot});
    if (machine_.elect()) {
      PieceRecord record{};
      if (piece.tiles.count() > 0) {
        const Item& item = piece.item;
        const RequestSizes sizes = sizes_(item.request);
        record = {item.request,
                  item.kv_head,
                  item.row_tile,
                  item.rows,
                  piece.tiles.first,
                  piece.tiles.last,
                  item.tiles.first,
                  item.tiles.last,
                  static_cast<int32_t>(sizes.kv_start),
                  static_cast<int32_t>(sizes.kv_len),
                  sizes.q_len,
                  params_.cu_q_len == nullptr
                      ? 0
                      : machine_.load_constant(params_.cu_q_len + item.request),
                  item.begin,
                  piece.split,
                  0};
      }
      const auto words = std::bit_cast<std::array<Word4, 4>>(record);
      auto* target = reinterpret_cast<Word4*>(&shared_.pieces[slot]);
      for (std::size_t i = 0; i < 4; ++i) machine_.store_shared(target[i], words[i]);
      if constexpr (Machine::kTraces)
        machine_.trace_instant({Event::arrive_piece_ready, slot, ring_.phase() + 1});
      machine_.arrive(shared_.piece_ready[slot]);
    }
    machine_.sync_warp();
    ring_.advance();
  }

  Machine& machine_;
  SharedStorage<kConfig>& shared_;
  const Params& params_;
  LiveSizes<Machine> sizes_;
  Ring<kPieceSlots> ring_ = Ring<kPieceSlots>::producer();
};

/// Any other role's way along the list.
template <Config kConfig, class Machine>
class Pieces {
 public:
  DEUCE_DEVICE Pieces(Machine& machine, SharedStorage<kConfig>& shared)
      : machine_(machine), shared_(shared) {}

  /// The next piece, or false at the end of the list.
  DEUCE_DEVICE bool next(PieceRecord& piece) {
    const int slot = ring_.slot();
    if constexpr (Machine::kTraces) {
      const bool first = slot == 0 && ring_.phase() == 0;
      if (!first) machine_.trace_end({Event::work_item});
      machine_.trace_begin({Event::wait_piece, slot, ring_.phase()});
    }
    machine_.wait(shared_.piece_ready[slot], ring_.phase());
    if constexpr (Machine::kTraces) machine_.trace_end({Event::wait_piece});
    std::array<Word4, 4> words;
    const auto* source = reinterpret_cast<const Word4*>(&shared_.pieces[slot]);
    DEUCE_UNROLL
    for (std::size_t i = 0; i < 4; ++i) words[i] = machine_.load_shared(source[i]);
    piece = std::bit_cast<PieceRecord>(words);
    machine_.sync_warp();
    if (machine_.elect()) {
      if constexpr (Machine::kTraces)
        machine_.trace_instant({Event::arrive_piece_taken, ring_.slot(), ring_.phase()});
      machine_.arrive(shared_.piece_taken[slot]);
    }
    ring_.advance();
    if constexpr (Machine::kTraces) {
      if (!piece.is_end()) {
        machine_.trace_begin({Event::work_item});
        machine_.trace_value(Event::work_item, static_cast<uint32_t>(piece.request));
      }
    }
    return !piece.is_end();
  }

 private:
  Machine& machine_;
  SharedStorage<kConfig>& shared_;
  Ring<kPieceSlots> ring_ = Ring<kPieceSlots>::consumer();
};

}  // namespace deuce::blackwell
