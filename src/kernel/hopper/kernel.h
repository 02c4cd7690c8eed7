// SPDX-License-Identifier: Apache-2.0
// The Hopper decode kernel: two load warps feed a ring of KV tiles, attend warps empty it.
// One launch, one CTA per SM, every CTA an equal stretch of all KV tiles (stream-K) or a part of
// one item; see
// docs/hopper.md. The whole protocol is three barriers per ring slot.
#pragma once

#include <utility>

#include "kernel/hopper/attend.h"
#include "kernel/hopper/edges.h"
#include "kernel/hopper/idle_rows.h"
#include "kernel/hopper/load.h"

namespace deuce::hopper {

/// Slot `slot` of the barriers of row `kRow` of the edge table.
template <Config kConfig, std::size_t kRow, class Machine>
DEUCE_DEVICE void init_edge(Machine& machine, SharedStorage<kConfig>& shared, int slot) {
  constexpr bool kIsBarrier = kEdges<kConfig>[kRow].kind == EdgeKind::barrier;
  if constexpr (kIsBarrier) {
    static_assert(kEdges<kConfig>[kRow].slots == kConfig.stages, "one loop serves all rings");
    constexpr std::size_t kOffset = kEdges<kConfig>[kRow].offset;
    auto* first = reinterpret_cast<Barrier*>(reinterpret_cast<unsigned char*>(&shared) + kOffset);
    machine.init(first[slot], kArrivals<kConfig, kRow>);
  }
}

template <Config kConfig, class Machine, std::size_t... kRow>
DEUCE_DEVICE void init_edges(Machine& machine, SharedStorage<kConfig>& shared,
                             std::index_sequence<kRow...>) {
  for (int slot = 0; slot < kConfig.stages; ++slot) {
    (init_edge<kConfig, kRow>(machine, shared, slot), ...);
  }
}

template <Config kConfig, class Machine>
DEUCE_DEVICE void decode_kernel(Machine& machine, const Params& params) {
  static_assert(kConfig.stages % kConfig.streams == 0,
                "a warp must see every lap of its slots, or parity cannot tell them apart");
  static_assert(sizeof(SharedStorage<kConfig>) <= 232448, "more than an SM's shared memory");
  auto& shared = machine.template shared<SharedStorage<kConfig>>();
  if constexpr (Machine::kTraces) {
    machine.trace_begin({Event::warp_lifetime});
    machine.trace_begin({Event::prologue});
  }
  const int warp = machine.warp();
  if (warp < 2 && machine.elect()) machine.prefetch_map(warp == 0 ? params.k_map : params.v_map);
  if (warp == 0 && machine.elect()) {
    init_edges<kConfig>(machine, shared, std::make_index_sequence<kEdges<kConfig>.size()>{});
    machine.fence_barrier_init();
  }
  if (params.starts_early != 0) machine.allow_next_grid();
  Schedule<kConfig, Machine> schedule(machine, params);
  machine.sync_block();
  if constexpr (Machine::kTraces) machine.trace_end({Event::prologue});
  if (warp < kConfig.load_warps()) {
    if constexpr (kConfig.moves_registers())
      machine.template shrink_registers<load_registers(kConfig)>();
    if (warp < 2) Load<kConfig, Machine>(machine, shared, params, warp == 1).run(schedule);
    if (warp == 0) write_idle_rows<kConfig>(machine, params);
  } else {
    if constexpr (kConfig.moves_registers())
      machine.template grow_registers<attend_registers(kConfig)>();
    Attend<kConfig, Machine>(machine, shared, params, warp - kConfig.load_warps()).run(schedule);
  }
  if constexpr (Machine::kTraces) machine.trace_end({Event::warp_lifetime});
}

}  // namespace deuce::hopper
