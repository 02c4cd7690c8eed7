// SPDX-License-Identifier: Apache-2.0
// Role `attend`: warps that each own whole KV tiles, then merge once per piece.
// waits for: k_arrived, v_arrived
// signals: kv_released, one arrival per warp of the stream that read the tile
// owns: Q, S, P and O of 16 rows in registers
// Tile t of a piece belongs to stream t % streams, counted from the piece's own start: what a
// stream adds up follows from positions, never from arrival. Which warp runs a stream follows from
// the ring: warp group w always takes slots w, w + streams, ..., so it sees every lap of them.
#pragma once

#include "kernel/hopper/edges.h"
#include "kernel/hopper/merge.h"
#include "kernel/hopper/queries.h"
#include "kernel/hopper/schedule.h"
#include "kernel/hopper/shared.h"
#include "kernel/hopper/stream.h"

namespace deuce::hopper {

template <Config kConfig, class Machine>
class Attend {
 public:
  DEUCE_DEVICE Attend(Machine& machine, SharedStorage<kConfig>& shared, const Params& params,
                      int warp)
      : machine_(machine),
        shared_(shared),
        params_(params),
        warp_(warp),
        group_(warp % kConfig.row_groups),
        slot_(warp / kConfig.row_groups),
        stream_(machine),
        layout_(params) {}

  DEUCE_DEVICE void run(Schedule<kConfig, Machine>& schedule) {
    Merge<kConfig, Machine> merge(machine_, shared_, params_, warp_);
    Piece piece, next;
    // Queries and results: all tiles of old tokens are on the way meanwhile.
    if (params_.starts_early != 0) machine_.wait_previous_grid();
    bool more = schedule.next(next);
    if (more) enter(next);
    DEUCE_ROLLED
    while (more) {
      piece = next;
      // Stream of this piece that this warp runs: its distance from the warp that takes tile 0.
      int index = warp_ / kConfig.row_groups - turn_;
      index += index < 0 ? kConfig.streams : 0;
      stream_.reset();
      if constexpr (Machine::kTraces) {
        machine_.trace_begin({Event::work_item});
        machine_.trace_value(Event::work_item, static_cast<uint32_t>(piece.request));
      }
      attend(piece, index);
      stream_.end(score_scale());
      turn_ = (turn_ + piece.tiles) % kConfig.streams;
      more = schedule.next(next);
      if (more) enter(next);  // its queries are on the way while this piece is merged
      sync();                 // the states of the piece before have been read
      publish(piece, index);
      sync();
      if constexpr (Machine::kTraces) machine_.trace_begin({Event::merge_combine});
      merge.take(piece, schedule);
      if constexpr (Machine::kTraces) {
        machine_.trace_end({Event::merge_combine});
        machine_.trace_end({Event::work_item});
      }
    }
  }

 private:
  using Scores = typename Stream<kConfig, Machine>::Scores;

  DEUCE_DEVICE void sync() { machine_.sync_named(kMergeBarrier, 32 * kConfig.attend_warps()); }

  /// The stream's state to shared memory, if it had a tile.
  DEUCE_DEVICE void publish(const Piece& piece, int index) {
    if (index >= piece.tiles) return;
    const int lane = machine_.lane();
    DEUCE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int row = group_ * kGroupRows + lane / 4 + 8 * i;
      stream_.store_row(shared_.state[index].o[row], i);
      const float sum = stream_.row_sum(i);
      if (lane % 4 == 0) {
        machine_.store_shared(shared_.rows[index][row], RowState{stream_.max(i), sum});
      }
    }
  }

