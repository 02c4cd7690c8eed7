// SPDX-License-Identifier: Apache-2.0
// Which KV tiles a CTA works on: stream-K over live lengths, as kernel/work.h defines it, or whole
// parts of items where all requests are equally long (docs/decisions/007). In 32
// bits and with the sums shared by a warp: the launch waits for this before its first load. Used by
// every warp of both roles. Each computes the same list from the same inputs, so nothing is
// published and nobody waits. Reads lengths only, never page tables. Code here runs once per launch
// or piece and is fetched cold, so it is written to be short.
#pragma once

#include "kernel/hopper/config.h"
#include "kernel/hopper/params.h"

namespace deuce::hopper {

DEUCE_DEVICE int32_t min_of(int32_t a, int32_t b) { return a < b ? a : b; }
DEUCE_DEVICE int32_t max_of(int32_t a, int32_t b) { return a > b ? a : b; }

/// A request as this launch sees it; faulty requests have no rows and so get no work.
struct Request {
  int32_t first_row = 0;  // ragged rows: of q, in tokens
  int32_t q_len = 0;
  int32_t kv_begin = 0, kv_end = 0;      // live keys, as positions in the request's cache
  int32_t grid_begin = 0;                // where tile 0 begins: kv_begin, or a box border below it
  int32_t tile_begin = 0, tile_end = 0;  // tiles that some row sees; the same for all row tiles
  FaultCode fault = FaultCode::none;
  DEUCE_DEVICE int32_t tiles() const { return tile_end - tile_begin; }
};

/// Positions first .. last - 1.
struct Keys {
  int32_t first = 0, last = 0;
};

/// Keys that row `token` of a request sees.
DEUCE_DEVICE Keys visible_keys(const Params& params, const Request& request, int32_t token) {
  const int32_t position = request.kv_end - request.q_len + token;
  return {max_of(request.kv_begin, position - params.window_left),
          min_of(request.kv_end, position + params.window_right + 1)};
}

template <class Machine>
DEUCE_DEVICE Request request_of(Machine& machine, const Params& params, int32_t index) {
  Request request;
  request.q_len = params.q_len;
  request.kv_end = params.kv_len_all;
  int64_t capacity = params.capacity;
  if (params.cu_q_len != nullptr) {
    request.first_row = machine.load_constant(params.cu_q_len + index);
    request.q_len = machine.load_constant(params.cu_q_len + index + 1) - request.first_row;
    if (request.q_len < 0 || request.q_len > params.max_q_len) request.fault = FaultCode::q_len;
  }
  if (params.page_indptr != nullptr) {
    const int32_t first = machine.load_constant(params.page_indptr + index);
    const int32_t pages = machine.load_constant(params.page_indptr + index + 1) - first;
    capacity = static_cast<int64_t>(pages) * params.page_size;
    if (capacity > kMaxCapacity) capacity = kMaxCapacity;
    if (params.kv_len == nullptr && pages > 0) {
      const int32_t last = machine.load_constant(params.last_page_len + index);
      request.kv_end = (pages - 1) * params.page_size + last;
      if (last < 1 || last > params.page_size) request.fault = FaultCode::last_page_len;
    }
  }
  if (params.kv_len != nullptr) request.kv_end = machine.load_constant(params.kv_len + index);
  if (params.kv_start != nullptr) {
    request.kv_begin = machine.load_constant(params.kv_start + index);
    if (request.kv_begin < 0 || request.kv_begin > request.kv_end) {
      request.fault = FaultCode::kv_start;
    }
  }
  if (params.cache_row != nullptr) {
    const int32_t row = machine.load_constant(params.cache_row + index);
    if (row < 0 || row >= params.num_pages) request.fault = FaultCode::cache_row;
  }
  if (request.kv_end < 0 || request.kv_end > capacity ||
      request.kv_end - request.kv_begin > params.max_kv_len) {
    request.fault = FaultCode::kv_len;
  }
  // Boxes start at multiples of their height inside a page, so the tile grid does too.
  request.grid_begin = request.kv_begin & (params.paged != 0 ? -params.box_rows : -1);
  const Keys first = visible_keys(params, request, 0);
  const Keys last = visible_keys(params, request, request.q_len - 1);
  if (request.fault == FaultCode::none && request.q_len > 0 && first.first < last.last) {
    request.tile_begin = (first.first - request.grid_begin) / kTileTokens;
    request.tile_end = (last.last - request.grid_begin + kTileTokens - 1) / kTileTokens;
  }
  return request;
}

/// Rows first .. last - 1 of all packed rows (token * group + head) of a request.
struct RowSpan {
  int32_t first = 0, last = 0;
};

/// A run of tiles of one item (request, KV head, row tile) that one CTA attends to.
struct Piece {
  Request shape;
  int32_t request = 0, head = 0;
  RowSpan rows;
  int32_t tile = 0, tiles = 0;  // first tile, in the request's grid, and count
  int32_t split = 0;            // number of the part (num_splits) or of the split (split_kv_len)
  bool cut = false;             // the item has other pieces too
  int32_t item_begin = 0;       // position of the item's first tile on the line
};

/// Walks the pieces of one CTA in line order. On the line every item takes some positions for its
/// cost and then its tiles. Warp collective: all calls by the whole warp, results uniform. The host
/// has checked that the line is shorter than 2^31.
template <Config kConfig, class Machine>
class Schedule {
 public:
  /// Where the walk stands: the same in all lanes.
  struct Line {
    int32_t item_cost = 0;  // positions of an item on the line before its tiles
    int32_t window = 0, window_begin = 0, window_length = 0;
    int32_t workers_per_item = 0;  // each with a part of no other; 0: stretches ignore the items
    int32_t per_worker = 0, longer = 0;
    int32_t begin = 0, end = 0;  // what is left of the CTA's stretch of the line
    int32_t index = 0, request_begin = 0, request_end = 0;  // current request, on the line
  };

