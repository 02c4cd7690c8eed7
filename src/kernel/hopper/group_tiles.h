// SPDX-License-Identifier: Apache-2.0
// The tiles of a piece by warpgroups of 64 rows each.
// Used by attend.h where Config::engine is `warpgroup`. With two score slots QK of the stream's
// next tile runs while softmax reads the present scores: the same operations on the same operands
// in the same order, so the same bits as with one.
#pragma once

#include "kernel/hopper/group_stream.h"
#include "kernel/hopper/tiles.h"

namespace deuce::hopper {

template <Config kConfig, class Machine>
class GroupTiles : public Tiles<kConfig, Machine, GroupStream> {
  using Base = Tiles<kConfig, Machine, GroupStream>;
  using Base::layout_, Base::visible_, Base::live_, Base::scale_;
  using Base::machine_, Base::shared_, Base::params_, Base::slot_, Base::lap_, Base::stream_;
  using typename Base::Cursor;
  using typename Base::Products;
  using Scores = typename Products::Scores;

 public:
  using Base::Base;

  /// Every kConfig.streams-th tile of the run from `index` on.
  DEUCE_DEVICE void attend(const TileRun& run, int index) {
    Scores s;
    if constexpr (kConfig.score_slots == 1) {
      DEUCE_ROLLED
      for (int32_t tile = index; tile < run.tiles; tile += kConfig.streams) {
        begin_scores(this->here(), s);
        finish_tile(this->position_of(run, tile), s, this->here());
      }
    } else {
      if (index >= run.tiles) return;
      Scores other;
      begin_scores(this->here(), s);
      machine_.template wgmma_wait<0>();
      DEUCE_ROLLED
      for (int32_t tile = index; tile < run.tiles; tile += 2 * kConfig.streams) {
        attend_ahead(run, tile, s, other);
        if (tile + kConfig.streams >= run.tiles) break;
        attend_ahead(run, tile + kConfig.streams, other, s);
      }
    }
  }

 private:
  using Weights = typename Products::Weights;

  /// The tile whose scores are in `s`, those of the stream's next one on their way to `next`.
  /// Behind the last it is the same tile once more, for nothing: ptxas orders all products one
  /// behind another where one in flight depends on a branch.
  DEUCE_DEVICE void attend_ahead(const TileRun& run, int32_t tile, Scores& s, Scores& next) {
    const bool more = tile + kConfig.streams < run.tiles;
    const Cursor ahead = more ? this->behind(this->here()) : this->here();
    begin_scores(ahead, next);
    finish_tile(this->position_of(run, tile), s, ahead);
  }

  DEUCE_DEVICE void begin_scores(Cursor cursor, Scores& s) {
    this->wait_keys(cursor);
    if constexpr (Machine::kTraces) machine_.trace_next(this->at(Event::mma_issue_QK, cursor));
    stream_.begin_scores(shared_.k[cursor.slot], s);
    if constexpr (Machine::kTraces) {
      if constexpr (kConfig.score_slots == 1) {
        machine_.trace_next(this->at(Event::mma_wait_QK, cursor));
      } else {
        machine_.trace_end({Event::mma_issue_QK});
      }
    }
  }
  /// Softmax, PV and the tile given back; QK of tile `ahead` may be running.
  DEUCE_DEVICE void finish_tile(int32_t position, Scores& s, Cursor ahead) {
    Weights p;
    weigh(position, s, p, ahead);
    stream_.begin_output(shared_.v[slot_], p);
    if constexpr (Machine::kTraces) machine_.trace_next(this->at(Event::mma_wait_PV, this->here()));
    machine_.template wgmma_wait<0>();
    stream_.end_output();
    if constexpr (Machine::kTraces) machine_.trace_end({Event::mma_wait_PV});
    this->release();
  }

  /// From scores to weights, and the output made ready for them.
  DEUCE_DEVICE void weigh(int32_t position, Scores& s, Weights& p, [[maybe_unused]] Cursor ahead) {
    const bool masked = this->masked(position);
    // Asked for now, their answers come meanwhile.
    const bool values_here = machine_.test(shared_.v_arrived[slot_], lap_);
    const bool poisoned = machine_.load_shared(shared_.poisoned[slot_]) != 0;
    if constexpr (kConfig.score_slots == 1) machine_.template wgmma_wait<0>();
    machine_.wgmma_pin(s);
    if constexpr (Machine::kTraces) {
      if constexpr (kConfig.score_slots == 1) {
        machine_.trace_next(this->at(Event::sm_compute, this->here()));
      } else {
        machine_.trace_begin(this->at(Event::sm_compute, this->here()));
      }
    }
    bool moved = false;
    if (live_) {
      if (params_.softcap > 0) stream_.cap(s, scale_, params_.softcap);
      if (masked) stream_.mask(s, visible_, position);
      if constexpr (Machine::kTraces) machine_.trace_begin(this->at(Event::sm_exp, this->here()));
      const bool settled = stream_.weigh_settled(s, this->score_scale(), p);
      if constexpr (Machine::kTraces) machine_.trace_end({Event::sm_exp});
      if (!settled) moved = weigh_moved(s, p);
    } else {
      stream_.clear_weights(p);
    }
    if (poisoned) stream_.poison();
    this->wait_values(this->here(), values_here);
    if constexpr (Machine::kTraces) {
      if constexpr (kConfig.score_slots > 1) {
        machine_.trace_next(this->at(Event::mma_wait_QK, ahead));
      } else {
        machine_.trace_next(this->at(Event::mma_issue_PV, this->here()));
      }
    }
    if (masked) stream_.clear_values(shared_.v[slot_], layout_, visible_.some, position);
    // QK of the next tile has had the exponentials' time. The output is not touched beside it:
    // ptxas would order every product behind every other.
    if constexpr (kConfig.score_slots > 1) {
      machine_.template wgmma_wait<0>();
      if constexpr (Machine::kTraces)
        machine_.trace_next(this->at(Event::mma_issue_PV, this->here()));
    }
    if (moved) stream_.rescale_output();
  }

  /// The weights where some row may outgrow its maximum. True if one did.
  DEUCE_DEVICE bool weigh_moved(Scores& s, Weights& p) {
    if constexpr (Machine::kTraces) machine_.trace_begin(this->at(Event::sm_max, this->here()));
    const bool moved = stream_.raise(s, this->score_scale());
    if constexpr (Machine::kTraces) {
      machine_.trace_end({Event::sm_max});
      machine_.trace_begin(this->at(Event::sm_exp, this->here()));
    }
    stream_.weigh(s, this->score_scale());
    stream_.round_weights(s, p);
    if constexpr (Machine::kTraces) machine_.trace_end({Event::sm_exp});
    return moved;
  }
};

}  // namespace deuce::hopper
