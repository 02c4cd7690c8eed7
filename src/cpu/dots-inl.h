// SPDX-License-Identifier: Apache-2.0
// A tile of keys by AVX-512's dot product of bf16 pairs: twice the multiply-adds of fp32 vectors,
// and no conversion of the cache. Included by kernels_bf16.cpp after kernels-inl.h, for problems
// whose queries, cache and output all are bf16 (uses_dots()).
//
// Rows of a head are taken in sets of two groups, and of one where their number is odd. The
// instruction adds products of neighbours, so each operand offers pairs along the summed dimension:
//
//   scores   pairs along the head dimension. Lanes are [row, part]: a step of a key, as many pairs
//            as there are parts, is broadcast to the rows, and at the end the parts are added
//                                                                           dot_scores-inl.h
//   weights  lanes are [row, key]; bf16 of them are the pairs that values need
//                                                                           dot_softmax-inl.h
//   values   pairs of keys: two rows of V interleaved, shared by all rows, and weights rounded to
//            bf16, which is what the tensor cores of a GPU take too         dot_values-inl.h

using Pairs = __m512i;  // 16 pairs of bf16

inline constexpr int kPairBytes = 4;
inline constexpr int kLineBytes = kPairBytes * kLanes;  // of a vector of pairs
inline constexpr int kLinePairs = kLanes;
static_assert(kLineBytes == kCacheLine);

/// Rows that are computed together, and how lanes are shared among them.
template <int kGroups>
struct RowSet {
  static constexpr int kRows = kGroups * kGroupRows;
  static constexpr int kKeys = kLanes / kRows;  // of a vector of scores
  /// Parts of a product. Four rows take two vectors for a broadcast then: one each would leave the
  /// multipliers waiting for loads.
  static constexpr int kParts = kGroups == 1 ? 8 : 2;
  static constexpr int kStepBytes = kParts * kPairBytes;                // of a row
  static constexpr int kStepVectors = kRows * kStepBytes / kLineBytes;  // of all rows
};

