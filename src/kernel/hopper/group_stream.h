// SPDX-License-Identifier: Apache-2.0
// The matrix products of one softmax stream by instructions of a warpgroup: 64 query rows, of which
// each warp holds 16; K and V are read where the copies have put them.
// Used by group_tiles.h. Products run asynchronously: scores, weights and output may be touched
// only behind the wait that covers them.
#pragma once

#include "kernel/hopper/group_descriptors.h"
#include "kernel/hopper/machine.h"
#include "kernel/hopper/stream.h"

namespace deuce::hopper {

template <Config kConfig, class Machine>
class GroupStream : public Stream<kConfig, Machine> {
  using Base = Stream<kConfig, Machine>;
  using Base::machine_, Base::q_, Base::o_;
  using Type = MmaType<kConfig>;
  using Tiles = GroupDescriptors<kConfig>;

 public:
  using Scores = typename Base::Scores;
  using Weights = typename Base::Weights;
  using Base::Base;

  /// Begins s = Q K^T for 64 keys: one group.
  DEUCE_DEVICE void begin_scores(const unsigned char* tile, Scores& s) {
    const uint64_t keys = Tiles::keys(machine_.shared_address(tile));
    machine_.wgmma_pin(s);
    machine_.wgmma_fence();
    DEUCE_UNROLL
    for (int step = 0; step < Tiles::kKeySteps; ++step) {
      machine_.template wgmma<Type, false>(s, q_[step], keys + Tiles::key_step(step), step > 0);
    }
    machine_.wgmma_commit();
  }

  /// Begins o += P V: one group.
  DEUCE_DEVICE void begin_output(const unsigned char* tile, const Weights& p) {
    const uint64_t values = Tiles::values(machine_.shared_address(tile));
    machine_.wgmma_pin(o_);
    machine_.wgmma_fence();
    DEUCE_UNROLL
    for (int step = 0; step < Tiles::kValueSteps; ++step) {
      machine_.template wgmma<Type, true>(o_, p[step], values + Tiles::value_step(step), true);
    }
    machine_.wgmma_commit();
  }
  /// Behind the wait for it.
  DEUCE_DEVICE void end_output() { machine_.wgmma_pin(o_); }
};

}  // namespace deuce::hopper
