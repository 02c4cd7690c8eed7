// SPDX-License-Identifier: Apache-2.0
// What the SIMD code offers to the rest of the CPU backend: one table of functions per instruction
// set, over plain structs. Used by worker.cpp; the tables are made in kernels_simd.cpp (Highway)
// and kernels_scalar.cpp from the same source. It must hold that nothing here depends on the
// instruction set but `lanes`, and that keys outside a tile's pointers are never read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernel/combine.h"
#include "plan/problem.h"

namespace deuce::cpu {

inline constexpr int kVectorTileKeys = 24;  // keys that share one softmax step
inline constexpr int kDotTileKeys = 128;    // the same with dots, at most
/// Of the K of a tile with dots: the second-level cache holds K and V of two tiles. Smaller tiles
/// leave memory idle more often, larger ones lose a part before it is used.
inline constexpr int kDotTileBytes = 96 << 10;
/// The larger one: what arrays of keys have room for.
inline constexpr int kTileKeys = std::max(kVectorTileKeys, kDotTileKeys);
inline constexpr int kGroupRows = 4;      // rows that a vector of scores holds of each key
inline constexpr int kScoreSlots = 2;     // heads whose scores or weights fp32 vectors keep
inline constexpr int kMaxLanes = 16;      // floats of the widest vector
inline constexpr int kCacheLine = 64;     // bytes
inline constexpr int kMultiplyAdds = 10;  // vector multiply-adds of one round of multiply_adds()

/// Into the second-level cache: a tile is larger than the first. GCC holds a function that does
/// nothing but fetch to be free of effects and drops calls of it, unless it is inlined at once.
[[gnu::always_inline]] inline void fetch_line(const std::byte* line) {
  __builtin_prefetch(line, 0, 2);
}

constexpr int round_up(int value, int unit) { return (value + unit - 1) / unit * unit; }

/// Rows of one worker's item as the kernels see it: `heads` KV heads of a bundle with `rows` query
/// rows each, padded to groups of four.
struct ItemShape {
  int heads = 1;  // KV heads that are walked together, key by key
  int rows = 1;   // query rows a head
  int head_dim_qk = 0, head_dim_v = 0;
  DType kv_type = DType::bf16;
  float softcap = 0;         // natural units; 0 = off
  bool dots = false;         // products of bf16 pairs, see uses_dots()
  bool late_factor = false;  // without dots: queries came without the factor of their scores

  int groups() const { return (rows + kGroupRows - 1) / kGroupRows; }
  int tile_keys() const {
    if (!dots) return kVectorTileKeys;
    const int keys = kDotTileBytes / (heads * head_dim_qk * dtype_bytes(kv_type));
    return std::clamp(keys / first_tile_keys() * first_tile_keys(), first_tile_keys(),
                      kDotTileKeys);
  }
  /// Of the tile after one of `current` keys when `left` are: tiles grow slowly, because a tile is
  /// fetched while the one before it is computed, and shrink towards the end, because while the
  /// last ones are computed little is left to fetch.
  int tile_keys(int current, int64_t left) const {
    const int64_t half = (left / 2 + first_tile_keys() - 1) / first_tile_keys() * first_tile_keys();
    const int64_t most = std::min(2 * current, tile_keys());
    return static_cast<int>(std::clamp<int64_t>(half, first_tile_keys(), most));
  }
  /// Nothing is computed while the first tile is fetched, so it is a short one.
  int first_tile_keys() const { return dots ? 16 : 12; }
};

/// Maximum and sum of the four rows of a group; sums are kept per lane until the item ends.
struct alignas(64) GroupStats {
  float max[kMaxLanes];
  float sum[kMaxLanes];
};

/// State of an item in a worker's scratch. The order inside q and o belongs to the kernels.
struct ItemState {
  float* q;           // [heads, groups, kGroupRows * padded head_dim_qk]
  float* o;           // [heads, groups, kGroupRows * padded head_dim_v]
  GroupStats* stats;  // [heads, groups]
  float* scores;      // [score_slots(), groups, kGroupRows keys of the tile]
  float* expanded;    // [kVectorTileKeys, padded head_dim_qk + padded head_dim_v]
  float* zeros;       // [kMaxLanes]; set by begin()
  float* factors;     // [heads]: with dots or late_factor, what a product lacks to a score
};

/// Keys first .. last - 1 of a tile.
struct TileRange {
  int32_t first, last;
};

/// Up to tile_keys() keys. Row pointers are those of the bundle's first head; the other heads
/// follow at k_head_bytes and v_head_bytes.
struct Tile {
  int keys = 0;
  const std::byte* const* k_rows = nullptr;  // [keys]
  const std::byte* const* v_rows = nullptr;  // [keys]
  ptrdiff_t k_head_bytes = 0, v_head_bytes = 0;
  ptrdiff_t v_row_bytes = 0;        // distance of neighbouring rows, 0 = they lie anywhere
  const float* k_scale = nullptr;   // [heads, kTileKeys], or nullptr = 1
  const float* v_scale = nullptr;   // [heads, kTileKeys], or nullptr = 1
  const TileRange* seen = nullptr;  // [rows]: keys that a row sees; nullptr = all

