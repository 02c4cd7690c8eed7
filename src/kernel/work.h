// SPDX-License-Identifier: Apache-2.0
// Stream-K: how the work of a call is cut into pieces and dealt to workers.
// The only place that cuts work: threads of the CPU backend and blocks of the GPU kernels walk the
// same pieces. Every KV tile of every item must be walked by exactly one worker.
//
// An item is (request, KV head, row tile). Its KV tiles are numbered from the request's first live
// slot; tiles that no row of the item sees are not counted. All tiles of all items, in item order,
// form one line of `total` tiles, and each worker takes an equal stretch of it:
//
//   auto sizes = [&](int32_t request) { return RequestSizes{...}; };     // live values
//   const int64_t total = total_tiles(shape, sizes);
//   PieceWalk walk(shape, sizes, total, worker);
//   for (Piece piece; walk.next(piece);) attend(piece);                  // see combine.h for the
//   end const Share idle = share_of(shape.batch, shape.workers, worker);     // requests to look
//   through for (...) if (item_tiles(shape, sizes(request), row_tile).empty())
//   write_empty_rows(...);
#pragma once

#include <cstdint>

#include "kernel/visible.h"

namespace deuce {

/// What a launch fixes about its work.
struct WorkShape {
  int32_t batch = 0, kv_heads = 1, group = 1;
  int32_t row_tile = 128;  // packed rows (token * group + head) of an item, at most
  int32_t kv_tile = 128;   // keys of a KV tile; divides 128
  int32_t workers = 1;
  int32_t num_splits = 0;   // n > 0: exactly n equal tile ranges an item
  int32_t split_tiles = 0;  // n > 0: borders at multiples of n tiles (split_kv_len / kv_tile)
  MaskRule mask = {};
};

/// Tiles first .. last - 1 of a request, numbered from its first live slot.
struct TileSpan {
  int32_t first = 0, last = 0;
  constexpr bool empty() const { return last <= first; }
  constexpr int32_t count() const { return empty() ? 0 : last - first; }
};

/// Positions first .. last - 1 of a line that is dealt out.
struct Share {
  int64_t first = 0, last = 0;
};

// --- equal shares ------------------------------------------------------------------------------

/// Share `index` of `total` positions dealt to `parts`: contiguous, sizes differ by one at most,
/// the larger ones first. No product can overflow, whatever the total. With fewer positions than
/// parts the last parts get none, so that no empty share lies between two others.
constexpr Share share_of(int64_t total, int32_t parts, int32_t index) {
  const int64_t size = total / parts, larger = total % parts;
  return {index * size + min64(index, larger), (index + 1) * size + min64(index + 1, larger)};
}

/// The part whose share holds `position`.
constexpr int32_t owner_of(int64_t total, int32_t parts, int64_t position) {
  const int64_t size = total / parts, larger = total % parts;
  const int64_t in_larger = larger * (size + 1);
  return static_cast<int32_t>(position < in_larger ? position / (size + 1)
                                                   : larger + (position - in_larger) / size);
}

// --- items -------------------------------------------------------------------------------------

constexpr int32_t row_tile_count(const WorkShape& shape, int32_t q_len) {
  const int64_t rows = int64_t{q_len} * shape.group;
  return static_cast<int32_t>((rows + shape.row_tile - 1) / shape.row_tile);
}

/// Packed rows of a row tile: first .. last - 1.
constexpr Share row_span(const WorkShape& shape, int32_t q_len, int32_t row_tile) {
  const int64_t first = int64_t{row_tile} * shape.row_tile;
  return {first, min64(first + shape.row_tile, int64_t{q_len} * shape.group)};
}

/// KV tiles that some row of the item sees. Holds for every KV head.
constexpr TileSpan item_tiles(const WorkShape& shape, const RequestSizes& sizes, int32_t row_tile) {
  const Share rows = row_span(shape, sizes.q_len, row_tile);
  if (rows.last <= rows.first) return {};
  const KeySpan keys =
      visible_keys(shape.mask, sizes, rows.first / shape.group, (rows.last - 1) / shape.group);
  if (keys.empty()) return {};
  return {static_cast<int32_t>((keys.first - sizes.kv_start) / shape.kv_tile),
          static_cast<int32_t>((keys.last - sizes.kv_start + shape.kv_tile - 1) / shape.kv_tile)};
}

/// Tiles of all row tiles of a request for one KV head.
constexpr int64_t head_tiles(const WorkShape& shape, const RequestSizes& sizes) {
  const int32_t row_tiles = row_tile_count(shape, sizes.q_len);
  const bool rows_alike =
      !shape.mask.causal && shape.mask.window_left < 0 && shape.mask.window_right < 0;
  if (rows_alike && row_tiles > 0) return int64_t{row_tiles} * item_tiles(shape, sizes, 0).count();
  int64_t tiles = 0;
  for (int32_t row_tile = 0; row_tile < row_tiles; ++row_tile) {
    tiles += item_tiles(shape, sizes, row_tile).count();
  }
  return tiles;
}

constexpr int64_t request_tiles(const WorkShape& shape, const RequestSizes& sizes) {
  return shape.kv_heads * head_tiles(shape, sizes);
}

/// Length of the line. The lanes of a warp can share this sum.
template <class Sizes>
constexpr int64_t total_tiles(const WorkShape& shape, const Sizes& sizes) {
  int64_t total = 0;
  for (int32_t request = 0; request < shape.batch; ++request) {
    total += request_tiles(shape, sizes(request));
  }
  return total;
}

// --- pieces ------------------------------------------------------------------------------------

struct Item {
  int32_t request = 0, kv_head = 0, row_tile = 0;
  int32_t rows = 0;  // packed rows that hold queries; the first is row_tile * shape.row_tile
  TileSpan tiles = {};
  int64_t begin = 0;  // position of its first tile on the line
};

/// Consecutive tiles of one item that one worker attends to as one softmax state.
struct Piece {
  Item item = {};
  TileSpan tiles = {};
  int32_t split = 0;  // part number under num_splits, absolute split number under split_tiles

