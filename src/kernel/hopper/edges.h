// SPDX-License-Identifier: Apache-2.0
// Who signals whom in the Hopper kernel, as data. Everything about barriers comes from this table:
// the counts the kernel initialises them with, the emulator's checks, mutants and docs.
#pragma once

#include <array>
#include <cstddef>

#include "kernel/edges.h"
#include "kernel/hopper/shared.h"

namespace deuce::hopper {

/// Named barrier on which all attend warps meet when a piece ends.
inline constexpr int kMergeBarrier = 1;

/// Registers a thread of warps that do not move any: what the launch bounds leave.
constexpr int launch_registers(int threads) {
  const int share = 65536 / threads / 8 * 8;
  return share < 248 ? share : 248;
}

/// Where they are moved. Two score slots of head dim 128 leave the load warps what they can.
constexpr int attend_registers(const Config& config) {
  return config.score_slots > 1 && config.head_dim == 128 ? 224 : 216;
}
constexpr int load_registers(const Config& config) {
  return attend_registers(config) == 224 ? 56 : 72;
}

template <Config kConfig>
inline constexpr std::array kRoles{
    WarpRange{
        Role::load, 0, 2,
        kConfig.moves_registers() ? load_registers(kConfig) : launch_registers(kConfig.threads())},
    WarpRange{Role::idle, 2, kConfig.load_warps() - 2, load_registers(kConfig)},
    WarpRange{Role::attend, kConfig.load_warps(), kConfig.attend_warps(),
              kConfig.moves_registers() ? attend_registers(kConfig)
                                        : launch_registers(kConfig.threads())}};

/// One lane of each warp of the stream that a slot belongs to.
template <Config kConfig>
constexpr std::array<Arrival, 6> stream_arrivals() {
  std::array<Arrival, 6> arrivals{};
  if constexpr (kConfig.streams == 1) {
    arrivals[0] = {Role::attend, By::one_lane_per_warp};
  } else {
    static_assert(kConfig.row_groups <= 6);
    for (int group = 0; group < kConfig.row_groups; ++group) {
      arrivals[static_cast<std::size_t>(group)] = {Role::attend, By::one_lane};
    }
  }
  return arrivals;
}

/// Slots of a ring are dealt to the streams, so a slot is waited for by the warps of one stream and
/// not by the whole role: `waits_too`.
template <Config kConfig>
constexpr auto edges() {
  using Storage = SharedStorage<kConfig>;
  constexpr std::array kOneStream{Role::attend, Role::idle, Role::idle, Role::idle, Role::idle};
  return std::array{
      Edge{.name = "k_arrived",
           .arrives = {{{Role::load, By::bytes}}},
           .waits_too = kOneStream,
           .slots = kConfig.stages,
           .protects = "K tile, and whether its page exists",
           .offset = offsetof(Storage, k_arrived)},
      Edge{.name = "v_arrived",
           .arrives = {{{Role::load, By::bytes}}},
           .waits_too = kOneStream,
           .slots = kConfig.stages,
           .protects = "V tile",
           .offset = offsetof(Storage, v_arrived)},
      Edge{.name = "kv_released",
           .arrives = stream_arrivals<kConfig>(),
           .waits = Role::load,
           .slots = kConfig.stages,
           .protects = "K and V tile of a slot",
           .offset = offsetof(Storage, kv_released)},
      Edge{.name = "streams_meet",
           .arrives = {{{Role::attend, By::each_thread}}},
           .waits = Role::attend,
           .protects = "states of the streams: stored, and read again before the next piece's",
           .kind = EdgeKind::named,
           .first_id = kMergeBarrier,
           .threads = 32 * kConfig.attend_warps()},
      Edge{.name = "V cleared twice",
           .arrives = {{{Role::attend, By::each_thread}}},
           .waits = Role::attend,
           .protects = "V of keys that nobody sees: all warps of a stream store the same zeros, "
                       "and each reads them behind its own stores",
           .kind = EdgeKind::implied},
  };
}

template <Config kConfig>
inline constexpr auto kEdges = edges<kConfig>();

/// Arrivals per phase of a row. A constant of its own: device code cannot refer to the tables.
template <Config kConfig, std::size_t kRow>
inline constexpr int kArrivals = arrivals(kEdges<kConfig>[kRow], kRoles<kConfig>);

}  // namespace deuce::hopper
