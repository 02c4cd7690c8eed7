// SPDX-License-Identifier: Apache-2.0
// The walk over the keys of a piece; see piece.h.
#include "cpu/piece.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace deuce::cpu {
namespace {

/// Fetches part `part` of `parts` of the lines of a tile.
void fetch_part(const Tile& tile, int part, int parts) {
  const auto fetch_rows = [&](const std::byte* const* rows, int row_bytes) {
    const int lines = (row_bytes + kCacheLine - 1) / kCacheLine, all = tile.keys * lines;
    const int first = all * part / parts, last = all * (part + 1) / parts;
    int row = first / lines, line = first % lines;
    for (int i = first; i < last; ++i) {
      fetch_line(rows[row] + line * kCacheLine);
      if (++line == lines) ++row, line = 0;
    }
  };
  fetch_rows(tile.k_rows, tile.k_fetch_bytes);
  fetch_rows(tile.v_rows, tile.v_fetch_bytes);
}

/// Bounds for the types of a narrower range: f16's, whose range holds that of both fp8 types.
constexpr float kSmallestNarrow = 0x1p-24F, kLargestNarrow = 65504;

/// Magnitudes as the bits of floats, whose order is theirs.
struct BitRange {
  int32_t smallest = 0x7f800000, largest = 0;  // smallest: infinity, where all are 0
};

/// The range with the elements of a row, f32 or, as the upper halves of such, bf16. Written so that
/// compilers make vectors of it: integers of the elements' size, and 0 becomes the largest by
/// subtracting 1.
template <class Bits>
BitRange include(BitRange range, const std::byte* elements, int count) {
  constexpr int kShift = 8 * (sizeof(int32_t) - sizeof(Bits));
  constexpr Bits kMagnitude = std::numeric_limits<Bits>::max();
  Bits smallest = kMagnitude, largest = 0;
  for (int i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, elements + i * static_cast<int>(sizeof bits), sizeof bits);
    const auto magnitude = static_cast<Bits>(bits & kMagnitude);
    const auto below = static_cast<Bits>((magnitude - 1) & kMagnitude);
    largest = largest < magnitude ? magnitude : largest;
    smallest = smallest > below ? below : smallest;
  }
  const bool all_zero = largest == 0;
  return {all_zero ? range.smallest : std::min(range.smallest, (int32_t{smallest} + 1) << kShift),
          std::max(range.largest, int32_t{largest} << kShift)};
}

}  // namespace

void PieceAttention::attend(const Piece& piece, const RequestSizes& sizes) {
  const ItemRows rows(work_, piece.item, bundle_, problem_.group);
  item_shape_ = shape_of(piece, rows);
  const KeySpan keys = keys_of(piece, sizes, rows);
  Tile first;
  locate(piece.item, keys, item_shape_.first_tile_keys(), 0, first);
  place_queries(piece, rows, first);
  kernels_.begin(item_shape_, scratch_.item);
  walk_keys(piece, sizes, rows, keys, first);
  for (int head = 0; head < bundle_.heads; ++head) {
    for (int row = 0; row < rows.per_head(); ++row) {
      kernels_.take_row(item_shape_, scratch_.item, head, row, rows.place(head, row).local,
                        scratch_.partial);
    }
  }
}

/// With ways of computing that suit the numbers: dot products of bf16 pairs take what is below the
/// normal range for 0, and a query that carries its factor may overflow where no score does. The
/// limits are derived in docs/numerics.md.
ItemShape PieceAttention::shape_of(const Piece& piece, const ItemRows& rows) const {
  constexpr float kMostLost = 0x1p90F, kMostOutScale = 0x1p60F;
  using Limits = std::numeric_limits<float>;
  float largest_factor = 0;
  for (int head = 0; head < bundle_.heads; ++head) {
    scratch_.item.factors[head] = factor(piece, head);
    largest_factor = std::max(largest_factor, std::abs(scratch_.item.factors[head]));
  }
  const bool may_use_dots = uses_dots(problem_, kernels_);
  const Magnitudes q = may_use_dots || largest_factor > 1
                           ? magnitudes(piece, rows)
                           : Magnitudes{Limits::min(), Limits::max()};
  const bool dots_lose_nothing = q.smallest >= Limits::min() &&
                                 largest_factor * (1 + q.largest) <= kMostLost &&
                                 std::abs(call_.out_scale) <= kMostOutScale;
  const bool query_overflows = !(q.largest * largest_factor <= Limits::max());
  return {.heads = bundle_.heads,
          .rows = rows.per_head(),
          .head_dim_qk = problem_.head_dim_qk,
          .head_dim_v = problem_.head_dim_v,
          .kv_type = problem_.kv_type,
          .softcap = problem_.softcap,
          .dots = may_use_dots && dots_lose_nothing,
          .late_factor = query_overflows};
}

