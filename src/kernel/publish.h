// SPDX-License-Identifier: Apache-2.0
// What a worker that is a single thread does with a finished piece: hand it on, merge, or end the
// item. Used by the CPU backend and by the tests; GPU kernels follow the same steps with their
// warps. `Machine` gives exp2 and add_acq_rel(counter, value), which returns the old value.
//
//   Publisher publisher(shape, total, worker, space);
//   for (Piece piece; walk.next(piece);) {
//     attend(piece, state);                              // state: a Partial of this worker alone
//     publisher.take(machine, piece, state, end_item);   // end_item(const Item&, const Partial&)
//   }
//
// end_item is called once per item with tiles, by the worker that completes it.
#pragma once

#include <cstdint>

#include "kernel/combine.h"
#include "kernel/partials.h"

namespace deuce {

/// Memory shared by the workers of a run.
struct PartialSpace {
  PartialMap map;
  float* partials = nullptr;     // [slot_count, partial_floats(row_tile, head_dim_v)]
  uint32_t* counters = nullptr;  // [counter_count], all zero between runs
  int32_t rows = 0;              // row_tile: rows that a slot has room for
  int32_t head_dim_v = 0;

  constexpr Partial slot(int64_t number) const {
    return partial_at(partials + number * partial_floats(rows, head_dim_v), rows, head_dim_v);
  }
};

class Publisher {
 public:
  Publisher(const WorkShape& shape, int64_t total, int32_t worker, const PartialSpace& space)
      : shape_(&shape), space_(&space), total_(total), worker_(worker) {}

  template <class Machine, class EndItem>
  void take(const Machine& machine, const Piece& piece, const Partial& state,
            const EndItem& end_item) {
    rows_ = piece.item.rows;
    if (shape_->split_tiles > 0) return take_split(machine, piece, state, end_item);
    if (piece.is_whole_item()) return end_item(piece.item, state);
    if (shape_->num_splits > 0) return take_part(machine, piece, state, end_item);
    take_stream(machine, piece, state, end_item);
  }

 private:
  /// Adds finished tiles; true for the worker that completes the item, which owns it from then on.
  template <class Machine>
  bool arrive(const Machine& machine, const Item& item, int32_t tiles) {
    const int32_t first_worker = owner_of(total_, shape_->workers, item.begin);
    uint32_t& counter = space_->counters[space_->map.counter(item, first_worker)];
    const uint32_t before = machine.add_acq_rel(&counter, static_cast<uint32_t>(tiles));
    if (before + static_cast<uint32_t>(tiles) != static_cast<uint32_t>(item.tiles.count())) {
      return false;
    }
    counter = 0;
    return true;
  }

  template <class Machine, class Parts>
  void merge(const Machine& machine, const Parts& part, int32_t count) {
    for (int32_t row = 0; row < rows_; ++row) {
      merge_row(machine, part, count, row, space_->head_dim_v);
    }
  }
  template <class Machine>
  void merge_pair(const Machine& machine, const Partial& left, const Partial& right) {
    merge(
        machine, [&](int32_t i) { return i == 0 ? left : right; }, 2);
  }

  void store(const Partial& state, const Partial& slot) const {
    const int64_t values = int64_t{rows_} * space_->head_dim_v;
    for (int64_t i = 0; i < values; ++i) slot.o[i] = state.o[i];
    for (int32_t row = 0; row < rows_; ++row) {
      slot.max[row] = state.max[row];
      slot.sum[row] = state.sum[row];
    }
  }

  template <class Machine, class EndItem>
  void take_stream(const Machine& machine, const Piece& piece, const Partial& state,
                   const EndItem& end_item) {
    const PartialMap& map = space_->map;
    store(state, space_->slot(map.stream_slot(worker_, piece.starts_item())));
    if (!arrive(machine, piece.item, piece.tiles.count())) return;
    const WorkerSpan workers = workers_of(*shape_, total_, piece.item);
    const auto part = [&](int32_t i) {
      return space_->slot(map.stream_slot(workers.first + i, i == 0));
    };
    merge(machine, part, workers.last - workers.first + 1);
    end_item(piece.item, part(0));
  }

