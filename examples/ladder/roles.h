// SPDX-License-Identifier: Apache-2.0
// The load role of steps 5 to 7, and their start: what no longer changes from step to step.
#pragma once

#include <vector>

#include "kernel/edges.h"
#include "kernel/ring.h"
#include "tiles.h"

namespace deuce::ladder {

inline constexpr int kRing = 6;  // K or V tiles

/// K and V tiles in the order in which the mma warp reads them, `ahead` K tiles in front of V.
template <class Storage>
void load_tiles(Machine& machine, Storage& shared, const Inputs& in, int ahead) {
  if (!machine.elect()) return;
  machine.arrive_expect(shared.q_arrived, sizeof(Tile));
  copy_tile(machine, shared.q, in.q_map, 0, shared.q_arrived);
  auto ring = Ring<kRing>::producer();
  const auto put = [&](const TensorMap& map, int tile) {
    machine.wait(shared.kv_released[ring.slot()], ring.phase());
    machine.arrive_expect(shared.kv_arrived[ring.slot()], sizeof(Tile));
    copy_tile(machine, shared.kv[ring.slot()], map, tile, shared.kv_arrived[ring.slot()]);
    ring.advance();
  };
  for (int tile = 0; tile < ahead; ++tile) put(in.k_map, tile);
  for (int tile = 0; tile < kTiles; ++tile) {
    if (tile + ahead < kTiles) put(in.k_map, tile + ahead);
    put(in.v_map, tile);
  }
  for (int i = 0; i < kRing; ++i, ring.advance()) {
    machine.wait(shared.kv_released[ring.slot()], ring.phase());
  }
}

/// One row of a barrier table: who arrives how, who waits, and the barrier's place.
inline Edge edge(const char* name, std::array<Arrival, 6> arrives, Role waits, int slots,
                 const char* protects, std::size_t offset) {
  return {.name = name,
          .arrives = arrives,
          .waits = waits,
          .slots = slots,
          .protects = protects,
          .offset = offset};
}

/// The rows of Q, K and V, and what the mma warp tells softmax: the same in every step.
template <class Storage>
std::vector<Edge> common_edges(int slots) {
  return {edge("q_arrived", {{{Role::load, By::bytes}}}, Role::mma, 1, "Q",
               offsetof(Storage, q_arrived)),
          edge("kv_arrived", {{{Role::load, By::bytes}}}, Role::mma, kRing, "a K or V tile",
               offsetof(Storage, kv_arrived)),
          edge("kv_released", {{{Role::mma, By::commit}}}, Role::load, kRing, "a K or V tile",
               offsetof(Storage, kv_released)),
          edge("s_ready", {{{Role::mma, By::commit}}}, Role::softmax, slots, "S",
               offsetof(Storage, s_ready))};
}
inline std::vector<Edge> operator+(std::vector<Edge> one, const std::vector<Edge>& two) {
  one.insert(one.end(), two.begin(), two.end());
  return one;
}

/// Barriers are made from the table: arrivals are counted, never typed.
inline void init_edges(Machine& machine, void* shared, const std::vector<Edge>& edges,
                       const std::vector<WarpRange>& roles) {
  if (machine.thread() != 0) return;
  for (const Edge& row : edges) {
    auto* first = reinterpret_cast<Barrier*>(static_cast<unsigned char*>(shared) + row.offset);
    for (int slot = 0; slot < row.slots; ++slot) machine.init(first[slot], arrivals(row, roles));
  }
}

template <class Storage>
emulator::KernelSpec kernel_spec(const std::vector<WarpRange>& roles,
                                 const std::vector<Edge>& edges) {
  emulator::KernelSpec spec;
  for (const WarpRange& range : roles) spec.threads += 32 * range.warps;
  spec.shared_bytes = sizeof(Storage);
  spec.roles = roles;
  spec.edges = edges;
  return spec;
}

}  // namespace deuce::ladder
