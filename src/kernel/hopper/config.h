// SPDX-License-Identifier: Apache-2.0
// What distinguishes one compiled Hopper kernel from another, and the sizes that follow from it.
// A field is here only if it changes the loop; everything else is a run-time parameter.
#pragma once

#include <array>
#include <cstdint>

#include "kernel/edges.h"
#include "kernel/numbers.h"
#include "trace/event.h"

namespace deuce::hopper {

using trace::Event;

/// Element of the KV cache. A 16-bit cache has the type of q; with e4m3, q is converted to half.
enum class Element : uint8_t { bf16, half, e4m3 };

inline constexpr int kTileTokens = 64;  // one KV tile: what a consumer warp takes from the ring
inline constexpr int kGroupRows = 16;   // rows of one mma.sync tile
/// What an item costs beyond its tiles, in tiles: new queries, a merge. Without it short requests
/// pile up in few CTAs: 64 requests of 29 to 36,674 keys took 1.9 times as long as their bytes.
inline constexpr int kItemCost = 6;
/// Counted only where a CTA has at least this many tiles: below, a tile more weighs more.
inline constexpr int kTilesThatHideCosts = 16;

/// Which matrix instructions run: those of a warp, with K and V in registers, or those of a
/// warpgroup, which read K and V where they lie (16-bit caches only).
enum class Engine : uint8_t { warp, warpgroup };

struct Config {
  int head_dim = 128;
  Element element = Element::bf16;  // of K and V
  Engine engine = Engine::warp;
  int row_groups = 1;  // 16 rows each; the warps of one stream share its tiles
  int streams = 3;  // independent softmax streams; tile t of a piece belongs to stream t % streams
  int stages =
      6;  // tiles in flight, a multiple of streams: then a warp sees every lap of its slots
  /// Pieces end at the borders of num_splits or split_kv_len. A kernel of its own: a launch fetches
  /// its code cold, and half as much again cost short calls a microsecond.
  bool fixed_borders = false;
  int score_slots = 1;  // 2: QK of the next tile is issued before the softmax of this one

  constexpr int rows() const { return row_groups * kGroupRows; }
  constexpr int attend_warps() const { return streams * row_groups; }
  /// Below this many tiles a CTA, whole parts of items are worth a few CTAs without work
  /// (docs/hopper.md). Measured at 32 tiles and at 250, where 16-row kernels lose by them and
  /// warpgroups, whose pieces cost more to end, gain; the borders between are guesses.
  constexpr int tiles_that_hide_merges() const { return engine == Engine::warp ? 64 : 512; }
  /// Row states in shared memory. Warpgroups merge theirs through one, for a deeper ring.
  constexpr int states() const { return engine == Engine::warpgroup ? 1 : streams; }
  /// One warp for K, one for V. With many attend warps a whole warpgroup, two of its warps idle, so
  /// that it can give its registers away.
  constexpr bool moves_registers() const { return attend_warps() > 6; }
  constexpr int load_warps() const { return moves_registers() ? 4 : 2; }
  constexpr int threads() const { return 32 * (load_warps() + attend_warps()); }
  constexpr int element_bytes() const { return element == Element::e4m3 ? 1 : 2; }
  constexpr int row_bytes() const { return head_dim * element_bytes(); }
  constexpr int tile_bytes() const { return kTileTokens * row_bytes(); }
  /// Bytes of a tile row that one TMA box row holds, the span of its swizzle.
  constexpr int span_bytes() const { return row_bytes() < 128 ? row_bytes() : 128; }
  /// Columns of that width in a tile.
  constexpr int halves() const { return row_bytes() / span_bytes(); }
  /// Attend warps put what a piece needs at its end into shared memory meanwhile.
  constexpr bool parks() const { return engine == Engine::warpgroup; }
  constexpr int state_padding() const { return parks() ? 4 : 8; }  // of a row, in floats
  /// Columns that one TMA box fetches. Boxes too low for a whole swizzle period bring each on its
  /// own; and a K operand of wgmma has its blocks of 8 keys equally spaced.
  constexpr int box_halves(int box_rows) const {
    const bool whole = engine == Engine::warpgroup ? box_rows == kTileTokens : box_rows >= 8;
    return whole ? halves() : 1;
  }
  /// A slot is less than the 128 bytes at whose multiples a box may land: odd pages come slot by
  /// slot.
  constexpr bool has_small_slots() const { return span_bytes() < 128; }
  constexpr int depth_steps() const { return head_dim / 16; }
  constexpr int output_tiles() const { return head_dim / 8; }
  friend constexpr bool operator==(const Config&, const Config&) = default;
};

/// Type in which the matrix instructions run.
template <Config kConfig>
using MmaType = std::conditional_t<kConfig.element == Element::bf16, Bf16, Half>;

}  // namespace deuce::hopper
