// SPDX-License-Identifier: Apache-2.0
// Where partial states of cut items lie and who merges them: slot and counter
// numbers as functions of the work shape alone. Used by every backend and by the workspace query.
// Nobody ever waits: each worker adds the tiles it finished to the item's counter, and the one that
// completes the item's tile count merges, in split order, and sets the counter back to zero.
//
//   cutting        slots                                   counters
//   anywhere       2 a worker: [0] a piece that continues  1 a worker: that of the worker which
//                  an item, [1] one that starts an item    starts the cut item
//   num_splits n   n an item, by part number               1 an item
//   split_kv_len   3 * levels a worker: stacks of tree     1 a worker, as above
//                  nodes, [0] continuing (2 * levels),
//                  [2 * levels] starting (levels)
#pragma once

#include <cstdint>

#include "kernel/split_tree.h"
#include "kernel/work.h"

namespace deuce {

/// Bounds that a plan fixes; slot numbers use them, so live values never move a slot.
struct WorkBounds {
  int32_t max_batch = 0, max_q_len = 1;
  int64_t max_kv_len = 0;
};

/// Numbering of slots and counters for one plan.
struct PartialMap {
  int32_t workers = 1, kv_heads = 1, num_splits = 0;
  int32_t max_row_tiles = 1;
  int32_t max_batch = 0;
  int32_t levels = 0;  // of the split tree; 0 without split_tiles, or when no item has two splits
  bool tree = false;

  constexpr int64_t slot_count() const {
    if (tree) return int64_t{workers} * 3 * levels;
    if (num_splits == 1) return 0;
    if (num_splits > 1) return item_count() * num_splits;
    return int64_t{workers} * 2;
  }
  constexpr int64_t counter_count() const { return num_splits > 0 ? item_count() : workers; }
  constexpr int64_t item_count() const { return int64_t{max_batch} * kv_heads * max_row_tiles; }

  constexpr int64_t item_number(const Item& item) const {
    return (int64_t{item.request} * kv_heads + item.kv_head) * max_row_tiles + item.row_tile;
  }
  /// Counter of a cut item; `first_worker` started it.
  constexpr int64_t counter(const Item& item, int32_t first_worker) const {
    return num_splits > 0 ? item_number(item) : first_worker;
  }
  /// Slot of a piece cut anywhere.
  constexpr int64_t stream_slot(int32_t worker, bool starts_item) const {
    return int64_t{worker} * 2 + (starts_item ? 1 : 0);
  }
  constexpr int64_t part_slot(const Item& item, int32_t part) const {
    return item_number(item) * num_splits + part;
  }
  /// Slot of the node at `depth` of the stack of a worker's run.
  constexpr int64_t node_slot(int32_t worker, bool starts_item, int32_t depth) const {
    return int64_t{worker} * 3 * levels + (starts_item ? 2 * levels : 0) + depth;
  }
};

constexpr PartialMap partial_map(const WorkShape& shape, const WorkBounds& bounds) {
  PartialMap map{.workers = shape.workers,
                 .kv_heads = shape.kv_heads,
                 .num_splits = shape.num_splits,
                 .max_row_tiles = row_tile_count(shape, bounds.max_q_len),
                 .max_batch = bounds.max_batch};
  if (shape.split_tiles > 0) {
    const int64_t split_keys = int64_t{shape.split_tiles} * shape.kv_tile;
    map.tree = true;
    map.levels = tree_levels((bounds.max_kv_len + split_keys - 1) / split_keys);
  }
  return map;
}

/// Workers that hold tiles of an item: first .. last, all of them when cut anywhere.
struct WorkerSpan {
  int32_t first = 0, last = 0;
};

constexpr WorkerSpan workers_of(const WorkShape& shape, int64_t total, const Item& item) {
  return {owner_of(total, shape.workers, item.begin),
          owner_of(total, shape.workers, item.begin + item.tiles.count() - 1)};
}

/// Splits of an item that a worker walks under split_tiles: empty when it only holds the middle of
/// a split that another worker began.
constexpr TileSpan run_of(const WorkShape& shape, int64_t total, const Item& item, int32_t worker) {
  const TileSpan splits = item_splits(shape, item.tiles);
  const Share share = share_of(total, shape.workers, worker);
  const auto border = [&](int64_t position) {
    if (position <= item.begin) return splits.first;
    const int64_t tile = item.tiles.first + (position - item.begin);
    return static_cast<int32_t>(
        min64(splits.last, (tile + shape.split_tiles - 1) / shape.split_tiles));
  };
  return {border(share.first), border(share.last)};
}

}  // namespace deuce