  // The tile that follows in the same piece: fetched while this one is computed.
  int next_keys = 0;
  const std::byte* const* next_k_rows = nullptr;  // [next_keys]
  const std::byte* const* next_v_rows = nullptr;  // [next_keys]
  int k_fetch_bytes = 0, v_fetch_bytes = 0;       // from each of these pointers on
};

/// Functions of one instruction set.
struct Kernels {
  const char* name;
  int lanes;  // floats of a vector
  bool dots;  // has dot products of bf16 pairs

  /// Converts `count` elements to float.
  void (*convert_row)(DType type, const void* from, int count, float* to);
  /// Puts a query row, zero from head_dim_qk on to the padded width, in its place of state.q. But
  /// for late_factor it carries every factor of the scores, which then are in log2 units; natural
  /// with a softcap.
  void (*place_query)(const ItemShape& shape, int head, int row, const float* query, float* q);
  /// With dots instead: the row as it came, bf16 without any factor; nullptr = zeros.
  void (*place_bf16_query)(const ItemShape& shape, int head, int row, const void* query, float* q);
  /// Resets o and the statistics of an item.
  void (*begin)(const ItemShape& shape, const ItemState& state);
  void (*attend_tile)(const ItemShape& shape, const Tile& tile, const ItemState& state);
  /// Writes the state of a row to row `to_row` of a partial.
  void (*take_row)(const ItemShape& shape, const ItemState& state, int head, int row, int to_row,
                   const Partial& to);

  /// 2^x of `count` floats, a multiple of kMaxLanes: what softmax takes, for its test.
  void (*exp2)(const float* from, int count, float* to);
  // For roof.h.
  float (*read_lines)(const std::byte* from, std::size_t bytes);
  float (*multiply_adds)(int64_t rounds);

  /// Dimensions of a row in q, o and expanded tiles; the rest is zero.
  int padded(int head_dim) const { return round_up(head_dim, 2 * lanes); }
};

/// Heads whose scores or weights are kept at a time: all of them with dots.
inline int score_slots(const Kernels& kernels, int heads) {
  return kernels.dots ? std::max(heads, kScoreSlots) : kScoreSlots;
}

/// Whether products are sums of bf16 pairs: where q, cache and output all are bf16, so that weights
/// rounded to it cost no precision that the caller asked for, and rows fill whole vectors.
inline bool uses_dots(const Problem& problem, const Kernels& kernels) {
  const bool bf16 = problem.q_type == DType::bf16 && problem.kv_type == DType::bf16 &&
                    problem.out_type == DType::bf16;
  return kernels.dots && bf16 && problem.head_dim_qk % (2 * kernels.lanes) == 0 &&
         problem.head_dim_v % (2 * kernels.lanes) == 0;
}

/// Instruction sets in this library that this CPU has, best first; the last is always `scalar`.
std::span<const Kernels* const> available_kernels();
/// Those on Highway alone, the one with dots (nullptr where this CPU or library has none), and the
/// fall-back: what available_kernels() is made of.
std::span<const Kernels* const> simd_kernels();
const Kernels* dot_kernels();
const Kernels& scalar_kernels();

/// The kernels that plans made from now on use.
const Kernels& chosen_kernels();
/// For tests: the named instruction set instead of the best one; nullptr restores the choice.
/// False when this CPU or this library lacks it.
bool force_kernels(const char* name);

}  // namespace deuce::cpu