  template <class Machine, class EndItem>
  void take_part(const Machine& machine, const Piece& piece, const Partial& state,
                 const EndItem& end_item) {
    store(state, space_->slot(space_->map.part_slot(piece.item, piece.split)));
    if (!arrive(machine, piece.item, piece.tiles.count())) return;
    // With fewer tiles than parts every part that exists holds one tile; skip the empty ones.
    const int32_t tiles = piece.item.tiles.count();
    const int32_t parts = tiles < shape_->num_splits ? tiles : shape_->num_splits;
    const auto part = [&](int32_t i) {
      const int32_t number =
          tiles < shape_->num_splits
              ? static_cast<int32_t>(((int64_t{i} + 1) * shape_->num_splits - 1) / tiles)
              : i;
      return space_->slot(space_->map.part_slot(piece.item, number));
    };
    merge(machine, part, parts);
    end_item(piece.item, part(0));
  }

  template <class Machine, class EndItem>
  void take_split(const Machine& machine, const Piece& piece, const Partial& state,
                  const EndItem& end_item) {
    const TileSpan splits = item_splits(*shape_, piece.item.tiles);
    const TileSpan run = run_of(*shape_, total_, piece.item, worker_);
    const bool starts_item = run.first == splits.first;
    if (piece.split == run.first) {
      depth_ = 0;
      run_tiles_ = 0;
    }
    if (run.count() == 1 && splits.count() == 1) return end_item(piece.item, state);

    run_tiles_ += piece.tiles.count();
    const auto node = [&](int32_t depth) {
      return space_->slot(space_->map.node_slot(worker_, starts_item, depth));
    };
    push(machine, state, merges_with({piece.split, 0}, starts_item ? 0 : run.first, splits.first),
         node, depth_);
    if (piece.split + 1 < run.last) return;
    if (run.count() == splits.count()) {
      fold(machine, node, depth_);
      end_item(piece.item, node(0));
    } else if (arrive(machine, piece.item, run_tiles_)) {
      merge_runs(machine, piece.item, splits, end_item);
    }
  }

  /// Merges `state` with the top `merges` nodes of a stack, lower node first, and pushes the
  /// result.
  template <class Machine, class Node>
  void push(const Machine& machine, const Partial& state, int32_t merges, const Node& node,
            int32_t& depth) {
    if (merges == 0) return store(state, node(depth++));
    merge_pair(machine, node(depth - 1), state);
    for (; merges > 1; --merges, --depth) merge_pair(machine, node(depth - 2), node(depth - 1));
  }
  template <class Machine, class Node>
  void fold(const Machine& machine, const Node& node, int32_t depth) {
    for (; depth > 1; --depth) merge_pair(machine, node(depth - 2), node(depth - 1));
  }

  template <class Machine, class EndItem>
  void merge_runs(const Machine& machine, const Item& item, const TileSpan& splits,
                  const EndItem& end_item) {
    static constexpr int32_t kMaxDepth = 32;
    Partial stack[kMaxDepth];
    int32_t depth = 0;
    const auto node = [&](int32_t i) { return stack[i]; };
    const WorkerSpan workers = workers_of(*shape_, total_, item);
    for (int32_t worker = workers.first; worker <= workers.last; ++worker) {
      const TileSpan run = run_of(*shape_, total_, item, worker);
      if (run.empty()) continue;
      RunNodes nodes(run.first, run.last, splits.first);
      TreeNode next;
      for (int32_t i = 0; nodes.next(next); ++i) {
        const Partial state =
            space_->slot(space_->map.node_slot(worker, run.first == splits.first, i));
        const int32_t merges = merges_with(next, 0, splits.first);
        if (merges == 0) {
          stack[depth++] = state;  // stays where it lies
        } else {
          push(machine, state, merges, node, depth);
        }
      }
    }
    fold(machine, node, depth);
    end_item(item, stack[0]);
  }

  const WorkShape* shape_;
  const PartialSpace* space_;
  int64_t total_;
  int32_t worker_;
  int32_t rows_ = 0;                   // of the item at hand
  int32_t depth_ = 0, run_tiles_ = 0;  // of the run being walked
};

}  // namespace deuce
