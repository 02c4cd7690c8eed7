// SPDX-License-Identifier: Apache-2.0
// Role `attend`: warps or warpgroups that each own whole KV tiles, then merge once per piece.
// waits for: k_arrived, v_arrived
// signals: kv_released, one arrival per warp of the stream that read the tile
// owns: Q, S, P and O of 16 rows a warp in registers
// Tile t of a piece belongs to stream t % streams, counted from the piece's own start: what a
// stream adds up follows from positions, never from arrival. Which warps run a stream follows from
// the ring: stream w of the CTA always takes slots w, w + streams, ..., so it sees every lap of
// them.
#pragma once

#include <array>
#include <bit>

#include "kernel/hopper/edges.h"
#include "kernel/hopper/group_tiles.h"
#include "kernel/hopper/merge.h"
#include "kernel/hopper/warp_tiles.h"

namespace deuce::hopper {

template <Config kConfig, class Machine>
class Attend {
 public:
  DEUCE_DEVICE Attend(Machine& machine, SharedStorage<kConfig>& shared, const Params& params,
                      int warp)
      : machine_(machine),
        shared_(shared),
        params_(params),
        warp_(warp),
        tiles_(machine, shared, params, warp) {}

  DEUCE_DEVICE void run(Schedule<kConfig, Machine>& schedule) {
    Merge<kConfig, Machine> merge(machine_, shared_, params_, warp_);
    Piece piece, next;
    // Queries and results: all tiles of old tokens are on the way meanwhile.
    if (params_.starts_early != 0) machine_.wait_previous_grid();
    bool more = schedule.next(next);
    if (more) tiles_.enter(next);
    DEUCE_ROLLED
    while (more) {
      piece = next;
      // Stream of this piece that this warp runs: its distance from the warp that takes tile 0.
      int index = warp_ / kConfig.row_groups - turn_;
      index += index < 0 ? kConfig.streams : 0;
      tiles_.stream().reset();
      if constexpr (Machine::kTraces) {
        machine_.trace_begin({Event::work_item});
        machine_.trace_value(Event::work_item, static_cast<uint32_t>(piece.request));
      }
      const TileRun tiles{piece.shape.grid_begin + piece.tile * kTileTokens, piece.tiles};
      if constexpr (kConfig.parks()) park(piece, schedule);
      tiles_.attend(tiles, index);
      tiles_.stream().end(tiles_.score_scale());
      if constexpr (kConfig.parks()) unpark(piece, schedule);
      turn_ = (turn_ + piece.tiles) % kConfig.streams;
      more = schedule.next(next);
      if (more) tiles_.enter(next);  // its queries are on the way while this piece is merged
      sync();                        // the states of the piece before have been read
      if constexpr (kConfig.states() == kConfig.streams) {
        if (index < piece.tiles) publish(index);
      } else {
        publish_merged(piece, index);
      }
      sync();
      if constexpr (Machine::kTraces) machine_.trace_begin({Event::merge_combine});
      merge.take(piece, schedule);
      if constexpr (Machine::kTraces) {
        machine_.trace_end({Event::merge_combine});
        machine_.trace_end({Event::work_item});
      }
    }
  }

 private:
  using Tiles = std::conditional_t<kConfig.engine == Engine::warpgroup,
                                   GroupTiles<kConfig, Machine>, WarpTiles<kConfig, Machine>>;

  DEUCE_DEVICE void sync() { machine_.sync_named(kMergeBarrier, 32 * kConfig.attend_warps()); }

  DEUCE_DEVICE int row_of(int i) const {
    return tiles_.group() * kGroupRows + machine_.lane() / 4 + 8 * i;
  }
  DEUCE_DEVICE RowState state_of(int i) {
    return {tiles_.stream().max(i), tiles_.stream().row_sum(i)};
  }

  using Line = typename Schedule<kConfig, Machine>::Line;
  struct Parked {
    Piece piece;
    Line line;
  };
  static_assert(sizeof(Parked) <= sizeof(ParkedWords) && sizeof(Parked) % 4 == 0);

  /// Piece and place on the line, which nobody needs while tiles are walked, to shared memory.
  DEUCE_DEVICE void park(const Piece& piece, Schedule<kConfig, Machine>& schedule) {
    const auto words =
        std::bit_cast<std::array<uint32_t, sizeof(Parked) / 4>>(Parked{piece, schedule.line()});
    if (machine_.elect()) {
      DEUCE_UNROLL
      for (std::size_t i = 0; i < words.size(); i += 4) {
        machine_.store_shared(shared_.parked[warp_].at[i / 4], word4(words, i));
      }
    }
    machine_.sync_warp();
  }
  DEUCE_DEVICE void unpark(Piece& piece, Schedule<kConfig, Machine>& schedule) {
    std::array<uint32_t, sizeof(Parked) / 4> words;
    DEUCE_UNROLL
    for (std::size_t i = 0; i < words.size(); i += 4) {
      const Word4 four = machine_.load_shared(shared_.parked[warp_].at[i / 4]);
      const uint32_t parts[4] = {four.x, four.y, four.z, four.w};
      DEUCE_UNROLL
      for (std::size_t j = 0; j < 4; ++j) {
        if (i + j < words.size()) words[i + j] = parts[j];
      }
    }
    const auto parked = std::bit_cast<Parked>(words);
    piece = parked.piece;
    schedule.line() = parked.line;
    machine_.sync_warp();
  }
  DEUCE_DEVICE static Word4 word4(const auto& words, std::size_t i) {
    const auto at = [&](std::size_t j) { return j < words.size() ? words[j] : 0u; };
    return {at(i), at(i + 1), at(i + 2), at(i + 3)};
  }

  /// The stream's state to shared memory.
  DEUCE_DEVICE void publish(int state) {
    DEUCE_UNROLL
    for (int i = 0; i < 2; ++i) store(state, i, state_of(i));
  }
  DEUCE_DEVICE void store(int state, int i, const RowState& row) {
    tiles_.stream().store_row(shared_.state[state].o[row_of(i)], i);
    if (machine_.lane() % 4 == 0) machine_.store_shared(shared_.rows[state][row_of(i)], row);
  }

  /// Two streams, one place: the second stores its state, the first takes it in and stores both.
  DEUCE_DEVICE void publish_merged(const Piece& piece, int index) {
    static_assert(kConfig.states() == 1 && kConfig.streams <= 2);
    if (index == 1 && piece.tiles > 1) publish(0);
    sync();
    if (index != 0) return;
    DEUCE_UNROLL
    for (int i = 0; i < 2; ++i) {
      RowState state = state_of(i);
      if (piece.tiles > 1) {
        const RowState other = machine_.load_shared(shared_.rows[0][row_of(i)]);
        state = tiles_.stream().merge_row(shared_.state[0].o[row_of(i)], other, state, i);
        machine_.sync_warp();  // the four lanes of the row have read its state
      }
      store(0, i, state);
    }
  }

  Machine& machine_;
  SharedStorage<kConfig>& shared_;
  const Params& params_;
  const int warp_;  // of the role
  int turn_ = 0;    // stream of the CTA that takes the first tile of the piece
  Tiles tiles_;
};

}  // namespace deuce::hopper
