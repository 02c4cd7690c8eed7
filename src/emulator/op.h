// SPDX-License-Identifier: Apache-2.0
// One machine operation of one lane, as the lane hands it to the scheduler.
// Made on the lane's stack by machine.h, executed by block_*.cpp once its warp has come together.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kernel/machine.h"

namespace deuce::emulator {

/// Where in the kernel source an operation stands.
struct Site {
  const char* file;
  int line;
  static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
  friend bool operator==(const Site&, const Site&) = default;
};

enum class OpKind : uint8_t {
  sync_warp,
  shuffle_index,
  shuffle_xor,
  shuffle_up,
  ballot,
  sync_block,
  arrive_named,
  sync_named,
  load_shared,
  store_shared,
  load_global,
  load_constant,
  store_global,
  atomic_add,
  load_acquire,
  store_release,
  claim,
  init,
  fence_barrier_init,
  arrive,
  arrive_expect,
  wait,
  test,
  copy_tensor,
  copy_bulk,
  prefetch,
  prefetch_map,
  fence_async,
  registers,
  tensor_alloc,
  tensor_relinquish,
  tensor_free,
  tensor_load,
  tensor_store,
  wait_loads,
  wait_stores,
  fence_before,
  fence_after,
  mma_shared,
  mma_tensor,
  commit,
  mma_sync,
  load_matrices,
  wgmma,
  wgmma_fence,
  wgmma_commit,
  wgmma_wait,
  wgmma_pin,
  trace
};

/// All 32 lanes must stand at the same call.
constexpr bool is_collective(OpKind kind) {
  switch (kind) {
    case OpKind::sync_warp:
    case OpKind::shuffle_index:
    case OpKind::shuffle_xor:
    case OpKind::shuffle_up:
    case OpKind::ballot:
    case OpKind::sync_block:
    case OpKind::arrive_named:
    case OpKind::sync_named:
    case OpKind::registers:
    case OpKind::tensor_alloc:
    case OpKind::tensor_relinquish:
    case OpKind::tensor_free:
    case OpKind::tensor_load:
    case OpKind::tensor_store:
    case OpKind::wait_loads:
    case OpKind::wait_stores:
    case OpKind::mma_sync:
    case OpKind::load_matrices:
    case OpKind::wgmma:
    case OpKind::wgmma_fence:
    case OpKind::wgmma_commit:
    case OpKind::wgmma_wait:
    case OpKind::wgmma_pin: return true;
    default: return false;
  }
}

struct Op {
  OpKind kind;
  bool flag = false;                      // accumulate; result of a test, a vote; bf16; transposed
  bool bf16 = false, transposed = false;  // of wgmma
  Site site;
  Barrier* barrier = nullptr;
  void* target = nullptr;  // shared, global or register destination
  const void* source = nullptr;
  uint32_t bytes = 0;  // of an access; announced bytes; columns; thread count
  int32_t index = 0;   // phase, lane, named barrier, block, registers; tiles, groups of wgmma
  uint32_t value = 0;  // 32-bit operand and result
  uint32_t column = 0, a_column = 0;  // tensor memory
  uint32_t instruction = 0;
  uint64_t a_descriptor = 0, b_descriptor = 0;
  int32_t rank = 0;
  std::array<int32_t, 5> coordinate{};
  std::array<uint32_t, 2> words{};  // B fragment of a lane
};

}  // namespace deuce::emulator
