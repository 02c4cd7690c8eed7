// SPDX-License-Identifier: Apache-2.0
// End of a piece: the streams of a CTA become one state, and the pieces of an item one result.
// Used by the attend warps once the streams' states lie in shared memory. Nobody waits for another
// warp from there on, nor for another CTA. States merge in stream order, partials in split order,
// whoever arrives last: the same call gives the same bits. More than kMaxParts partials merge in
// groups first.
#pragma once

#include "kernel/hopper/split_merge.h"
#include "kernel/hopper/states.h"

namespace deuce::hopper {

template <Config kConfig, class Machine>
class Merge {
 public:
  DEUCE_DEVICE Merge(Machine& machine, SharedStorage<kConfig>& shared, const Params& params,
                     int warp)
      : machine_(machine),
        shared_(shared),
        params_(params),
        states_(machine, shared, params, warp),
        tree_(machine, params, states_) {}

  DEUCE_DEVICE void take(const Piece& piece, const Schedule<kConfig, Machine>& schedule) {
    if (piece.cut) place(piece, schedule);
    take_states(piece);
    if (piece.cut) finish(piece, schedule);
  }

 private:
  using Rows = States<kConfig, Machine>;
  using RowValues = typename Rows::RowValues;
  static constexpr int kMaxParts = Rows::kMaxParts;

  /// What is merged at present: `count` partials first, first + step, ...
  struct Level {
    int32_t first = 0, step = 0, count = 0;
    bool result = false;  // the item's result
  };

  DEUCE_DEVICE bool in_tree(const Piece& piece) const {
    return kConfig.fixed_borders && piece.cut && params_.split_tiles > 0;
  }
  DEUCE_DEVICE int32_t slot_of(int32_t order) const {
    return first_slot_ + slot_step_ * order + (order == 0 ? shift_ : 0);
  }

  /// Where the piece's state goes, which pieces its item has and how they are grouped.
  DEUCE_DEVICE void place(const Piece& piece, const Schedule<kConfig, Machine>& schedule) {
    if (in_tree(piece)) return tree_.place(piece, schedule);
    const int32_t tiles = piece.shape.tiles();
    if (kConfig.fixed_borders) {
      // With fewer tiles than parts every part that exists holds one tile.
      const bool few = tiles < params_.num_splits;
      pieces_ = few ? tiles : params_.num_splits;
      order_ = few ? piece.tile - piece.shape.tile_begin : piece.split;
      const int32_t item = (piece.request * params_.kv_heads + piece.head) * params_.max_row_tiles +
                           piece.rows.first / kConfig.rows();
      first_slot_ = item * params_.num_splits;
      slot_step_ = 1;
      counter_ = params_.slots + item;
    } else {
      int32_t first_worker;
      if (schedule.workers_per_item() > 0) {
        pieces_ = schedule.workers_per_item();
        order_ = params_.by_workers_per_item.remainder(machine_.block());
        first_worker = machine_.block() - order_;
      } else {
        first_worker = schedule.worker_of(piece.item_begin);
        order_ = machine_.block() - first_worker;
        pieces_ = schedule.worker_of(piece.item_begin + tiles - 1) - first_worker + 1;
      }
      // A CTA has two cut pieces at most: one that continues an item, one that begins another.
      first_slot_ = 2 * first_worker;
      slot_step_ = 2;
      shift_ = 1;
      counter_ = params_.slots + first_worker;
    }
    group_size_ = kMaxParts;
    if (pieces_ <= kMaxParts) return;
    // Two levels of about the same height.
    DEUCE_ROLLED
    while (group_size_ * group_size_ > 2 * pieces_) --group_size_;
  }

  /// One state from those of the streams, after place(). It is the result of a whole item.
  DEUCE_DEVICE void take_states(const Piece& piece) {
    const int rows = piece.rows.last - piece.rows.first;
    const int streams = min_of(piece.tiles, kConfig.states());
    DEUCE_ROLLED
    for (int wanted = states_.first_row(); states_.has(wanted, rows); wanted += Rows::kRowStep) {
      const int row = min_of(wanted, rows - 1);
      RowValues o;
      RowState state;
      states_.merge_streams(streams, row, o, state);
      if (in_tree(piece)) tree_.merge_into(row, o, state);
      machine_.sync_warp();  // the slot may be one just read by the row's lanes
      if (wanted >= rows) continue;
      if (piece.cut) {
        states_.store_partial(in_tree(piece) ? tree_.slot() : slot_of(order_), row, o, state);
      } else {
        states_.store_result(piece, row, o, state);
      }
    }
  }

  /// Whatever the piece completes.
  DEUCE_DEVICE void finish(const Piece& piece, const Schedule<kConfig, Machine>& schedule) {
    const int rows = piece.rows.last - piece.rows.first;
    if (in_tree(piece)) return tree_.finish(piece, schedule);
    if (!states_.has(states_.first_row(), rows)) return;
    Level level;
    DEUCE_ROLLED
    while (rise(level)) {
      const Slots slots{first_slot_ + slot_step_ * level.first, slot_step_ * level.step,
                        level.count, level.first == 0 ? shift_ : 0};
      DEUCE_ROLLED
      for (int first = states_.first_row(); states_.has(first, rows);
           first += Rows::kBatch * Rows::kRowStep) {
        RowValues o[Rows::kBatch];
        RowState state[Rows::kBatch];
        states_.merge_partials(slots, first, rows, o, state);
        machine_.sync_warp();  // the target is one of the slots just read by the row's lanes
        DEUCE_UNROLL
        for (int b = 0; b < Rows::kBatch; ++b) {
          const int row = first + b * Rows::kRowStep;
          if (row >= rows) continue;
          if (level.result) {
            states_.store_result(piece, row, o[b], state[b]);
          } else {
            states_.store_partial(slots.at(0), row, o[b], state[b]);
          }
        }
      }
      if (level.result) return;
    }
  }

  /// This warp has stored a partial of a level. True for the last of its group, which goes on with
  /// the next level. A group counts at the slot of its first piece, an item behind all slots.
  DEUCE_DEVICE bool rise(Level& level) {
    int32_t counter = counter_;
    if (level.count == 0) {
      // Most items have one group: short calls do without the division.
      level.first = pieces_ <= kMaxParts ? 0 : order_ - order_ % group_size_;
      level.step = 1;
      level.count = min_of(group_size_, pieces_ - level.first);
      level.result = level.count == pieces_;
      counter = slot_of(level.first);
    } else {
      level = {.first = 0,
               .step = group_size_,
               .count = (pieces_ + group_size_ - 1) / group_size_,
               .result = true};
    }
    return states_.last_to_arrive(counter, 1, level.count);
  }

  Machine& machine_;
  SharedStorage<kConfig>& shared_;
  const Params& params_;
  States<kConfig, Machine> states_;
  SplitMerge<kConfig, Machine> tree_;
  // Of a cut piece.
  int32_t order_ = 0, pieces_ = 1, group_size_ = 1;
  int32_t first_slot_ = 0, slot_step_ = 1, shift_ = 0, counter_ = 0;
};

}  // namespace deuce::hopper
