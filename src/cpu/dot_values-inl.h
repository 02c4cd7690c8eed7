// SPDX-License-Identifier: Apache-2.0
// o += P V of a tile by dot products of bf16 pairs. Included by dots-inl.h, which says what lies
// where.

/// A loop over keys loads at a stride from the same instruction, and the stride prefetcher then
/// runs beyond the page of the cache.
inline constexpr int kUnrolledKeys = 16;

/// Weights of two keys for row `row` of a set, from those of the tile.
template <int kGroups>
HWY_INLINE const std::byte* pair_of_weights(const std::byte* weights, int first_key, int row) {
  static constexpr int kKeys = RowSet<kGroups>::kKeys, kKeyBytes = kPairBytes / 2;
  return weights + first_key / kKeys * (kLanes * kKeyBytes) +
         (row * kKeys + first_key % kKeys) * kKeyBytes;
}

/// Adds the weighted values of keys `key` and key + 1 to a strip of kVectors vectors of pairs.
template <int kGroups, int kVectors>
HWY_INLINE void add_pair(const std::byte* weights, int key, const Pairs (&first)[kVectors],
                         const Pairs (&second)[kVectors],
                         __m512 (&sums)[RowSet<kGroups>::kRows][2 * kVectors]) {
  Pairs values[2 * kVectors];
#pragma GCC unroll 2
  for (int i = 0; i < kVectors; ++i) {
    values[2 * i] = _mm512_unpacklo_epi16(first[i], second[i]);
    values[2 * i + 1] = _mm512_unpackhi_epi16(first[i], second[i]);
  }
#pragma GCC unroll 8
  for (int row = 0; row < RowSet<kGroups>::kRows; ++row) {
    const Pairs weight = broadcast_pairs<1>(pair_of_weights<kGroups>(weights, key, row));
#pragma GCC unroll 4
    for (int i = 0; i < 2 * kVectors; ++i) sums[row][i] = add_dots(sums[row][i], values[i], weight);
  }
}

/// Takes the first of the rows off. Compilers would work out the addresses of sixteen rows ahead
/// and have no registers to keep them.
HWY_INLINE const std::byte* take_first(StridedRows& rows) {
  const std::byte* first = rows.first;
  rows.first += rows.stride;
  hold(rows.first);
  return first;
}
HWY_INLINE const std::byte* take_first(GatheredRows& rows) { return *rows.rows++ + rows.offset; }

/// One strip of a set; o points at the strip of its first group.
template <int kGroups, int kVectors, class Rows>
HWY_INLINE void dot_add_strip(int keys, const std::byte* weights, Rows rows, float* o,
                              ptrdiff_t group_floats, Ahead ahead) {
  static constexpr int kRows = RowSet<kGroups>::kRows;
  const auto load_row = [](const std::byte* row, Pairs(&to)[kVectors]) {
#pragma GCC unroll 2
    for (int i = 0; i < kVectors; ++i) to[i] = keep(load_pairs(row + i * kLineBytes));
  };
  __m512 sums[kRows][2 * kVectors];
#pragma GCC unroll 8
  for (auto& row : sums) {
#pragma GCC unroll 4
    for (__m512& sum : row) sum = _mm512_setzero_ps();
  }
  Pairs first[kVectors], second[kVectors];
  int key = 0;
  for (; key + kUnrolledKeys <= keys; key += kUnrolledKeys) {
    const std::byte* of_keys = pair_of_weights<kGroups>(weights, key, 0);
#pragma GCC unroll 8
    for (int pair = 0; pair < kUnrolledKeys / 2; ++pair) {
      ahead.fetch_next<2 * kVectors>();
      load_row(take_first(rows), first);
      load_row(take_first(rows), second);
      add_pair<kGroups, kVectors>(of_keys, 2 * pair, first, second, sums);
    }
  }
  for (; key < keys; key += 2) {
    load_row(take_first(rows), first);
    if (key + 1 < keys) {
      ahead.fetch_next<2 * kVectors>();
      load_row(take_first(rows), second);
    } else {
#pragma GCC unroll 2
      for (Pairs& none : second) none = _mm512_setzero_si512();
    }
    add_pair<kGroups, kVectors>(weights, key, first, second, sums);
  }
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row) {
    float* of_row = o + row / kGroupRows * group_floats + row % kGroupRows * kLanes;
#pragma GCC unroll 4
    for (int i = 0; i < 2 * kVectors; ++i) {
      float* lanes = of_row + i * kGroupRows * kLanes;
      _mm512_storeu_ps(lanes, _mm512_add_ps(_mm512_loadu_ps(lanes), sums[row][i]));
    }
  }
}

/// Vectors of a strip: with its values and one weight the sums of all rows fill the registers.
constexpr int dot_strip(int groups) { return groups == 1 ? 2 : 1; }

/// Values of all strips of `lines` lines; weights as make_set_weights() leaves them.
template <int kGroups, class Rows>
void dot_add_strips(int keys, const std::byte* weights, const Rows& rows, int lines, float* o,
                    Fetcher& fetcher) {
  static constexpr int kVectors = dot_strip(kGroups);
  const ptrdiff_t group_floats = ptrdiff_t{2} * lines * kGroupRows * kLanes;
  int line = 0;
  for (; line + kVectors <= lines; line += kVectors) {
    dot_add_strip<kGroups, kVectors>(keys, weights, shifted(rows, line * kLineBytes), o,
                                     group_floats, fetcher.next());
    o += kVectors * 2 * kGroupRows * kLanes;
  }
  for (; line < lines; ++line, o += 2 * kGroupRows * kLanes) {
    dot_add_strip<kGroups, 1>(keys, weights, shifted(rows, line * kLineBytes), o, group_floats,
                              fetcher.next());
  }
}