  /// Reads the queries, and this lane's and the item's visible keys.
  DEUCE_DEVICE void enter(const Piece& piece) {
    const int32_t row = piece.rows.first + group_ * kGroupRows + machine_.lane() / 4;
    live_ = piece.rows.first + group_ * kGroupRows < piece.rows.last;
    if (!live_) return;
    load_queries<kConfig>(machine_, params_, piece, row, stream_.queries(), scale_);
    DEUCE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int32_t token = params_.by_group.quotient(min_of(row + 8 * i, piece.rows.last - 1));
      visible_.row[i] = visible_keys(params_, piece.shape, token);
    }
    const Keys first =
        visible_keys(params_, piece.shape, params_.by_group.quotient(piece.rows.first));
    const Keys last =
        visible_keys(params_, piece.shape, params_.by_group.quotient(piece.rows.last - 1));
    visible_.some = {first.first, last.last};
    visible_.all = {last.first, first.last};
  }

  using RowScales = typename Stream<kConfig, Machine>::RowScales;
  /// From scores to log2 units; a softcap has used the rows' own.
  DEUCE_DEVICE RowScales score_scale() const {
    if (params_.softcap > 0) return {kLog2E, kLog2E};
    return {scale_[0], scale_[1]};
  }

  /// Of the tile at the cursor: its number in this CTA.
  DEUCE_DEVICE trace::At here(Event event) const {
    return {event, slot_, lap_, lap_ * kConfig.stages + slot_};
  }

  DEUCE_DEVICE void attend(const Piece& piece, int index) {
    DEUCE_ROLLED
    for (int32_t tile = index; tile < piece.tiles; tile += kConfig.streams) {
      const int32_t position = piece.shape.grid_begin + (piece.tile + tile) * kTileTokens;
      if constexpr (Machine::kTraces) machine_.trace_begin(here(Event::wait_K));
      machine_.wait(shared_.k_arrived[slot_], lap_);
      if constexpr (Machine::kTraces) {
        machine_.trace_end({Event::wait_K});
        machine_.trace_begin(here(Event::wait_V));
      }
      machine_.wait(shared_.v_arrived[slot_], lap_);
      if constexpr (Machine::kTraces) machine_.trace_end({Event::wait_V});
      if (live_) attend_tile(position);
      machine_.sync_warp();
      if constexpr (Machine::kTraces) machine_.trace_instant(here(Event::arrive_kv_released));
      if (machine_.elect()) machine_.arrive(shared_.kv_released[slot_]);
      slot_ += kConfig.streams;
      if (slot_ >= kConfig.stages) {
        slot_ -= kConfig.stages;
        ++lap_;
      }
    }
  }

  DEUCE_DEVICE void attend_tile(int32_t position) {
    const bool masked = position < visible_.all.first || position + kTileTokens > visible_.all.last;
    Scores s;
    if constexpr (Machine::kTraces) machine_.trace_begin(here(Event::mma_issue_QK));
    stream_.multiply_keys(shared_.k[slot_], layout_, s);
    if constexpr (Machine::kTraces) {
      machine_.trace_end({Event::mma_issue_QK});
      machine_.trace_begin(here(Event::sm_compute));
    }
    if (machine_.load_shared(shared_.poisoned[slot_]) != 0) stream_.poison();
    if (params_.softcap > 0) stream_.cap(s, scale_, params_.softcap);
    if (masked) {
      stream_.mask(s, visible_, position);
      stream_.clear_values(shared_.v[slot_], layout_, visible_.some, position);
    }
    stream_.softmax(s, score_scale());
    if constexpr (Machine::kTraces) {
      machine_.trace_end({Event::sm_compute});
      machine_.trace_begin(here(Event::mma_issue_PV));
    }
    stream_.multiply_values(shared_.v[slot_], layout_, s);
    if constexpr (Machine::kTraces) machine_.trace_end({Event::mma_issue_PV});
  }

  Machine& machine_;
  SharedStorage<kConfig>& shared_;
  const Params& params_;
  const int warp_;   // of the role
  const int group_;  // row group
  int slot_;         // of the ring, next to read
  Phase lap_ = 0;
  int turn_ = 0;  // warp group that takes the first tile of the piece
  Stream<kConfig, Machine> stream_;
  const TileLayout<kConfig> layout_;
  Visible visible_;
  bool live_ = true;  // some row of this warp's group is real; else it only gives tiles back
  float scale_[2] = {1, 1};
};

}  // namespace deuce::hopper
