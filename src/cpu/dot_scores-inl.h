// SPDX-License-Identifier: Apache-2.0
// Scores of a tile by dot products of bf16 pairs. Included by dots-inl.h, which says what lies
// where. Nothing is transposed and each broadcast is a load, so that the multipliers are what
// limits: shuffles would take their place.

inline constexpr int kBlockOfKeys = 8;  // chains of sums; a dot product takes six cycles
static_assert(kDotTileKeys % kBlockOfKeys == 0);

/// Keys of a tile, in whole blocks, for one head.
struct DotKeys {
  const std::byte* const* rows;
  ptrdiff_t offset;
  int blocks;
  int lines;  // of a row
};

/// What becomes of a product, lane by lane as scores: score = product * factor - offset.
struct ScoreShift {
  __m512 factor, offset;
};

/// Lanes [row, part] of two keys to lanes [row, half the parts, key].
HWY_INLINE __m512 fold_parts(__m512 first, __m512 second) {
  const __m512 even = _mm512_mask_moveldup_ps(first, 0xaaaa, second);
  const __m512 odd = _mm512_mask_movehdup_ps(second, 0x5555, first);
  return _mm512_add_ps(even, odd);
}

/// Products of the keys of a vector to lanes [row, key]. Eight rows: two keys with two parts.
HWY_INLINE __m512 add_parts(const __m512 (&keys)[2][1]) {
  return fold_parts(keys[0][0], keys[1][0]);
}
/// Four rows, two of them a vector: four keys with eight parts.
HWY_INLINE __m512 add_parts(const __m512 (&keys)[4][2]) {
  __m512 folded[2];  // [row, two parts, key]
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __m512d first = _mm512_castps_pd(fold_parts(keys[0][i], keys[1][i]));
    const __m512d second = _mm512_castps_pd(fold_parts(keys[2][i], keys[3][i]));
    folded[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(first, second)),
                              _mm512_castpd_ps(_mm512_unpackhi_pd(first, second)));
  }
  return _mm512_add_ps(_mm512_shuffle_f32x4(folded[0], folded[1], 0x88),
                       _mm512_shuffle_f32x4(folded[0], folded[1], 0xdd));
}

/// Scores of a set against the block of keys whose rows begin at `rows`.
template <int kGroups>
HWY_INLINE void dot_score_block(const std::byte* q, const std::byte* const* rows, ptrdiff_t offset,
                                int lines, const ScoreShift& shift, float* scores, Ahead ahead) {
  using Set = RowSet<kGroups>;
  __m512 sums[kBlockOfKeys / Set::kKeys][Set::kKeys][Set::kStepVectors];
#pragma GCC unroll 8
  for (int key = 0; key < kBlockOfKeys; ++key) {
#pragma GCC unroll 2
    for (__m512& sum : sums[key / Set::kKeys][key % Set::kKeys]) sum = _mm512_setzero_ps();
  }
  for (const ptrdiff_t end = offset + lines * kLineBytes; offset < end; offset += kLineBytes) {
    hold_loads();  // of the rows: there are not enough registers for eight pointers
#pragma GCC unroll 8
    for (int at = 0; at < kLineBytes; at += Set::kStepBytes) {
      Pairs query[Set::kStepVectors];
#pragma GCC unroll 2
      for (Pairs& vector : query) vector = load_pairs(q), q += kLineBytes;
#pragma GCC unroll 8
      for (int key = 0; key < kBlockOfKeys; ++key) {
        if (key % (kLineBytes / Set::kStepBytes) == 0) ahead.fetch_next<1>();
        const Pairs step = keep(broadcast_pairs<Set::kParts>(rows[key] + offset + at));
#pragma GCC unroll 2
        for (int i = 0; i < Set::kStepVectors; ++i) {
          __m512& sum = sums[key / Set::kKeys][key % Set::kKeys][i];
          sum = add_dots(sum, query[i], step);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (const auto& keys_of_vector : sums) {
    const __m512 products = add_parts(keys_of_vector);
    _mm512_storeu_ps(scores, _mm512_fmsub_ps(products, shift.factor, shift.offset));
    scores += kLanes;
  }
}

/// Scores of a set against all keys of a tile.
template <int kGroups>
void dot_score_set(const float* q, const DotKeys& keys, const ScoreShift& shift, float* scores,
                   Fetcher& fetcher) {
  for (int block = 0; block < keys.blocks; ++block) {
    dot_score_block<kGroups>(reinterpret_cast<const std::byte*>(q),
                             keys.rows + block * kBlockOfKeys, keys.offset, keys.lines, shift,
                             scores, fetcher.next());
    scores += kBlockOfKeys * RowSet<kGroups>::kRows;
  }
}