float PieceAttention::factor(const Piece& piece, int head) const {
  const int64_t kv_head = int64_t{piece.item.kv_head} * bundle_.heads + head;
  return problem_.softmax_scale * call_.score_scale * view_.q_descale(piece.item.request, kv_head) *
         view_.k_descale(piece.item.request, kv_head) * (problem_.softcap > 0 ? 1.0F : kLog2E);
}

const std::byte* PieceAttention::query(const Piece& piece, const RowPlace& at) const {
  return static_cast<const std::byte*>(call_.q) +
         view_.q_offset(piece.item.request, at.token, at.head) * dtype_bytes(problem_.q_type);
}

Magnitudes PieceAttention::magnitudes(const Piece& piece, const ItemRows& rows) const {
  const bool bf16 = problem_.q_type == DType::bf16;
  if (!bf16 && problem_.q_type != DType::f32) return {kSmallestNarrow, kLargestNarrow};
  BitRange range;
  for (int head = 0; head < bundle_.heads; ++head) {
    for (int row = 0; row < rows.per_head(); ++row) {
      const std::byte* elements = query(piece, rows.place(head, row));
      range = bf16 ? include<int16_t>(range, elements, problem_.head_dim_qk)
                   : include<int32_t>(range, elements, problem_.head_dim_qk);
    }
  }
  return {std::bit_cast<float>(range.smallest), std::bit_cast<float>(range.largest)};
}

/// Keys of the piece that at least one of its rows sees.
KeySpan PieceAttention::keys_of(const Piece& piece, const RequestSizes& sizes,
                                const ItemRows& rows) const {
  const KeySpan visible =
      visible_keys(work_.mask, sizes, rows.place(0).token, rows.place(piece.item.rows - 1).token);
  const int64_t begin = sizes.kv_start + int64_t{piece.tiles.first} * kScheduleTile;
  const int64_t end = sizes.kv_start + int64_t{piece.tiles.last} * kScheduleTile;
  return {std::max(visible.first, begin), std::min(visible.last, end)};
}

/// The keys of the first tile are fetched meanwhile.
void PieceAttention::place_queries(const Piece& piece, const ItemRows& rows, const Tile& first) {
  const int padded_rows = item_shape_.groups() * kGroupRows;
  for (int head = 0; head < bundle_.heads; ++head) {
    for (int row = 0; row < padded_rows; ++row) {
      fetch_part(first, head * padded_rows + row, bundle_.heads * padded_rows);
      const bool exists = row < rows.per_head();
      place_query(head, row, exists ? query(piece, rows.place(head, row)) : nullptr);
    }
  }
}

/// `query` nullptr: a row of zeros.
void PieceAttention::place_query(int head, int row, const std::byte* query) {
  if (item_shape_.dots) {
    return kernels_.place_bf16_query(item_shape_, head, row, query, scratch_.item.q);
  }
  const int width = kernels_.padded(problem_.head_dim_qk);
  std::fill_n(scratch_.query, width, 0.0F);
  if (query != nullptr) {
    kernels_.convert_row(problem_.q_type, query, problem_.head_dim_qk, scratch_.query);
    const float factor = item_shape_.late_factor ? 1.0F : scratch_.item.factors[head];
    for (int i = 0; i < width; ++i) scratch_.query[i] *= factor;
  }
  kernels_.place_query(item_shape_, head, row, scratch_.query, scratch_.item.q);
}

