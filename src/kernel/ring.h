// SPDX-License-Identifier: Apache-2.0
// Ring cursor: the only place that knows how a running count maps to a slot and a phase.
// Every role that goes round a set of slots holds one per ring. It must never be reset between
// work items: barriers are not reset either.
#pragma once

#include "kernel/machine.h"

namespace deuce {

template <int kSlots>
class Ring {
 public:
  /// The side that waits for a slot to be filled: use c waits for phase c / slots.
  static constexpr Ring consumer() { return Ring{0}; }
  /// The side that waits for a slot to be free: one phase earlier, so the first lap passes at once.
  static constexpr Ring producer() { return Ring{-1}; }

  constexpr int slot() const { return slot_; }
  constexpr Phase phase() const { return phase_; }
  constexpr void advance() {
    if (++slot_ == kSlots) {
      slot_ = 0;
      ++phase_;
    }
  }

 private:
  constexpr explicit Ring(Phase phase) : phase_(phase) {}
  int slot_ = 0;
  Phase phase_;
};

}  // namespace deuce
