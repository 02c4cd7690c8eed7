// SPDX-License-Identifier: Apache-2.0
// The epilogue's part under split_kv_len: states of splits are merged along the fixed tree of
// split_tree.h, so that the result does not depend on the grid or on the rest of the batch.
// A warp owns every fourth row and a lane every 32nd column in all slots, so that a block reads
// back only what the same thread wrote; other blocks' nodes come behind the item's counter.
#pragma once

#include "kernel/blackwell/output.h"

namespace deuce::blackwell {

template <Config kConfig, class Machine>
class SplitMerge {
 public:
  DEUCE_DEVICE SplitMerge(Machine& machine, SharedStorage<kConfig>& shared, const Params& params)
      : machine_(machine), shared_(shared), params_(params), warp_(machine.warp() % 4) {}

  /// Takes the state of one split from the block's staging slot. `arrive(item, tiles)` counts a
  /// finished run and is true in the block that completes the item; `end_item(item, slot)` ends it.
  template <class Arrive, class EndItem>
  DEUCE_DEVICE void take(const Item& item, int32_t split, int32_t tiles, int64_t total,
                         const Arrive& arrive, const EndItem& end_item) {
    const TileSpan splits = item_splits(params_.shape, item.tiles);
    const TileSpan run = run_of(params_.shape, total, item, machine_.block());
    const bool starts_item = run.first == splits.first;
    if (split == run.first) {
      depth_ = 0;
      run_tiles_ = 0;
    }
    run_tiles_ += tiles;
    const int64_t staged = staging_slot<kConfig>(params_, machine_.block(), 0);
    int32_t merges = merges_with({split, 0}, starts_item ? 0 : run.first, splits.first);
    if (merges == 0) {
      merge(item, node(starts_item, depth_++), staged, true);
    } else {
      merge(item, node(starts_item, depth_ - 1), staged, false);
      for (; merges > 1; --merges) fold(item, starts_item);
    }
    if (split + 1 < run.last) return;
    if (run.count() == splits.count()) {
      while (depth_ > 1) fold(item, starts_item);
      end_item(item, node(starts_item, 0));
    } else if (arrive(item, run_tiles_)) {
      end_item(item, merge_runs(item, splits, total));
    }
  }

 private:
  static constexpr int kColumnsPerLane = kConfig.head_dim / 32;

  DEUCE_DEVICE int64_t node(bool starts_item, int32_t depth) const {
    return params_.partial_map.node_slot(machine_.block(), starts_item, depth);
  }
  DEUCE_DEVICE void fold(const Item& item, bool starts_item) {
    --depth_;
    merge(item, node(starts_item, depth_ - 1), node(starts_item, depth_), false);
  }

  /// Slot `left` becomes the merge of both, left first; or a copy of `right`.
  DEUCE_DEVICE void merge(const Item& item, int64_t left, int64_t right, bool copy) {
    const Partial to = partial_in_slot(params_, left, kConfig.head_dim);
    const Partial from = partial_in_slot(params_, right, kConfig.head_dim);
    DEUCE_ROLLED
    for (int32_t row = warp_; row < item.rows; row += 4) {
      const float right_max = machine_.load_global(from.max + row);
      const float left_max = copy ? kNoKey : machine_.load_global(to.max + row);
      const float max = merge_max(left_max, right_max);
      const float left_weight = merge_weight(machine_, left_max, max);
      const float right_weight = merge_weight(machine_, right_max, max);
      const float sum = weighed(left_max, left_weight, to.sum + row) +
                        weighed(right_max, right_weight, from.sum + row);
      float* values = to.o + int64_t{row} * kConfig.head_dim + machine_.lane();
      const float* more = from.o + int64_t{row} * kConfig.head_dim + machine_.lane();
      for (int c = 0; c < kColumnsPerLane; ++c) {
        machine_.store_global(values + 32 * c, weighed(left_max, left_weight, values + 32 * c) +
                                                   weighed(right_max, right_weight, more + 32 * c));
      }
      machine_.sync_warp();  // all lanes have read the old maximum and sum
      if (machine_.elect()) {
        machine_.store_global(to.max + row, max);
        machine_.store_global(to.sum + row, sum);
      }
      machine_.sync_warp();
    }
  }
  /// Left out rather than weighed by 0: a state without a key need not be finite.
  DEUCE_DEVICE float weighed(float max, float weight, const float* value) {
    return max == kNoKey ? 0.0F : weight * machine_.load_global(value);
  }

  /// Pushes the nodes that all runs of the item left behind, in order, through the same rule.
  /// Returns the slot of the whole. The stack of slot numbers lies in shared memory, one a warp.
  DEUCE_DEVICE int64_t merge_runs(const Item& item, const TileSpan& splits, int64_t total) {
    int32_t depth = 0;
    const WorkerSpan workers = workers_of(params_.shape, total, item);
    DEUCE_ROLLED
    for (int32_t worker = workers.first; worker <= workers.last; ++worker) {
      const TileSpan run = run_of(params_.shape, total, item, worker);
      if (run.empty()) continue;
      RunNodes nodes(run.first, run.last, splits.first);
      TreeNode next;
      DEUCE_ROLLED
      for (int32_t i = 0; nodes.next(next); ++i) {
        const int64_t slot = params_.partial_map.node_slot(worker, run.first == splits.first, i);
        int32_t merges = merges_with(next, 0, splits.first);
        if (merges == 0) {
          push(depth++, slot);
          continue;
        }
        merge(item, top(depth - 1), slot, false);
        for (; merges > 1; --merges, --depth) merge(item, top(depth - 2), top(depth - 1), false);
      }
    }
    for (; depth > 1; --depth) merge(item, top(depth - 2), top(depth - 1), false);
    return top(0);
  }
  DEUCE_DEVICE void push(int32_t depth, int64_t slot) {
    if (machine_.elect()) {
      machine_.store_shared(shared_.merge_stack[warp_][depth], static_cast<int32_t>(slot));
    }
    machine_.sync_warp();
  }
  DEUCE_DEVICE int64_t top(int32_t depth) {
    return machine_.load_shared(shared_.merge_stack[warp_][depth]);
  }

  Machine& machine_;
  SharedStorage<kConfig>& shared_;
  const Params& params_;
  int warp_;
  int32_t depth_ = 0, run_tiles_ = 0;  // of the run being walked
};

}  // namespace deuce::blackwell
