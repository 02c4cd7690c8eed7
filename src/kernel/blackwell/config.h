// SPDX-License-Identifier: Apache-2.0
// What is fixed when the Blackwell decode kernel is compiled, and the cast: which warps play which
// role with how many registers. Every other header of this folder is a template over a Config.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernel/edges.h"
#include "kernel/numbers.h"
#include "trace/event.h"

namespace deuce::blackwell {

using trace::Event;

struct Config {
  int head_dim = 64;    // 64 or 128, of Q, K and V
  int score_slots = 2;  // S tiles in flight: 1 = base, 2 = ping-pong, 3 where there is room
  bool bf16 = true;     // else half
  bool strict_order =
      false;         // QK waits for the PV that last read its slot: no reliance on the pipe
  int kv_slots = 0;  // K or V tiles in shared memory; 0 = as many as fit
  // Copies of an item's rows in the lane quarters: 1, 2 or 4. Each copy attends to its own part of
  // the keys of every block, with a maximum and a sum of its own; the epilogue merges the states.
  int row_replicas = 1;

  friend constexpr bool operator==(const Config&, const Config&) = default;
  constexpr int ring_slots() const { return kv_slots > 0 ? kv_slots : head_dim == 64 ? 12 : 5; }
  constexpr int tile_bytes() const { return kTileRows * head_dim * 2; }
  /// Packed rows of an item; and keys of a block that one softmax thread attends to.
  constexpr int rows_per_replica() const { return kTileRows / row_replicas; }

  static constexpr int kTileRows = 128;     // packed query rows, and keys of a KV tile
  static constexpr int kQueryStages = 2;    // so that K and V never wait for Q at a border
  static constexpr int kBlockColumns = 64;  // columns of one 128-byte swizzled block
};

inline constexpr int kThreads = 512;
inline constexpr int kMergeDepth = 32;  // of the split tree: 2^32 splits
inline constexpr int kPieceSlots = 4;   // pieces published ahead of the slowest role

// A warp reaches lanes 32 (warp % 4) and up of tensor memory, so softmax and correction start at a
// multiple of four. Warps 12 to 15 share a register budget, as setmaxnreg acts on four warps. The
// budgets use the whole file. With less for correction or for warps 12 to 15, or with a setmaxnreg
// of its own for the epilogue, ptxas 13.0 spills; the build stops when it does.
template <Config kConfig>
inline constexpr std::array kRoles{
    WarpRange{Role::softmax, 0, 4, kConfig.head_dim == 64 ? 192 : 184},
    WarpRange{Role::epilogue, 4, 4, 128},
    WarpRange{Role::correction, 8, 4, kConfig.head_dim == 64 ? 80 : 88},
    WarpRange{Role::mma, 12, 1, 112},
    WarpRange{Role::load_q, 13, 1, 112},
    WarpRange{Role::load, 14, 1, 112},
    WarpRange{Role::schedule, 15, 1, 112},
};

/// Role of a warp, from the table; written so that device code sees constants only.
template <Config kConfig>
constexpr Role role_of_warp(int warp) {
  Role role = Role::idle;
  [&]<std::size_t... kRow>(std::index_sequence<kRow...>) {
    const auto look = [&](int first, int warps, Role found) {
      if (warp >= first && warp < first + warps) role = found;
    };
    (look(std::integral_constant<int, kRoles<kConfig>[kRow].first_warp>::value,
          std::integral_constant<int, kRoles<kConfig>[kRow].warps>::value,
          std::integral_constant<Role, kRoles<kConfig>[kRow].role>::value),
     ...);
  }
  (std::make_index_sequence<kRoles<kConfig>.size()>{});
  return role;
}

template <Config kConfig>
constexpr int registers_of_role(Role role) {
  int registers = 0;
  for (const WarpRange& range : kRoles<kConfig>) {
    if (range.role == role) registers = range.registers;
  }
  return registers;
}

template <Config kConfig>
constexpr int registers_of_block() {
  int registers = 0;
  for (const WarpRange& range : kRoles<kConfig>) registers += 32 * range.warps * range.registers;
  return registers;
}
static_assert(registers_of_block<Config{}>() <= 65536);
static_assert(registers_of_block<Config{.head_dim = 128}>() <= 65536);

/// Tensor memory: 128 lanes of 512 columns. P lies over the upper half of its S slot.
template <Config kConfig>
struct TensorColumns {
  static constexpr uint32_t kPerSlot = 128;
  static constexpr uint32_t kProbabilityOffset = 64;
  static constexpr uint32_t kOutput = kPerSlot * kConfig.score_slots;
  static constexpr uint32_t kAll = 512;  // one block per SM: take everything
  static_assert(kOutput + kConfig.head_dim <= kAll);
  static constexpr uint32_t scores(int slot) { return kPerSlot * static_cast<uint32_t>(slot); }
  static constexpr uint32_t probabilities(int slot) { return scores(slot) + kProbabilityOffset; }
};

template <bool kBf16>
struct ElementOf {
  using Type = Bf16;
};
template <>
struct ElementOf<false> {
  using Type = Half;
};
template <Config kConfig>
using Element = typename ElementOf<kConfig.bf16>::Type;

/// Hardware named barriers; 0 is the block barrier.
enum NamedBarrier : int {
  kEpilogueBarrier = 1,      // the 128 threads of the epilogue
  kTensorMemoryBarrier = 2,  // mma, softmax and correction: allocation published, all users done
  kStatisticsBarrier = 3     // 3 + w: softmax warp w to correction warp w
};
inline constexpr int kTensorMemoryThreads = 288;

}  // namespace deuce::blackwell