  constexpr bool starts_item() const { return tiles.first == item.tiles.first; }
  constexpr bool ends_item() const { return tiles.last == item.tiles.last; }
  constexpr bool is_whole_item() const { return starts_item() && ends_item(); }
};

/// A request and the line's position where its first item begins.
struct RequestPlace {
  int32_t request = 0;
  int64_t begin = 0;
};

/// The request that holds a position of the line, searched from `place` on; `batch` if none does.
template <class Sizes>
constexpr RequestPlace find_request(const WorkShape& shape, const Sizes& sizes, int64_t position,
                                    RequestPlace place = {}) {
  while (place.request < shape.batch) {
    const int64_t tiles = request_tiles(shape, sizes(place.request));
    if (position - place.begin < tiles) break;
    place.begin += tiles;
    ++place.request;
  }
  return place;
}

/// First tile of part `part` when an item is cut into shape.num_splits equal ranges.
constexpr int32_t part_border(const WorkShape& shape, const TileSpan& item, int32_t part) {
  return item.first + static_cast<int32_t>(int64_t{item.count()} * part / shape.num_splits);
}

/// Splits of an item under split_tiles, by absolute number: first .. last - 1.
constexpr TileSpan item_splits(const WorkShape& shape, const TileSpan& tiles) {
  return {tiles.first / shape.split_tiles,
          (tiles.last + shape.split_tiles - 1) / shape.split_tiles};
}

/// Walks the pieces of one worker in line order.
/// Without forced borders a piece ends with its item or with the worker's share. With them, pieces
/// are the ranges between borders, each dealt whole to the worker whose share holds its first tile.
template <class Sizes>
class PieceWalk {
 public:
  constexpr PieceWalk(const WorkShape& shape, const Sizes& sizes, int64_t total, int32_t worker)
      : PieceWalk(shape, sizes, share_of(total, shape.workers, worker), RequestPlace{}) {}