  DEUCE_DEVICE Schedule(Machine& machine, const Params& params)
      : machine_(machine), params_(params) {
    int32_t total = 0, items = 0;
    DEUCE_ROLLED
    for (int32_t base = (params.batch - 1) & ~31; base >= 0; base -= 32) {
      load_window(base);
      total += line_.window_length;
      if (params.batch > 32) items += items_of_window();
    }
    line_.workers_per_item = workers_per_item_for(total);
    if (line_.workers_per_item == 0 && total >= kTilesThatHideCosts * params.by_workers.divisor) {
      if (params.batch <= 32) items = items_of_window();  // short calls do without
      line_.item_cost = kItemCost;
      total += items * kItemCost;
      measure_window();
    }
    const FastDivide& by = line_.workers_per_item > 0 ? params.by_used_workers : params.by_workers;
    line_.per_worker = by.quotient(total);
    line_.longer = total - line_.per_worker * by.divisor;
    const int32_t worker = machine.block();
    line_.begin = stretch_begin(worker);
    line_.end = stretch_begin(worker + 1);
  }

  /// The next piece, or false at the end of the CTA's stretch. `piece` is the one before.
  DEUCE_DEVICE bool next(Piece& piece) {
    DEUCE_ROLLED
    while (line_.begin < line_.end) {
      if (line_.begin >= line_.request_end) seek(piece.shape);
      const int32_t tiles = piece.shape.tiles(), length = tiles + line_.item_cost;
      const int32_t item = item_of(piece.shape, length);
      piece.item_begin = line_.request_begin + item * length + line_.item_cost;
      const int32_t item_end = piece.item_begin + tiles;
      int32_t first = max_of(line_.begin, piece.item_begin);
      int32_t last = min_of(item_end, line_.end);
      if constexpr (kConfig.fixed_borders) {
        const bool inside = first < last && align(piece, first, last);
        line_.begin = inside ? last : min_of(item_end, line_.end);
        if (!inside) continue;
      } else {
        line_.begin = last;
        if (first >= last) continue;  // nothing but the cost of the item lies here
      }
      place(piece, item);
      piece.tile = piece.shape.tile_begin + first - piece.item_begin;
      piece.tiles = last - first;
      piece.cut = piece.tiles != tiles;
      return true;
    }
    return false;
  }