HWY_INLINE __m512 add_dots(__m512 sum, Pairs a, Pairs b) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}
HWY_INLINE Pairs load_pairs(const void* from) { return _mm512_loadu_si512(from); }
/// Loaded once, into a register: compilers would load again for each use.
HWY_INLINE Pairs keep(Pairs loaded) {
  asm volatile("" : "+v"(loaded));  // emits no instruction
  return loaded;
}
/// `kCount` pairs over and over.
template <int kCount>
HWY_INLINE Pairs broadcast_pairs(const std::byte* from) {
  if constexpr (kCount == 1) {
    int32_t pair;
    std::memcpy(&pair, from, sizeof pair);
    return _mm512_set1_epi32(pair);
  } else if constexpr (kCount == 2) {
    int64_t pairs;
    std::memcpy(&pairs, from, sizeof pairs);
    return _mm512_set1_epi64(pairs);
  } else {
    static_assert(kCount == 8);
    return _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
}

#include "cpu/dot_scores-inl.h"
#include "cpu/dot_softmax-inl.h"
#include "cpu/dot_values-inl.h"

/// The steps of one tile, head by head; as TileAttention.
class DotAttention {
 public:
  DotAttention(const ItemShape& shape, const Tile& tile, const ItemState& state)
      : shape_(shape),
        tile_(tile),
        state_(state),
        k_fetcher_({tile.next_k_rows, tile.next_keys - soft_keys(), tile.k_fetch_bytes},
                   shape.heads * sets() * blocks(), k_lines_ * kBlockOfKeys, state.zeros),
        soft_fetcher_(
            {tile.next_k_rows + tile.next_keys - soft_keys(), soft_keys(), tile.k_fetch_bytes},
            shape.heads * sets(), soft_fetches(tile.keys), state.zeros),
        v_fetcher_({tile.next_v_rows, tile.next_keys, tile.v_fetch_bytes},
                   shape.heads * sets() * strips(), tile.keys / 2 * 2 * strip_vectors(),
                   state.zeros) {}

  /// Where the last block reaches beyond the last key it takes that key again; softmax masks what
  /// comes of it.
  void score(int head) {
    const std::byte* const* rows = tile_.k_rows;
    const std::byte* padded[kDotTileKeys];
    if (tile_.keys % kBlockOfKeys != 0) {
      for (int i = 0; i < blocks() * kBlockOfKeys; ++i) {
        padded[i] = rows[std::min(i, tile_.keys - 1)];
      }
      rows = padded;
    }
    const DotKeys keys = {rows, head * tile_.k_head_bytes, blocks(), k_lines_};
    for_each_set([&](auto set, int group) {
      dot_score_set<set.value>(query_group(shape_, head, group, state_.q), keys,
                               shift_of<set.value>(head, group), slot(head, group), k_fetcher_);
    });
  }

  void soften(int head) {
    for_each_set([&](auto set, int group) {
      dot_soften_set<set.value>(shape_, tile_, head, group, shift_of<set.value>(head, group).offset,
                                slot(head, group), state_, soft_fetcher_.next());
    });
  }

  void add_values(int head) {
    const ptrdiff_t offset = head * tile_.v_head_bytes;
    const auto add = [&](const auto& rows) {
      for_each_set([&](auto set, int group) {
        const auto* weights = reinterpret_cast<const std::byte*>(slot(head, group));
        dot_add_strips<set.value>(tile_.keys, weights, rows, v_lines_,
                                  output_group(shape_, head, group, state_.o), v_fetcher_);
      });
    };
    if (tile_.v_row_bytes != 0) {
      add(StridedRows{tile_.v_rows[0] + offset, tile_.v_row_bytes});
    } else {
      add(GatheredRows{tile_.v_rows, offset});
    }
  }

 private:
  template <class Do>
  HWY_INLINE void for_each_set(const Do& with) {
    int group = 0;
    for (; group + 2 <= groups_; group += 2) with(std::integral_constant<int, 2>(), group);
    if (group < groups_) with(std::integral_constant<int, 1>(), group);
  }

  template <int kGroups>
  HWY_INLINE ScoreShift shift_of(int head, int group) const {
    const bool whole = tile_.k_scale == nullptr && shape_.softcap == 0;
    const GroupStats* stats = &state_.stats[head * groups_ + group];
    return {_mm512_set1_ps(state_.factors[head]),
            whole ? known_offset<kGroups>(stats) : _mm512_setzero_ps()};
  }

  float* slot(int head, int group) const {
    return state_.scores + ptrdiff_t{head * groups_ + group} * shape_.tile_keys() * kGroupRows;
  }
  /// Keys at the end of the next tile that softmax fetches.
  int soft_keys() const {
    const int lines = shape_.heads * sets() * soft_fetches(tile_.keys);
    return std::min(tile_.next_keys, lines * kCacheLine / tile_.k_fetch_bytes);
  }
  int blocks() const { return (tile_.keys + kBlockOfKeys - 1) / kBlockOfKeys; }
  int sets() const { return (groups_ + 1) / 2; }
  int strip_vectors() const { return dot_strip(std::min(groups_, 2)); }
  int strips() const { return (v_lines_ + strip_vectors() - 1) / strip_vectors(); }

  const ItemShape& shape_;
  const Tile& tile_;
  const ItemState& state_;
  int groups_ = shape_.groups();
  int k_lines_ = step_count(shape_.head_dim_qk), v_lines_ = step_count(shape_.head_dim_v);
  Fetcher k_fetcher_, soft_fetcher_, v_fetcher_;
};

/// The table's function: dots where the item takes them, fp32 vectors for the rest. K of all heads
/// comes before V of any, so that both are walked at a stretch.
void attend_tile_with_dots(const ItemShape& shape, const Tile& tile, const ItemState& state) {
  if (!shape.dots) return attend_tile(shape, tile, state);
  DotAttention attention(shape, tile, state);
  for (int head = 0; head < shape.heads; ++head) {
    attention.score(head);
    attention.soften(head);
  }
  for (int head = 0; head < shape.heads; ++head) attention.add_values(head);
}

/// q of a set: [step, row, part], bf16 as they came; factors are applied to the scores.
void place_bf16_query(const ItemShape& shape, int head, int row, const void* query, float* q) {
  const int group = row / kGroupRows, first = group / 2 * 2;
  const bool single = first + 1 == shape.groups();
  const int rows = single ? RowSet<1>::kRows : RowSet<2>::kRows;
  const int step_bytes = single ? RowSet<1>::kStepBytes : RowSet<2>::kStepBytes;
  auto* to = reinterpret_cast<std::byte*>(query_group(shape, head, first, q)) +
             (row - first * kGroupRows) * step_bytes;
  const auto* from = static_cast<const std::byte*>(query);
  for (int at = 0; at < 2 * shape.head_dim_qk; at += step_bytes, to += rows * step_bytes) {
    if (from != nullptr) {
      std::memcpy(to, from + at, static_cast<std::size_t>(step_bytes));
    } else {
      std::memset(to, 0, static_cast<std::size_t>(step_bytes));
    }
  }
}
