// SPDX-License-Identifier: Apache-2.0
// Decode attention on sm_100: the map of the kernel. One block of 512 threads per SM walks its
// stretch of the line of work; roles pass pieces, tiles, scores and outputs along the barriers of
// shared.h. The same source runs in the emulator.
#pragma once

#include <utility>

#include "kernel/blackwell/correction.h"
#include "kernel/blackwell/epilogue.h"
#include "kernel/blackwell/load.h"
#include "kernel/blackwell/mma.h"
#include "kernel/blackwell/softmax_warps.h"

namespace deuce::blackwell {

/// Registers of the role, given up or taken before it starts.
template <Config kConfig, Role kRole, class Machine>
DEUCE_DEVICE void set_registers(Machine& machine) {
  constexpr int kLaunch = 65536 / kThreads;
  constexpr int kRegisters = registers_of_role<kConfig>(kRole);
  if constexpr (kRegisters < kLaunch) machine.template shrink_registers<kRegisters>();
  if constexpr (kRegisters > kLaunch) machine.template grow_registers<kRegisters>();
}

/// Initialises the barriers of row `kRow` of the edge table.
template <Config kConfig, std::size_t kRow, class Machine>
DEUCE_DEVICE void init_edge(Machine& machine, SharedStorage<kConfig>& shared) {
  constexpr bool kIsBarrier = kEdges<kConfig>[kRow].kind == EdgeKind::barrier;
  if constexpr (kIsBarrier) {
    constexpr std::size_t kOffset = kEdges<kConfig>[kRow].offset;
    constexpr int kSlots = kEdges<kConfig>[kRow].slots;
    auto* first = reinterpret_cast<Barrier*>(reinterpret_cast<unsigned char*>(&shared) + kOffset);
    for (int slot = 0; slot < kSlots; ++slot) machine.init(first[slot], kArrivals<kConfig, kRow>);
  }
}

template <Config kConfig, class Machine, std::size_t... kRow>
DEUCE_DEVICE void init_edges(Machine& machine, SharedStorage<kConfig>& shared,
                             std::index_sequence<kRow...>) {
  (init_edge<kConfig, kRow>(machine, shared), ...);
}

/// Barriers, zeroed Q padding and tensor memory; ends with all threads in step.
template <Config kConfig, class Machine>
DEUCE_DEVICE void prepare_block(Machine& machine, SharedStorage<kConfig>& shared) {
  const Role role = role_of_warp<kConfig>(machine.warp());
  if (machine.thread() == 0) {
    init_edges<kConfig>(machine, shared, std::make_index_sequence<kEdges<kConfig>.size()>{});
    machine.fence_barrier_init();
  }
  // Rows that no Q box covers stay zero for ever: their scores are 0 and never ask for a rescale.
  constexpr int kWords = Config::kQueryStages * kConfig.tile_bytes() / 16;
  auto* words = reinterpret_cast<Word4*>(shared.q[0].bytes);
  for (int i = machine.thread(); i < kWords; i += kThreads) {
    machine.store_shared(words[i], Word4{0, 0, 0, 0});
  }
  machine.fence_async();
  if (role == Role::mma) {
    machine.allocate_tensor_memory(shared.tensor_memory, TensorColumns<kConfig>::kAll);
  }
  machine.sync_block();
}

/// All users of tensor memory are done before the mma warp frees it.
template <Config kConfig, class Machine>
DEUCE_DEVICE void release_tensor_memory(Machine& machine, SharedStorage<kConfig>& shared) {
  machine.relinquish_tensor_memory();
  machine.sync_named(kTensorMemoryBarrier, kTensorMemoryThreads);
  machine.free_tensor_memory(machine.load_shared(shared.tensor_memory),
                             TensorColumns<kConfig>::kAll);
}

template <Config kConfig, BlackwellMachine Machine>
DEUCE_DEVICE void decode_kernel(Machine& machine, const Params& params) {
  auto& shared = machine.template shared<SharedStorage<kConfig>>();
  if constexpr (Machine::kTraces) {
    machine.trace_begin({Event::warp_lifetime});
    machine.trace_begin({Event::prologue});
  }
  prepare_block<kConfig>(machine, shared);
  if constexpr (Machine::kTraces) machine.trace_end({Event::prologue});
  switch (role_of_warp<kConfig>(machine.warp())) {
    case Role::load:
      set_registers<kConfig, Role::load>(machine);
      Load<kConfig, Machine>{machine, shared, params}.run();
      break;
    case Role::load_q:
      set_registers<kConfig, Role::load_q>(machine);
      LoadQ<kConfig, Machine>{machine, shared, params}.run();
      break;
    case Role::mma:
      set_registers<kConfig, Role::mma>(machine);
      Mma<kConfig, Machine>{machine, shared}.run();
      release_tensor_memory<kConfig>(machine, shared);
      break;
    case Role::softmax:
      set_registers<kConfig, Role::softmax>(machine);
      SoftmaxWarps<kConfig, Machine>{machine, shared, params}.run();
      machine.arrive_named(kTensorMemoryBarrier, kTensorMemoryThreads);
      break;
    case Role::correction:
      set_registers<kConfig, Role::correction>(machine);
      Correction<kConfig, Machine>{machine, shared, params}.run();
      machine.arrive_named(kTensorMemoryBarrier, kTensorMemoryThreads);
      break;
    case Role::epilogue: Epilogue<kConfig, Machine>{machine, shared, params}.run(); break;
    case Role::schedule:
      set_registers<kConfig, Role::schedule>(machine);
      Schedule<kConfig, Machine>{machine, shared, params}.run();
      break;
    case Role::attend:
    case Role::idle: break;
  }
  if constexpr (Machine::kTraces) machine.trace_end({Event::warp_lifetime});
}

}  // namespace deuce::blackwell
