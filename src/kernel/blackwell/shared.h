// SPDX-License-Identifier: Apache-2.0
// Shared memory of a block as one struct, and the barrier graph as one table.
// Initialisation, the emulator's checks and the docs are made from the table; the slot counts here
// must be those of the members.
#pragma once

#include <cstddef>

#include "kernel/blackwell/config.h"
#include "kernel/machine.h"
#include "kernel/work.h"

namespace deuce::blackwell {

/// One piece as the schedule role publishes it: everything another role needs, in 16-byte words.
struct alignas(16) PieceRecord {
  int32_t request, kv_head, row_tile, rows;
  int32_t tile_first, tile_last, item_first, item_last;  // an empty tile range ends the list
  int32_t kv_start, kv_len, q_len, first_token;          // first_token: rows of earlier requests
  int64_t item_begin;                                    // position of the item on the line of work
  int32_t split, unused;

  constexpr bool is_end() const { return tile_last == tile_first; }
  constexpr int32_t blocks() const { return tile_last - tile_first; }
  constexpr bool is_whole_item() const {
    return tile_first == item_first && tile_last == item_last;
  }
  constexpr RequestSizes sizes() const {
    return {.kv_start = kv_start, .kv_len = kv_len, .q_len = q_len};
  }
  constexpr Item item() const {
    return {.request = request,
            .kv_head = kv_head,
            .row_tile = row_tile,
            .rows = rows,
            .tiles = {item_first, item_last},
            .begin = item_begin};
  }
};
static_assert(sizeof(PieceRecord) == 64);

template <Config kConfig>
struct SharedStorage {
  struct alignas(1024) Tile {
    unsigned char bytes[kConfig.tile_bytes()];
  };
  Tile q[Config::kQueryStages];
  Tile kv[kConfig.ring_slots()];  // K or V, in the order in which the mma warp reads them
  float row_scale[128];           // rescale factor during a piece, row sum at its end
  float row_max[128];             // at the end of a piece, log2 units
  PieceRecord pieces[kPieceSlots];
  alignas(16) int64_t total_tiles;  // of the launch
  alignas(16) uint32_t tensor_memory;
  alignas(16) uint32_t last_arriver;
  alignas(16) int32_t
      merge_stack[4][kMergeDepth];  // slot numbers, one stack for each epilogue warp

