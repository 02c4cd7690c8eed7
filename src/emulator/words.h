// SPDX-License-Identifier: Apache-2.0
// Words for operations and source files in findings.
#pragma once

#include <cstring>

#include "emulator/op.h"

namespace deuce::emulator {

inline const char* mnemonic(OpKind kind) {
  switch (kind) {
    case OpKind::sync_warp: return "sync_warp";
    case OpKind::shuffle_index:
    case OpKind::shuffle_xor:
    case OpKind::shuffle_up: return "shuffle";
    case OpKind::ballot: return "vote";
    case OpKind::load_shared: return "shared load";
    case OpKind::store_shared: return "shared store";
    case OpKind::load_global: return "global load";
    case OpKind::load_constant: return "constant load";
    case OpKind::store_global: return "global store";
    case OpKind::atomic_add: return "atomic add";
    case OpKind::load_acquire: return "acquiring load";
    case OpKind::store_release: return "releasing store";
    case OpKind::claim: return "atomic compare-and-swap";
    case OpKind::init: return "mbarrier init";
    case OpKind::fence_barrier_init: return "fence_barrier_init";
    case OpKind::fence_async: return "fence_async";
    case OpKind::arrive: return "arrive";
    case OpKind::arrive_expect: return "arrive and announce bytes";
    case OpKind::test: return "test";
    case OpKind::prefetch:
    case OpKind::prefetch_map: return "prefetch";
    case OpKind::load_matrices: return "ldmatrix";
    case OpKind::mma_sync: return "mma.sync";
    case OpKind::wgmma_wait: return "wgmma.wait_group";
    case OpKind::wgmma_pin: return "accumulator of wgmma";
    case OpKind::copy_tensor: return "tensor copy to";
    case OpKind::copy_bulk: return "bulk copy to";
    case OpKind::tensor_load: return "tcgen05.ld of";
    case OpKind::tensor_store: return "tcgen05.st to";
    case OpKind::mma_shared:
    case OpKind::mma_tensor: return "tcgen05.mma";
    case OpKind::commit: return "tcgen05.commit";
    case OpKind::tensor_alloc: return "tcgen05.alloc";
    case OpKind::tensor_relinquish: return "tcgen05.relinquish_alloc_permit";
    case OpKind::tensor_free: return "tcgen05.dealloc";
    case OpKind::wait_loads: return "tcgen05.wait::ld";
    case OpKind::wait_stores: return "tcgen05.wait::st";
    case OpKind::fence_before: return "tcgen05.fence::before_thread_sync";
    case OpKind::fence_after: return "tcgen05.fence::after_thread_sync";
    case OpKind::wgmma: return "wgmma.mma_async";
    case OpKind::wgmma_fence: return "wgmma.fence";
    case OpKind::wgmma_commit: return "wgmma.commit_group";
    case OpKind::wait: return "wait";
    case OpKind::arrive_named: return "arrival at named barrier";
    case OpKind::sync_named: return "named barrier";
    case OpKind::sync_block: return "block barrier";
    case OpKind::registers: return "setmaxnreg";
    case OpKind::trace: break;
  }
  return "trace record";
}

inline const char* file_name(const char* path) {
  const char* kernel = std::strstr(path, "kernel/");
  return kernel != nullptr ? kernel + std::strlen("kernel/") : path;
}

}  // namespace deuce::emulator