  /// `start` is the request that holds share.first, or any request before it.
  constexpr PieceWalk(const WorkShape& shape, const Sizes& sizes, Share share, RequestPlace start)
      : shape_(&shape), sizes_(&sizes), share_(share) {
    if (share.first >= share.last) {
      share_ = {};  // next() compares with position 0
      return;
    }
    const RequestPlace place = find_request(shape, sizes, share.first, start);
    enter_request(place.request, place.begin);
    const int64_t per_head = head_tiles(shape, current_);
    const int64_t head = (share.first - place.begin) / per_head;
    item_.kv_head = static_cast<int32_t>(head);
    item_.begin += head * per_head;
    enter_item();
    while (item_.begin + item_.tiles.count() <= share.first) next_item();
    tile_ = item_.tiles.first + static_cast<int32_t>(share.first - item_.begin);
    align_start();
  }

  /// The next piece, or false when the worker is done.
  constexpr bool next(Piece& piece) {
    if (position() >= share_.last) return false;
    piece.item = item_;
    piece.tiles.first = tile_;
    piece.split = split_of(tile_);
    piece.tiles.last = piece_end(piece.split);
    tile_ = piece.tiles.last;
    if (tile_ == item_.tiles.last && position() < share_.last) next_item();
    return true;
  }

 private:
  constexpr int64_t position() const { return item_.begin + (tile_ - item_.tiles.first); }

  constexpr void enter_request(int32_t request, int64_t begin) {
    item_ = Item{.request = request, .begin = begin};
    current_ = (*sizes_)(request);
    row_tiles_ = row_tile_count(*shape_, current_.q_len);
  }
  constexpr void enter_item() {
    const Share rows = row_span(*shape_, current_.q_len, item_.row_tile);
    item_.rows = static_cast<int32_t>(rows.last - rows.first);
    item_.tiles = item_tiles(*shape_, current_, item_.row_tile);
    tile_ = item_.tiles.first;
  }
  /// Only called while the line goes on, so there is a next item with tiles.
  constexpr void next_item() {
    do {
      item_.begin += item_.tiles.count();
      if (++item_.row_tile == row_tiles_) {
        item_.row_tile = 0;
        if (++item_.kv_head == shape_->kv_heads) enter_next_request();
      }
      enter_item();
    } while (item_.tiles.empty());
  }
  constexpr void enter_next_request() {
    int32_t request = item_.request + 1;
    while (request_tiles(*shape_, (*sizes_)(request)) == 0) ++request;
    enter_request(request, item_.begin);
  }

  constexpr int32_t split_of(int32_t tile) const {
    if (shape_->split_tiles > 0) return tile / shape_->split_tiles;
    if (shape_->num_splits <= 0) return 0;
    // The last part that begins at or before the tile: parts before it may be empty.
    const int64_t local = tile - item_.tiles.first;
    return static_cast<int32_t>(((local + 1) * shape_->num_splits - 1) / item_.tiles.count());
  }
  constexpr int32_t piece_end(int32_t split) const {
    if (shape_->split_tiles > 0) {
      return static_cast<int32_t>(
          min64(item_.tiles.last, (int64_t{split} + 1) * shape_->split_tiles));
    }
    if (shape_->num_splits > 0) return part_border(*shape_, item_.tiles, split + 1);
    return static_cast<int32_t>(
        min64(item_.tiles.last, item_.tiles.first + (share_.last - item_.begin)));
  }
  /// Moves a start inside a piece with forced borders to the next piece: another worker owns this.
  constexpr void align_start() {
    if (shape_->split_tiles == 0 && shape_->num_splits <= 0) return;
    const int32_t split = split_of(tile_);
    const int32_t first =
        shape_->split_tiles > 0
            ? static_cast<int32_t>(max64(item_.tiles.first, int64_t{split} * shape_->split_tiles))
            : part_border(*shape_, item_.tiles, split);
    if (first == tile_) return;
    tile_ = piece_end(split);
    if (tile_ == item_.tiles.last && position() < share_.last) next_item();
  }

  const WorkShape* shape_;
  const Sizes* sizes_;
  Share share_;
  RequestSizes current_;
  int32_t row_tiles_ = 0;
  Item item_;
  int32_t tile_ = 0;
};

}  // namespace deuce
