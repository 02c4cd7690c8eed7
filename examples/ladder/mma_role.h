// SPDX-License-Identifier: Apache-2.0
// The mma role with ping-pong (steps 6 and 7): QK of the next tile is issued before PV of this one.
#pragma once

#include "roles.h"

namespace deuce::ladder {

inline constexpr int kSlots = 2;              // of S and P
inline constexpr uint32_t kO = 128 * kSlots;  // columns of tensor memory
constexpr uint32_t s_column(int slot) { return 128 * static_cast<uint32_t>(slot); }

template <class Storage>
void issue_mmas(Machine& machine, Storage& shared) {
  if (!machine.elect()) return;
  auto ring = Ring<kRing>::consumer();
  const auto take = [&]() -> const Tile& {
    machine.wait(shared.kv_arrived[ring.slot()], ring.phase());
    return shared.kv[ring.slot()];
  };
  const auto release = [&] {
    machine.commit(shared.kv_released[ring.slot()]);
    ring.advance();
  };
  const auto scores = [&](int tile) {
    issue_scores(machine, s_column(tile % kSlots), shared.q, take());
    machine.commit(shared.s_ready[tile % kSlots]);
    release();
  };
  machine.wait(shared.q_arrived, 0);
  scores(0);
  for (int tile = 0; tile < kTiles; ++tile) {
    const int slot = tile % kSlots;
    if (tile + 1 < kTiles) scores(tile + 1);
    const Tile& v = take();
    machine.wait(shared.po_ready[slot], tile / kSlots);
    machine.fence_after_sync();
    issue_output(machine, kO, s_column(slot), v, tile == 0);
    machine.commit(shared.o_ready[slot]);
    release();
  }
}

}  // namespace deuce::ladder
