// SPDX-License-Identifier: Apache-2.0
// The tiles of a piece by warps that each own whole tiles of 16 rows.
// Used by attend.h where Config::engine is `warp`.
#pragma once

#include "kernel/hopper/tiles.h"
#include "kernel/hopper/warp_stream.h"

namespace deuce::hopper {

template <Config kConfig, class Machine>
class WarpTiles : public Tiles<kConfig, Machine, WarpStream> {
  using Base = Tiles<kConfig, Machine, WarpStream>;
  using Base::machine_, Base::shared_, Base::params_, Base::slot_, Base::stream_, Base::layout_;
  using Base::visible_, Base::live_, Base::scale_;
  using typename Base::Products;

 public:
  using Base::Base;

  /// Every kConfig.streams-th tile of the piece from `index` on.
  DEUCE_DEVICE void attend(const TileRun& run, int index) {
    DEUCE_ROLLED
    for (int32_t tile = index; tile < run.tiles; tile += kConfig.streams) {
      this->wait_keys(this->here());
      this->wait_values(this->here());
      if (live_) attend_tile(this->position_of(run, tile));
      if constexpr (Machine::kTraces) {
        if (!live_) machine_.trace_end({Event::wait_V});
      }
      this->release();
    }
  }

 private:
  DEUCE_DEVICE void attend_tile(int32_t position) {
    const bool masked = this->masked(position);
    typename Products::Scores s;
    if constexpr (Machine::kTraces)
      machine_.trace_next(this->at(Event::mma_issue_QK, this->here()));
    stream_.multiply_keys(shared_.k[slot_], layout_, s);
    if constexpr (Machine::kTraces) machine_.trace_next(this->at(Event::sm_compute, this->here()));
    if (machine_.load_shared(shared_.poisoned[slot_]) != 0) stream_.poison();
    if (params_.softcap > 0) stream_.cap(s, scale_, params_.softcap);
    if (masked) {
      stream_.mask(s, visible_, position);
      stream_.clear_values(shared_.v[slot_], layout_, visible_.some, position);
    }
    if constexpr (Machine::kTraces) machine_.trace_begin(this->at(Event::sm_max, this->here()));
    const bool moved = stream_.raise(s, this->score_scale());
    if constexpr (Machine::kTraces) machine_.trace_end({Event::sm_max});
    if (moved) stream_.rescale_output();
    if constexpr (Machine::kTraces) machine_.trace_begin(this->at(Event::sm_exp, this->here()));
    stream_.weigh(s, this->score_scale());
    if constexpr (Machine::kTraces) {
      machine_.trace_end({Event::sm_exp});
      machine_.trace_next(this->at(Event::mma_issue_PV, this->here()));
    }
    stream_.multiply_values(shared_.v[slot_], layout_, s);
    if constexpr (Machine::kTraces) machine_.trace_end({Event::mma_issue_PV});
  }
};

}  // namespace deuce::hopper