  Barrier piece_ready[kPieceSlots], piece_taken[kPieceSlots];
  Barrier q_arrived[Config::kQueryStages], q_released[Config::kQueryStages];
  Barrier kv_arrived[kConfig.ring_slots()], kv_released[kConfig.ring_slots()];
  Barrier s_ready[kConfig.score_slots];
  Barrier po_ready[kConfig.score_slots];
  Barrier p_tail_ready[kConfig.score_slots];
  Barrier o_ready[kConfig.score_slots];
  Barrier stats_taken;
  Barrier o_staged, o_stored;
};
static_assert(sizeof(SharedStorage<Config{.head_dim = 64, .score_slots = 3}>) <= 232448);
static_assert(sizeof(SharedStorage<Config{.head_dim = 128, .score_slots = 3}>) <= 232448);

template <Config kConfig>
constexpr auto edges() {
  using Storage = SharedStorage<kConfig>;
  constexpr int kSlots = kConfig.score_slots;
  constexpr int kRing = kConfig.ring_slots();
  constexpr int kStages = Config::kQueryStages;
  return std::array{
      Edge{.name = "piece_ready",
           .arrives = {{{Role::schedule, By::one_lane}}},
           .waits = Role::mma,
           .waits_too = {{Role::load, Role::load_q, Role::softmax, Role::correction,
                          Role::epilogue}},
           .slots = kPieceSlots,
           .protects = "description of a piece",
           .offset = offsetof(Storage, piece_ready)},
      Edge{.name = "piece_taken",
           .arrives = {{{Role::load, By::one_lane_per_warp},
                        {Role::load_q, By::one_lane_per_warp},
                        {Role::mma, By::one_lane_per_warp},
                        {Role::softmax, By::one_lane_per_warp},
                        {Role::correction, By::one_lane_per_warp},
                        {Role::epilogue, By::one_lane_per_warp}}},
           .waits = Role::schedule,
           .slots = kPieceSlots,
           .protects = "description of a piece",
           .offset = offsetof(Storage, piece_taken)},
      Edge{.name = "q_arrived",
           .arrives = {{{Role::load_q, By::bytes}}},
           .waits = Role::mma,
           .slots = kStages,
           .protects = "Q tile in shared memory",
           .offset = offsetof(Storage, q_arrived)},
      Edge{.name = "q_released",
           .arrives = {{{Role::mma, By::commit}}},
           .waits = Role::load_q,
           .slots = kStages,
           .protects = "Q tile in shared memory",
           .offset = offsetof(Storage, q_released)},
      Edge{.name = "kv_arrived",
           .arrives = {{{Role::load, By::bytes}}},
           .waits = Role::mma,
           .slots = kRing,
           .protects = "K or V tile in shared memory",
           .offset = offsetof(Storage, kv_arrived)},
      Edge{.name = "kv_released",
           .arrives = {{{Role::mma, By::commit}}},
           .waits = Role::load,
           .slots = kRing,
           .protects = "K or V tile in shared memory",
           .offset = offsetof(Storage, kv_released)},
      Edge{.name = "s_ready",
           .arrives = {{{Role::mma, By::commit}}},
           .waits = Role::softmax,
           .slots = kSlots,
           .protects = "S slot in tensor memory",
           .offset = offsetof(Storage, s_ready)},
      Edge{.name = "po_ready",
           .arrives = {{{Role::softmax, By::each_thread}, {Role::correction, By::each_thread}}},
           .waits = Role::mma,
           .slots = kSlots,
           .protects = "first three quarters of P, and O, in tensor memory",
           .offset = offsetof(Storage, po_ready),
           .open_at_exit = true},
      Edge{.name = "p_tail_ready",
           .arrives = {{{Role::softmax, By::one_lane_per_warp}}},
           .waits = Role::mma,
           .slots = kSlots,
           .protects = "last quarter of P in tensor memory",
           .offset = offsetof(Storage, p_tail_ready)},
      Edge{.name = "o_ready",
           .arrives = {{{Role::mma, By::commit}}},
           .waits = Role::correction,
           .waits_too = {{kConfig.strict_order ? Role::mma : Role::idle, Role::idle, Role::idle,
                          Role::idle, Role::idle}},
           .slots = kSlots,
           .protects = "O in tensor memory",
           .offset = offsetof(Storage, o_ready)},
      Edge{.name = "stats_ready",
           .arrives = {{{Role::softmax, By::each_thread}}},
           .waits = Role::correction,
           .slots = 4,
           .protects = "row scale, row sum and row max",
           .kind = EdgeKind::named,
           .first_id = kStatisticsBarrier,
           .threads = 64},
      Edge{.name = "stats_taken",
           .arrives = {{{Role::correction, By::each_thread}}},
           .waits = Role::softmax,
           .protects = "row scale, row sum and row max",
           .offset = offsetof(Storage, stats_taken)},
      Edge{.name = "o_staged",
           .arrives = {{{Role::correction, By::each_thread}}},
           .waits = Role::epilogue,
           .protects = "partial state in the workspace",
           .offset = offsetof(Storage, o_staged)},
      Edge{.name = "o_stored",
           .arrives = {{{Role::epilogue, By::each_thread}}},
           .waits = Role::correction,
           .protects = "o_staged: at most one piece is waiting",
           .offset = offsetof(Storage, o_stored)},
      Edge{.name = "tensor_memory",
           .arrives = {{{Role::softmax, By::each_thread}, {Role::correction, By::each_thread}}},
           .waits = Role::mma,
           .waits_too = {{Role::softmax, Role::correction, Role::idle, Role::idle, Role::idle}},
           .protects = "the allocation of tensor memory",
           .kind = EdgeKind::named,
           .first_id = kTensorMemoryBarrier,
           .threads = kTensorMemoryThreads},
      Edge{.name = "QK behind PV",
           .arrives = {{{Role::mma, By::commit}}},
           .waits = Role::mma,
           .protects = "P slot: QK of block c + slots overwrites P of block c, which PV of block c "
                       "reads. Same issuing thread, the tensor pipe runs the MMAs of a block in "
                       "issue order; with strict_order the mma warp waits for o_ready instead",
           .kind = EdgeKind::implied},
      Edge{.name = "PV behind PV",
           .arrives = {{{Role::mma, By::commit}}},
           .waits = Role::mma,
           .protects = "O: same accumulator and shape, which PTX orders",
           .kind = EdgeKind::implied},
      Edge{.name = "PV before s_ready",
           .arrives = {{{Role::mma, By::commit}}},
           .waits = Role::softmax,
           .protects =
               "S slot: s_ready of block c says that PV of block c - slots has finished, as "
               "a commit covers all earlier MMAs of its thread",
           .kind = EdgeKind::implied},
  };
}

template <Config kConfig>
inline constexpr auto kEdges = edges<kConfig>();

/// Arrivals per phase of a row. A constant of its own: device code cannot refer to the tables.
template <Config kConfig, std::size_t kRow>
inline constexpr int kArrivals = arrivals(kEdges<kConfig>[kRow], kRoles<kConfig>);

}  // namespace deuce::blackwell
