// SPDX-License-Identifier: Apache-2.0
// Ends of pieces under split_kv_len: states of splits merge along the fixed tree of split_tree.h,
// so that a result depends neither on the grid nor on the rest of the batch.
// Used by merge.h. A warp keeps the finished nodes of its run on a stack of slots; slots and lanes
// of a row are the same for everybody, so a CTA reads back what the same lane wrote, and nodes of
// other CTAs come behind the item's counter.
#pragma once

#include "kernel/hopper/states.h"
#include "kernel/split_tree.h"

namespace deuce::hopper {

template <Config kConfig, class Machine>
class SplitMerge {
  using Rows = States<kConfig, Machine>;
  using RowValues = typename Rows::RowValues;

 public:
  DEUCE_DEVICE SplitMerge(Machine& machine, const Params& params, const Rows& states)
      : machine_(machine), params_(params), states_(states) {}

  /// Where the state of a split of an item that has several goes.
  DEUCE_DEVICE void place(const Piece& piece, const Schedule<kConfig, Machine>& schedule) {
    item_ = {first_split(piece), split_after(piece, piece.shape.tiles())};
    run_ = run_of(piece, schedule, machine_.block());
    if (piece.split == run_.first) depth_ = run_tiles_ = 0;
    run_tiles_ += piece.tiles;
    merges_ = merges_with({piece.split, 0}, starts() ? 0 : run_.first, item_.first);
    depth_ -= merges_;
  }
  DEUCE_DEVICE int32_t slot() const { return node(machine_.block(), starts(), depth_); }
  /// o and state of a row become those of the node that goes to slot().
  DEUCE_DEVICE void merge_into(int row, RowValues& o, RowState& state) {
    DEUCE_ROLLED
    for (int32_t i = merges_ - 1; i >= 0; --i) states_.merge_left(slot() + i, row, o, state);
  }

  /// The state lies in slot(): ends the run and the item, where it completes them.
  DEUCE_DEVICE void finish(const Piece& piece, const Schedule<kConfig, Machine>& schedule) {
    ++depth_;
    const int rows = piece.rows.last - piece.rows.first;
    if (piece.split + 1 < run_.last || !states_.has(states_.first_row(), rows)) return;
    machine_.sync_warp();
    if (run_.first == item_.first && run_.last == item_.last) {
      stack_ = node(machine_.block(), true, machine_.lane());
      return write(piece, depth_);
    }
    const int32_t counter = params_.slots + schedule.worker_of(piece.item_begin);
    if (states_.last_to_arrive(counter, run_tiles_, piece.shape.tiles())) {
      merge_runs(piece, schedule);
    }
  }

 private:
  struct Splits {
    int32_t first = 0, last = 0;
  };

  DEUCE_DEVICE bool starts() const { return run_.first == item_.first; }
  DEUCE_DEVICE int32_t first_split(const Piece& piece) const {
    return params_.by_split.quotient(piece.shape.tile_begin);
  }
  /// The first split that begins at or after tile `local` of the item.
  DEUCE_DEVICE int32_t split_after(const Piece& piece, int32_t local) const {
    return params_.by_split.quotient(piece.shape.tile_begin + local + params_.split_tiles - 1);
  }

  /// The first split of the item whose first tile lies at or behind a position of the line.
  DEUCE_DEVICE int32_t split_behind(const Piece& piece, int32_t position) const {
    if (position <= piece.item_begin) return item_.first;
    return split_after(piece, min_of(position - piece.item_begin, piece.shape.tiles()));
  }
  /// Splits of the item that a worker walks: those whose first tile lies in its stretch.
  DEUCE_DEVICE Splits run_of(const Piece& piece, const Schedule<kConfig, Machine>& schedule,
                             int32_t worker) const {
    return {split_behind(piece, schedule.stretch_begin(worker)),
            split_behind(piece, schedule.stretch_begin(worker + 1))};
  }

  DEUCE_DEVICE int32_t node(int32_t worker, bool starts, int32_t depth) const {
    return (3 * worker + (starts ? 2 : 0)) * params_.tree_levels + depth;
  }
  DEUCE_DEVICE int32_t stacked(int32_t depth) const {
    return static_cast<int32_t>(machine_.shuffle(static_cast<uint32_t>(stack_), depth));
  }

  /// Pushes the nodes that all runs of the item left behind, in order, through the same rule.
  DEUCE_DEVICE void merge_runs(const Piece& piece, const Schedule<kConfig, Machine>& schedule) {
    int32_t depth = 0;
    const int32_t last = schedule.worker_of(piece.item_begin + piece.shape.tiles() - 1);
    DEUCE_ROLLED
    for (int32_t worker = schedule.worker_of(piece.item_begin); worker <= last; ++worker) {
      const Splits run = run_of(piece, schedule, worker);
      if (run.first >= run.last) continue;
      RunNodes nodes(run.first, run.last, item_.first);
      TreeNode next;
      DEUCE_ROLLED
      for (int32_t i = 0; nodes.next(next); ++i) {
        const int32_t slot = node(worker, run.first == item_.first, i);
        const int32_t merges = merges_with(next, 0, item_.first);
        depth -= merges;
        if (merges > 0) {
          fold(piece, depth, merges, slot, false);
        } else if (machine_.lane() == depth) {
          stack_ = slot;
        }
        ++depth;
      }
    }
    write(piece, depth);
  }

  /// Merges `count` slots of the stack from `first` on, and `right` behind them: into the first of
  /// them, or as the item's result.
  DEUCE_DEVICE void fold(const Piece& piece, int32_t first, int32_t count, int32_t right,
                         bool is_result) {
    const int rows = piece.rows.last - piece.rows.first;
    DEUCE_ROLLED
    for (int wanted = states_.first_row(); states_.has(wanted, rows); wanted += Rows::kRowStep) {
      const int row = min_of(wanted, rows - 1);
      RowValues o;
      RowState state;
      states_.load_partial(right, row, o, state);
      DEUCE_ROLLED
      for (int32_t i = count - 1; i >= 0; --i)
        states_.merge_left(stacked(first + i), row, o, state);
      const int32_t target = stacked(first);
      machine_.sync_warp();  // the target is one of the slots just read by the row's lanes
      if (wanted >= rows) continue;
      if (is_result) {
        states_.store_result(piece, row, o, state);
      } else {
        states_.store_partial(target, row, o, state);
      }
    }
    machine_.sync_warp();
  }
  DEUCE_DEVICE void write(const Piece& piece, int32_t depth) {
    fold(piece, 0, depth - 1, stacked(depth - 1), true);
  }

  Machine& machine_;
  const Params& params_;
  Rows states_;
  Splits item_, run_;                  // of the item at hand, and of this CTA's part of it
  int32_t depth_ = 0, run_tiles_ = 0;  // of the run being walked
  int32_t merges_ = 0;                 // that the split at hand completes
  int32_t stack_ = 0;                  // slots, one a lane
};

}  // namespace deuce::hopper