void PieceAttention::walk_keys(const Piece& piece, const RequestSizes& sizes, const ItemRows& rows,
                               const KeySpan& keys, const Tile& first) {
  const KeySpan common =
      common_keys(work_.mask, sizes, rows.place(0).token, rows.place(piece.item.rows - 1).token);
  Tile tiles[2] = {first, {}};
  int current = 0;
  for (int64_t key = keys.first; tiles[current].keys > 0;) {
    Tile& tile = tiles[current];
    Tile& next = tiles[1 - current];
    const int64_t next_key = key + tile.keys;
    locate(piece.item, {next_key, keys.last},
           item_shape_.tile_keys(tile.keys, keys.last - next_key), 1 - current, next);
    tile.next_keys = next.keys;
    tile.next_k_rows = next.k_rows;
    tile.next_v_rows = next.v_rows;
    tile.seen = nullptr;
    if (key < common.first || next_key > common.last) find_seen(sizes, rows, key, tile);
    kernels_.attend_tile(item_shape_, tile, scratch_.item);
    key = next_key;
    current = 1 - current;
  }
}

/// Fills in where the first keys of a span lie, at most `most`.
void PieceAttention::locate(const Item& item, const KeySpan& span, int most, int buffer,
                            Tile& tile) {
  const int64_t first = span.first;
  const int keys = static_cast<int>(std::clamp<int64_t>(span.last - first, 0, most));
  const int size = dtype_bytes(problem_.kv_type);
  const int64_t kv_head = int64_t{item.kv_head} * bundle_.heads;
  tile.keys = keys;
  tile.k_rows = scratch_.k_rows[buffer];
  tile.v_rows = scratch_.v_rows[buffer];
  tile.k_head_bytes = call_.k_stride[2] * size;
  tile.v_head_bytes = call_.v_stride[2] * size;
  tile.k_fetch_bytes = bundle_.heads * problem_.head_dim_qk * size;
  tile.v_fetch_bytes = bundle_.heads * problem_.head_dim_v * size;
  tile.v_row_bytes = 0;
  tile.k_scale = call_.k_token_scale != nullptr ? scratch_.k_scale[buffer] : nullptr;
  tile.v_scale = call_.v_token_scale != nullptr ? scratch_.v_scale[buffer] : nullptr;
  const auto* k = static_cast<const std::byte*>(call_.k);
  const auto* v = static_cast<const std::byte*>(call_.v);
  for (int i = 0; i < keys;) {
    const SlotPlace start = view_.place(item.request, first + i);
    const int run =
        static_cast<int>(std::min<int64_t>(keys - i, view_.run_length(item.request, first + i)));
    if (run == keys) tile.v_row_bytes = call_.v_stride[1] * size;
    const std::byte* k_row = k + view_.k_offset(start, kv_head) * size;
    const std::byte* v_row = v + view_.v_offset(start, kv_head) * size;
    const ptrdiff_t k_step = call_.k_stride[1] * size, v_step = call_.v_stride[1] * size;
    for (int j = 0; j < run; ++j) {
      scratch_.k_rows[buffer][i + j] = k_row + j * k_step;
      scratch_.v_rows[buffer][i + j] = v_row + j * v_step;
    }
    const bool has_scales = tile.k_scale != nullptr || tile.v_scale != nullptr;
    for (int j = 0; has_scales && j < run; ++j) {
      for (int head = 0; head < bundle_.heads; ++head) {
        const SlotPlace place{start.page, start.slot + j};
        scratch_.k_scale[buffer][head * kTileKeys + i + j] =
            view_.k_token_scale(place, kv_head + head);
        scratch_.v_scale[buffer][head * kTileKeys + i + j] =
            view_.v_token_scale(place, kv_head + head);
      }
    }
    i += run;
  }
}

/// Which keys of the tile each row sees; heads of a bundle see the same.
void PieceAttention::find_seen(const RequestSizes& sizes, const ItemRows& rows, int64_t first,
                               Tile& tile) {
  const auto in_tile = [&](int64_t key) {
    return static_cast<int32_t>(std::clamp<int64_t>(key - first, 0, tile.keys));
  };
  for (int row = 0; row < rows.per_head(); ++row) {
    const KeySpan keys = visible_keys(work_.mask, sizes, rows.place(0, row).token);
    scratch_.seen[row] = {in_tile(keys.first), in_tile(keys.last)};
  }
  tile.seen = scratch_.seen;
}

}  // namespace deuce::cpu