  DEUCE_DEVICE Line& line() { return line_; }

  /// First position of a worker's stretch. With whole parts floor(worker x total / workers), so
  /// that borders of stretches fall on those of items.
  DEUCE_DEVICE int32_t stretch_begin(int32_t worker) const {
    if (line_.workers_per_item == 0) {
      return worker * line_.per_worker + min_of(worker, line_.longer);
    }
    worker = min_of(worker, params_.by_used_workers.divisor);
    return worker * line_.per_worker + params_.by_used_workers.quotient(worker * line_.longer);
  }

  /// Workers that share every item, each a part of it alone; 0 where stretches ignore the items.
  DEUCE_DEVICE int32_t workers_per_item() const { return line_.workers_per_item; }

  /// The worker whose stretch holds a position of the line, where stretches ignore the items.
  DEUCE_DEVICE int32_t worker_of(int32_t tile) const {
    const int32_t in_longer = line_.longer * (line_.per_worker + 1);
    const bool longer = tile < in_longer;
    return (longer ? 0 : line_.longer) +
           static_cast<int32_t>(static_cast<uint32_t>(longer ? tile : tile - in_longer) /
                                static_cast<uint32_t>(line_.per_worker + (longer ? 1 : 0)));
  }

 private:
  /// For this step: the host's number where all requests have as many tiles, at least one a worker,
  /// and not so many that the workers left out weigh more than the merges saved.
  DEUCE_DEVICE int32_t workers_per_item_for(int32_t total) const {
    const int32_t workers = params_.by_used_workers.divisor;
    if (kConfig.fixed_borders || params_.workers_per_item == 0 || params_.batch > 32) return 0;
    if (total < workers || total >= kConfig.tiles_that_hide_merges() * workers) return 0;
    const int32_t tiles = lane_request_.tiles(), first = broadcast(tiles, 0);
    const bool differ = machine_.any(machine_.lane() < params_.batch && tiles != first);
    return differ ? 0 : params_.workers_per_item;
  }

  /// Number in the current request of the item at the walk's position, whose length on the line is
  /// `length`. Where a worker has one part of one item the host has prepared the division.
  DEUCE_DEVICE int32_t item_of(const Request& shape, int32_t length) const {
    if (line_.workers_per_item > 0) {
      return params_.by_workers_per_item.quotient(machine_.block()) -
             line_.index * params_.kv_heads * row_tiles_of(shape);
    }
    return static_cast<int32_t>(static_cast<uint32_t>(line_.begin - line_.request_begin) /
                                static_cast<uint32_t>(length));
  }

  /// Forced borders: the piece around position `first`, as positions; false where it began before
  /// the stretch. It may end behind the stretch.
  DEUCE_DEVICE bool align(Piece& piece, int32_t& first, int32_t& last) const {
    int32_t begin = first - piece.item_begin;
    piece.split = split_of(piece.shape, begin);
    const int32_t border = split_begin(piece.shape, piece.split);
    if (border < begin) {  // another worker holds its first tile
      begin = split_begin(piece.shape, piece.split + 1);
      if (piece.item_begin + begin >= last) return false;
      piece.split = split_of(piece.shape, begin);
    }
    first = piece.item_begin + begin;
    last = piece.item_begin + split_begin(piece.shape, piece.split + 1);
    return true;
  }
  /// Number of the split or part that holds tile `tile` of an item.
  DEUCE_DEVICE int32_t split_of(const Request& shape, int32_t tile) const {
    if (params_.split_tiles > 0) return params_.by_split.quotient(shape.tile_begin + tile);
    return static_cast<int32_t>(((int64_t{tile} + 1) * params_.num_splits - 1) / shape.tiles());
  }
  /// Its first tile, counted from the item's.
  DEUCE_DEVICE int32_t split_begin(const Request& shape, int32_t split) const {
    const int32_t tile =
        params_.split_tiles > 0
            ? split * params_.split_tiles - shape.tile_begin
            : static_cast<int32_t>(int64_t{shape.tiles()} * split / params_.num_splits);
    return max_of(0, min_of(tile, shape.tiles()));
  }

