// SPDX-License-Identifier: Apache-2.0
// Decode attention on sm_100: the map of the kernel. One block of 512 threads per SM walks its
// stretch of the line of work; five roles pass tiles, scores and outputs along the barriers of
// shared.h. The same source runs in the emulator.
#pragma once

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
  constexpr int kRegisters = [] {
    for (const WarpRange& range : kRoles<kConfig>) {
      if (range.role == kRole) return range.registers;
    }
    return kLaunch;
  }();
  if constexpr (kRegisters < kLaunch) machine.template shrink_registers<kRegisters>();
  if constexpr (kRegisters > kLaunch) machine.template grow_registers<kRegisters>();
}

/// Barriers, zeroed Q padding, tensor memory and this block's work; ends with all threads in step.
template <Config kConfig, class Machine>
DEUCE_DEVICE void prepare_block(Machine& machine, SharedStorage<kConfig>& shared,
                                const Params& params) {
  if (machine.thread() == 0) {
    auto* base = reinterpret_cast<unsigned char*>(&shared);
    for (const Edge& edge : kEdges<kConfig>) {
      if (edge.kind != EdgeKind::barrier) continue;
      const int count = arrivals(edge, kRoles<kConfig>);
      for (int slot = 0; slot < edge.slots; ++slot) {
        machine.init(reinterpret_cast<Barrier*>(base + edge.offset)[slot], count);
      }
    }
    machine.fence_barrier_init();
  }
  // Rows that no Q box covers stay zero for ever: their scores are 0 and never ask for a rescale.
  constexpr int kWords = Config::kQueryStages * kConfig.tile_bytes() / 16;
  auto* words = reinterpret_cast<Word4*>(shared.q[0].bytes);
  for (int i = machine.thread(); i < kWords; i += kThreads) {
    machine.store_shared(words[i], Word4{0, 0, 0, 0});
  }
  machine.fence_async();
  if (role_of(machine.warp(), kRoles<kConfig>) == Role::mma) {
    machine.allocate_tensor_memory(shared.tensor_memory, TensorColumns<kConfig>::kAll);
  }
  if (role_of(machine.warp(), kRoles<kConfig>) == Role::idle)
    find_work(machine, params, shared.work);
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
  prepare_block<kConfig>(machine, shared, params);
  switch (role_of(machine.warp(), kRoles<kConfig>)) {
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
      Mma<kConfig, Machine>{machine, shared, params}.run();
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
    case Role::attend:
    case Role::idle: set_registers<kConfig, Role::idle>(machine); break;
  }
}

}  // namespace deuce::blackwell
