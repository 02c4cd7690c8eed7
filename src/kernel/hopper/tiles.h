// SPDX-License-Identifier: Apache-2.0
// What a warp of role `attend` keeps while it walks the tiles of a piece: its rows' queries and
// visible keys, its place in the ring, the trace of both.
// Base of warp_tiles.h and group_tiles.h, which differ in their matrix instructions.
#pragma once

#include "kernel/hopper/queries.h"
#include "kernel/hopper/schedule.h"
#include "kernel/hopper/shared.h"
#include "kernel/hopper/stream.h"

namespace deuce::hopper {

/// The tiles of a piece.
struct TileRun {
  int32_t position = 0, tiles = 0;  // of the first tile's first key, and count
};

template <Config kConfig, class Machine, template <Config, class> class ProductsOf>
class Tiles {
 public:
  using Products = ProductsOf<kConfig, Machine>;
  using RowScales = typename Products::RowScales;

  DEUCE_DEVICE Tiles(Machine& machine, SharedStorage<kConfig>& shared, const Params& params,
                     int warp)
      : machine_(machine),
        shared_(shared),
        params_(params),
        group_(warp % kConfig.row_groups),
        slot_(warp / kConfig.row_groups),
        stream_(machine),
        layout_(params) {}

  DEUCE_DEVICE Products& stream() { return stream_; }
  DEUCE_DEVICE int group() const { return group_; }

  /// Reads the queries, and this lane's and the item's visible keys.
  DEUCE_DEVICE void enter(const Piece& piece) {
    const int32_t first = piece.rows.first + group_ * kGroupRows;
    const int32_t row = first + machine_.lane() / 4;
    live_ = first < piece.rows.last;
    // Warps of a warpgroup multiply together, also those without a row.
    if (!live_ && kConfig.engine == Engine::warp) return;
    load_queries<kConfig>(machine_, params_, piece, row, stream_.queries(), scale_);
    DEUCE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int32_t token = params_.by_group.quotient(min_of(row + 8 * i, piece.rows.last - 1));
      visible_.row[i] = visible_keys(params_, piece.shape, token);
    }
    const Keys oldest =
        visible_keys(params_, piece.shape, params_.by_group.quotient(piece.rows.first));
    const Keys newest =
        visible_keys(params_, piece.shape, params_.by_group.quotient(piece.rows.last - 1));
    visible_.some = {oldest.first, newest.last};
    visible_.all = {newest.first, oldest.last};
  }

  /// From scores to log2 units; a softcap has used the rows' own.
  DEUCE_DEVICE RowScales score_scale() const {
    if (params_.softcap > 0) return {kLog2E, kLog2E};
    return {scale_[0], scale_[1]};
  }

 protected:
  DEUCE_DEVICE int32_t position_of(const TileRun& run, int32_t tile) const {
    return run.position + tile * kTileTokens;
  }
  /// Does some row not see some key of the tile?
  DEUCE_DEVICE bool masked(int32_t position) const {
    return position < visible_.all.first || position + kTileTokens > visible_.all.last;
  }

  /// A place in the ring.
  struct Cursor {
    int slot;
    Phase lap;
  };
  DEUCE_DEVICE Cursor here() const { return {slot_, lap_}; }
  /// The stream's next one.
  DEUCE_DEVICE Cursor behind(Cursor at) const {
    at.slot += kConfig.streams;
    if (at.slot >= kConfig.stages) {
      at.slot -= kConfig.stages;
      ++at.lap;
    }
    return at;
  }
  DEUCE_DEVICE void advance() {
    const Cursor next = behind(here());
    slot_ = next.slot;
    lap_ = next.lap;
  }
  /// Of the tile at a cursor: its number in this CTA.
  DEUCE_DEVICE trace::At at(Event event, Cursor cursor) const {
    return {event, cursor.slot, cursor.lap, cursor.lap * kConfig.stages + cursor.slot};
  }

  /// In a trace its range, as that of wait_values, ends where the caller begins the next.
  DEUCE_DEVICE void wait_keys(Cursor cursor) {
    if constexpr (Machine::kTraces) machine_.trace_begin(at(Event::wait_K, cursor));
    machine_.wait(shared_.k_arrived[cursor.slot], cursor.lap);
  }
  /// `arrived`: a test has shown it. A trace counts phases, so it says so there too.
  DEUCE_DEVICE void wait_values(Cursor cursor, bool arrived = false) {
    if constexpr (Machine::kTraces) machine_.trace_next(at(Event::wait_V, cursor));
    if (!arrived) machine_.wait(shared_.v_arrived[cursor.slot], cursor.lap);
  }
  /// Gives the tile back and goes on to the stream's next.
  DEUCE_DEVICE void release() {
    machine_.sync_warp();
    if constexpr (Machine::kTraces) {
      machine_.trace_instant(at(Event::arrive_kv_released, here()));
    }
    if (machine_.elect()) machine_.arrive(shared_.kv_released[slot_]);
    advance();
  }

  Machine& machine_;
  SharedStorage<kConfig>& shared_;
  const Params& params_;
  const int group_;  // row group
  int slot_;         // of the ring, next to read
  Phase lap_ = 0;
  Products stream_;
  const TileLayout<kConfig> layout_;
  Visible visible_;
  bool live_ = true;  // some row of this warp's group is real; else it only gives tiles back
  float scale_[2] = {1, 1};
};

}  // namespace deuce::hopper