  /// Request, head and rows of item `item` of the current request.
  DEUCE_DEVICE void place(Piece& piece, int32_t item) const {
    const int32_t rows = piece.shape.q_len * params_.group;
    const int32_t row_tiles = row_tiles_of(piece.shape);
    piece.request = line_.index;
    piece.head = row_tiles == 1 ? item : item / row_tiles;
    piece.rows.first = (item - piece.head * row_tiles) * kConfig.rows();
    piece.rows.last = min_of(piece.rows.first + kConfig.rows(), rows);
  }

  /// Requests base .. base + 31, one a lane, with the line taken by all up to and including each.
  DEUCE_DEVICE void load_window(int32_t base) {
    const int32_t index = base + machine_.lane();
    line_.window = base;
    lane_request_ = index < params_.batch ? request_of(machine_, params_, index) : Request{};
    lane_items_ = lane_request_.tiles() > 0 ? params_.kv_heads * row_tiles_of(lane_request_) : 0;
    measure_window();
  }
  DEUCE_DEVICE int32_t row_tiles_of(const Request& request) const {
    return (request.q_len * params_.group + kConfig.rows() - 1) / kConfig.rows();
  }
  DEUCE_DEVICE int32_t items_of_window() const {
    int32_t items = lane_items_;
    DEUCE_ROLLED
    for (int mask = 16; mask > 0; mask /= 2) {
      items += static_cast<int32_t>(machine_.shuffle_xor(static_cast<uint32_t>(items), mask));
    }
    return items;
  }
  DEUCE_DEVICE void measure_window() {
    lane_length_ = (lane_request_.tiles() + line_.item_cost) * lane_items_;
    upto_ = lane_length_;
    // What lanes without a request hold comes behind the owner in seek()'s ballot.
    const int lanes = min_of(32, params_.batch - line_.window);
    DEUCE_ROLLED
    for (int delta = 1; delta < lanes; delta *= 2) {
      const auto other =
          static_cast<int32_t>(machine_.shuffle_up(static_cast<uint32_t>(upto_), delta));
      if (machine_.lane() >= delta) upto_ += other;
    }
    line_.window_length = broadcast(upto_, lanes - 1);
  }

  /// Finds the request that holds tile line_.begin, in this window or a later one.
  DEUCE_DEVICE void seek(Request& request) {
    DEUCE_ROLLED
    while (line_.begin >= line_.window_begin + line_.window_length) {
      line_.window_begin += line_.window_length;
      load_window(line_.window + 32);
    }
    const int owner =
        machine_.lowest_lane(machine_.ballot(line_.window_begin + upto_ > line_.begin));
    line_.index = line_.window + owner;
    line_.request_end = line_.window_begin + broadcast(upto_, owner);
    line_.request_begin = line_.request_end - broadcast(lane_length_, owner);
    request.first_row = broadcast(lane_request_.first_row, owner);
    request.q_len = broadcast(lane_request_.q_len, owner);
    request.kv_begin = broadcast(lane_request_.kv_begin, owner);
    request.kv_end = broadcast(lane_request_.kv_end, owner);
    request.grid_begin = broadcast(lane_request_.grid_begin, owner);
    request.tile_begin = broadcast(lane_request_.tile_begin, owner);
    request.tile_end = broadcast(lane_request_.tile_end, owner);
  }

  DEUCE_DEVICE int32_t broadcast(int32_t value, int lane) const {
    return static_cast<int32_t>(machine_.shuffle(static_cast<uint32_t>(value), lane));
  }

  Machine& machine_;
  const Params& params_;
  Request lane_request_;                // of this lane
  int32_t lane_items_ = 0;              // and its items
  int32_t lane_length_ = 0, upto_ = 0;  // its part of the line, and that of the window up to it
  Line line_;
};

}  // namespace deuce::hopper
