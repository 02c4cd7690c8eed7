// SPDX-License-Identifier: Apache-2.0
// A tile of keys by AVX-512's dot product of bf16 pairs: twice the multiply-adds of fp32 vectors,
// and no conversion of the cache. Included by kernels_bf16.cpp after kernels-inl.h, for problems
// whose queries, cache and output all are bf16 (uses_dots()).
//
// The instruction adds products of neighbours, so each operand offers pairs along the summed
// dimension:
//
//   scores   pairs along the head dimension, as they lie in K and Q. Sixteen keys are transposed,
//   so
//            that a vector holds one pair of each: nothing has to be summed over lanes, and all
//            rows share the transposition.
//   values   pairs of keys: two rows of V interleaved, shared by all rows, and weights rounded to
//            bf16, which is what the tensor cores of a GPU take too.
//
// q of a group: [pair, row], bf16 as they came; factors are applied to the scores. Scores are
// [row, key] and become weights in place, bf16 in the first half of their row.

using Pairs = __m512i;  // 16 pairs of bf16

inline constexpr int kStepPairs = kLanes;  // of the head dimension in a vector
inline constexpr int kPairBytes = 4;
inline constexpr int kStepBytes = kPairBytes * kStepPairs;
inline constexpr int kBlockOfKeys = kLanes;  // keys whose scores share a vector
static_assert(kDotTileKeys % kBlockOfKeys == 0 && kStepBytes == kCacheLine);

HWY_INLINE __m512 add_dots(__m512 sum, Pairs a, Pairs b) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}
HWY_INLINE Pairs load_pairs(const void* from) { return _mm512_loadu_si512(from); }
/// One pair in every lane.
HWY_INLINE Pairs broadcast_pair(const std::byte* from) {
  int32_t pair;
  std::memcpy(&pair, from, sizeof pair);
  return _mm512_set1_epi32(pair);
}

/// Four keys' pairs in each block of four lanes: vector j holds pair 4 b + j in block b.
HWY_INLINE void transpose_in_blocks(Pairs a, Pairs b, Pairs c, Pairs d, Pairs (&to)[kBlocks]) {
  const Pairs ab_low = _mm512_unpacklo_epi32(a, b), ab_high = _mm512_unpackhi_epi32(a, b);
  const Pairs cd_low = _mm512_unpacklo_epi32(c, d), cd_high = _mm512_unpackhi_epi32(c, d);
  to[0] = _mm512_unpacklo_epi64(ab_low, cd_low);
  to[1] = _mm512_unpackhi_epi64(ab_low, cd_low);
  to[2] = _mm512_unpacklo_epi64(ab_high, cd_high);
  to[3] = _mm512_unpackhi_epi64(ab_high, cd_high);
}

/// Block `j` of each of four vectors, in order, in vector j.
HWY_INLINE void transpose_blocks(Pairs a, Pairs b, Pairs c, Pairs d, Pairs (&to)[kBlocks]) {
  const Pairs ab_low = _mm512_shuffle_i32x4(a, b, 0x44), ab_high = _mm512_shuffle_i32x4(a, b, 0xee);
  const Pairs cd_low = _mm512_shuffle_i32x4(c, d, 0x44), cd_high = _mm512_shuffle_i32x4(c, d, 0xee);
  to[0] = _mm512_shuffle_i32x4(ab_low, cd_low, 0x88);
  to[1] = _mm512_shuffle_i32x4(ab_low, cd_low, 0xdd);
  to[2] = _mm512_shuffle_i32x4(ab_high, cd_high, 0x88);
  to[3] = _mm512_shuffle_i32x4(ab_high, cd_high, 0xdd);
}

/// What stays the same over the keys of a tile.
struct DotScoreInput {
  const std::byte* q;  // of the first group
  int steps;
  __m512 factor;
  /// A group has the room of fp32 and uses half of it.
  ptrdiff_t group_bytes() const { return ptrdiff_t{2} * steps * kStepBytes * kGroupRows; }
};

/// Four keys' step at `at`, transposed in blocks, to four vectors at `to`.
HWY_INLINE void stage_keys(const std::byte* const* rows, ptrdiff_t at, std::byte* to) {
  Pairs fours[kBlocks];
  const Pairs a = load_pairs(rows[0] + at), b = load_pairs(rows[1] + at);
  const Pairs c = load_pairs(rows[2] + at), d = load_pairs(rows[3] + at);
  hold_loads();
  transpose_in_blocks(a, b, c, d, fours);
#pragma GCC unroll 4
  for (int j = 0; j < kBlocks; ++j) _mm512_store_si512(to + j * kStepBytes, fours[j]);
}

/// Sixteen keys that are about to be scored: where a step of theirs lies.
struct KeyBlock {
  const std::byte* const* rows;
  ptrdiff_t offset;
};

/// A step of a block of keys, transposed in blocks, and room for the one after it.
class StagedKeys {
 public:
  static constexpr int kFourBytes = kBlocks * kStepBytes;  // of four keys

  explicit StagedKeys(const KeyBlock& first) {
    for (int j = 0; j < kBlocks; ++j) stage_next(first, j);
    swap();
  }
  /// Quarter `j` of the step that comes after the one at hand.
  HWY_INLINE void stage_next(const KeyBlock& keys, int j) {
    stage_keys(keys.rows + j * kBlocks, keys.offset, next_ + j * kFourBytes);
  }
  HWY_INLINE void swap() { std::swap(current_, next_); }
  const std::byte* current() const { return current_; }

 private:
  alignas(64) std::byte room_[2][kBlocks * kFourBytes];
  std::byte *current_ = room_[0], *next_ = room_[1];
};

/// Scores of kGroups groups against a block of keys, whose first step is staged; at the end that of
/// `after` is. The dot products of a step are issued among the transposition of the next one, a
/// quarter at a time, because no CPU looks as far ahead as a whole step. A chain of sums has the
/// latency of six dot products, so one group alone keeps two chains a row.
template <int kGroups>
HWY_INLINE void dot_score_block(const DotScoreInput& in, KeyBlock keys, const KeyBlock& after,
                                float* scores, StagedKeys& staged, Ahead ahead) {
  static constexpr int kRows = kGroups * kGroupRows, kChains = kGroups == 1 ? 2 : 1;
  __m512 sums[kRows][kChains];
#pragma GCC unroll 8
  for (auto& row : sums) {
#pragma GCC unroll 2
    for (__m512& sum : row) sum = _mm512_setzero_ps();
  }
  const std::byte *q = in.q, *second_q = in.q + in.group_bytes();
  for (int step = 0; step < in.steps; ++step) {
    keys.offset += kStepBytes;
    if (step + 1 == in.steps) keys = after;
#pragma GCC unroll 4
    for (int j = 0; j < kBlocks; ++j) {
      staged.stage_next(keys, j);
      Pairs fours[kBlocks], pairs[kBlocks];
#pragma GCC unroll 4
      for (int four = 0; four < kBlocks; ++four) {
        fours[four] = load_pairs(staged.current() + four * StagedKeys::kFourBytes + j * kStepBytes);
      }
      hold_loads();
      transpose_blocks(fours[0], fours[1], fours[2], fours[3], pairs);
#pragma GCC unroll 4
      for (int i = 0; i < kBlocks; ++i) {
        ahead.fetch_next<kBlockOfKeys / kStepPairs>();
        const int pair = (i * kBlocks + j) * kGroupRows * kPairBytes;
#pragma GCC unroll 8
        for (int row = 0; row < kRows; ++row) {
          const std::byte* of_group = row < kGroupRows ? q : second_q;
          __m512& sum = sums[row][i % kChains];
          sum = add_dots(sum, pairs[i],
                         broadcast_pair(of_group + pair + row % kGroupRows * kPairBytes));
        }
      }
    }
    staged.swap();
    q += kStepBytes * kGroupRows;
    second_q += kStepBytes * kGroupRows;
  }
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row) {
    __m512 sum = sums[row][0];
    if constexpr (kChains == 2) sum = _mm512_add_ps(sum, sums[row][1]);
    _mm512_storeu_ps(scores + row * kTileKeys, _mm512_mul_ps(sum, in.factor));
  }
}

/// Scores of kGroups groups of a head against `blocks` blocks of keys.
template <int kGroups>
void dot_score_groups(const DotScoreInput& in, KeyBlock keys, int blocks, const KeyBlock& after,
                      float* scores, StagedKeys& staged, Fetcher& fetcher) {
  for (int block = 0; block < blocks; ++block, scores += kBlockOfKeys) {
    const KeyBlock next = {keys.rows + kBlockOfKeys, keys.offset};
    dot_score_block<kGroups>(in, keys, block + 1 < blocks ? next : after, scores, staged,
                             fetcher.next());
    keys = next;
  }
}

/// Scores of all groups of a head; `after` as in dot_score_block().
void dot_score_head(DotScoreInput in, int groups, const KeyBlock& keys, int blocks,
                    const KeyBlock& after, float* scores, StagedKeys& staged, Fetcher& fetcher) {
  int group = 0;
  for (; group + 2 <= groups; group += 2, in.q += 2 * in.group_bytes()) {
    dot_score_groups<2>(in, keys, blocks, group + 2 < groups ? keys : after, scores, staged,
                        fetcher);
    scores += 2 * kGroupRows * kTileKeys;
  }
  if (group < groups) dot_score_groups<1>(in, keys, blocks, after, scores, staged, fetcher);
}

/// In every block the sums over the block's lanes of a, b, c and d.
HWY_INLINE __m512 block_sums(const __m512 (&row)[kGroupRows]) {
  const auto fold = [](__m512 a, __m512 b) {
    return _mm512_castps_pd(_mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)));
  };
  const __m512d ab = fold(row[0], row[1]), cd = fold(row[2], row[3]);
  return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd)),
                       _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd)));
}

/// Keys first .. last - 1 of the block of keys that begins at `block`.
inline __mmask16 lanes_of(int block, int first, int last) {
  const auto below = [&](int key) {
    return (uint32_t{1} << std::clamp(key - block, 0, kBlockOfKeys)) - 1;
  };
  return static_cast<__mmask16>(below(last) & ~below(first));
}

/// finish_scores() for scores in rows.
inline void finish_row(const ItemShape& shape, const Tile& tile, const float* k_scale,
                       const TileRange& seen, float* scores) {
  for (int key = 0; key < tile.keys; key += kBlockOfKeys) {
    Vec score = load(scores + key);
    const __mmask16 lanes = lanes_of(key, seen.first, seen.last);
    if (k_scale != nullptr) {
      score = mul(score, Vec{_mm512_maskz_loadu_ps(lanes_of(key, 0, tile.keys), k_scale + key)});
    }
    if (shape.softcap > 0) score = soft_cap(score, shape.softcap);
    store(Vec{_mm512_mask_blend_ps(lanes, _mm512_set1_ps(kNoKey), score.raw)}, scores + key);
  }
}

/// raise_max() for scores in rows.
HWY_INLINE bool raise_row_max(const float* scores, int keys, GroupStats& stats, float* factors) {
  Vec top[kGroupRows];
  __mmask16 high = 0;
#pragma GCC unroll 4
  for (int row = 0; row < kGroupRows; ++row, scores += kTileKeys) {
    top[row] = load(scores);
    for (int key = kBlockOfKeys; key < keys; key += kBlockOfKeys) {
      top[row] = max(top[row], load(scores + key));
    }
    const __m512 limit = _mm512_set1_ps(stats.max[row] + kLazyLog2);
    high |= _mm512_cmp_ps_mask(top[row].raw, limit, _CMP_NLE_UQ);
  }
  if (high == 0) return false;
  alignas(64) float tops[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    tops[lane] = _mm512_reduce_max_ps(top[lane % kGroupRows].raw);
  }
  raise_max_to(load(tops), stats, factors);
  return true;
}

/// make_weights() for scores in rows; the weights are rounded to bf16 after they were summed.
HWY_INLINE void make_row_weights(float* scores, int keys, const float* v_scale, GroupStats& stats) {
  __m512 sums[kGroupRows];
#pragma GCC unroll 4
  for (int row = 0; row < kGroupRows; ++row, scores += kTileKeys) {
    const Vec row_max = zero_if_no_key(broadcast(stats.max[row]));
    const auto weigh = [&](int key) {
      const Vec weight = exp2(sub(load(scores + key), row_max));
      sums[row] = key == 0 ? weight.raw : _mm512_add_ps(sums[row], weight.raw);
      if (v_scale == nullptr) return weight.raw;
      const __m512 scale = _mm512_maskz_loadu_ps(lanes_of(key, 0, keys), v_scale + key);
      return _mm512_mul_ps(weight.raw, scale);
    };
    auto* to = reinterpret_cast<std::byte*>(scores);
    for (int key = 0; key < keys; key += 2 * kBlockOfKeys, to += kStepBytes) {
      const __m512 low = weigh(key);
      const __m512 high =
          key + kBlockOfKeys < keys ? weigh(key + kBlockOfKeys) : _mm512_setzero_ps();
      _mm512_storeu_si512(to, reinterpret_cast<Pairs>(_mm512_cvtne2ps_pbh(high, low)));
    }
  }
  store(add(load(stats.sum), Vec{block_sums(sums)}), stats.sum);
}

/// softmax_group() for scores in rows.
void dot_softmax_group(const ItemShape& shape, const Tile& tile, int head, int group, float* scores,
                       const ItemState& state) {
  const float* k_scale = tile.k_scale == nullptr ? nullptr : tile.k_scale + head * kTileKeys;
  const float* v_scale = tile.v_scale == nullptr ? nullptr : tile.v_scale + head * kTileKeys;
  const bool whole_blocks = tile.keys % kBlockOfKeys == 0;
  if (!whole_blocks || tile.seen != nullptr || k_scale != nullptr || shape.softcap > 0) {
    for (int i = 0; i < kGroupRows; ++i) {
      const int row = group * kGroupRows + i;
      const bool masked = tile.seen != nullptr && row < shape.rows;
      const TileRange seen = masked ? tile.seen[row] : TileRange{0, tile.keys};
      finish_row(shape, tile, k_scale, seen, scores + i * kTileKeys);
    }
  }
  GroupStats& stats = state.stats[head * shape.groups() + group];
  alignas(64) float factors[kLanes];
  if (raise_row_max(scores, tile.keys, stats, factors)) {
    rescale_group(shape, output_group(shape, head, group, state.o), factors);
  }
  make_row_weights(scores, tile.keys, v_scale, stats);
}

/// Adds the weighted values of two keys to a strip of kVectors vectors of pairs.
template <int kRows, int kVectors>
HWY_INLINE void add_pair(const std::byte* weights, const Pairs (&first)[kVectors],
                         const Pairs (&second)[kVectors], __m512 (&sums)[kRows][2 * kVectors]) {
  Pairs values[2 * kVectors];
#pragma GCC unroll 2
  for (int i = 0; i < kVectors; ++i) {
    values[2 * i] = _mm512_unpacklo_epi16(first[i], second[i]);
    values[2 * i + 1] = _mm512_unpackhi_epi16(first[i], second[i]);
  }
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row) {
    const Pairs weight = broadcast_pair(weights + row * kTileKeys * sizeof(float));
#pragma GCC unroll 4
    for (int i = 0; i < 2 * kVectors; ++i) sums[row][i] = add_dots(sums[row][i], values[i], weight);
  }
}

/// One strip of kGroups groups; weights as make_row_weights() leaves them, o points at the strip.
template <int kGroups, int kVectors, class Rows>
HWY_INLINE void dot_add_strip(int keys, const std::byte* weights, const Rows& rows, float* o,
                              ptrdiff_t group_floats, Ahead ahead) {
  static constexpr int kRows = kGroups * kGroupRows;
  const auto load_row = [](const std::byte* row, Pairs(&to)[kVectors]) {
#pragma GCC unroll 2
    for (int i = 0; i < kVectors; ++i) to[i] = load_pairs(row + i * kStepBytes);
  };
  __m512 sums[kRows][2 * kVectors];
#pragma GCC unroll 8
  for (auto& row : sums) {
#pragma GCC unroll 4
    for (__m512& sum : row) sum = _mm512_setzero_ps();
  }
  Pairs first[kVectors], second[kVectors];
  int key = 0;
  for (; key + kBlockOfKeys <= keys; key += kBlockOfKeys) {
#pragma GCC unroll 8
    for (int pair = 0; pair < kBlockOfKeys / 2; ++pair, weights += kPairBytes) {
      ahead.fetch_next<2 * kVectors>();
      load_row(rows(key + 2 * pair), first);
      load_row(rows(key + 2 * pair + 1), second);
      add_pair<kRows, kVectors>(weights, first, second, sums);
    }
  }
  for (; key + 2 <= keys; key += 2, weights += kPairBytes) {
    ahead.fetch_next<2 * kVectors>();
    load_row(rows(key), first);
    load_row(rows(key + 1), second);
    add_pair<kRows, kVectors>(weights, first, second, sums);
  }
  if (key < keys) {
    load_row(rows(key), first);
#pragma GCC unroll 2
    for (Pairs& none : second) none = _mm512_setzero_si512();
    add_pair<kRows, kVectors>(weights, first, second, sums);
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

/// Values of all strips for one or two groups.
template <int kGroups, class Rows>
void dot_add_strips(int keys, const std::byte* weights, const Rows& rows, int steps, float* o,
                    Fetcher& fetcher) {
  static constexpr int kVectors = dot_strip(kGroups);
  const ptrdiff_t group_floats = ptrdiff_t{2} * steps * kGroupRows * kLanes;
  int step = 0;
  for (; step + kVectors <= steps; step += kVectors) {
    dot_add_strip<kGroups, kVectors>(keys, weights, shifted(rows, step * kStepBytes), o,
                                     group_floats, fetcher.next());
    o += kVectors * 2 * kGroupRows * kLanes;
  }
  for (; step < steps; ++step, o += 2 * kGroupRows * kLanes) {
    dot_add_strip<kGroups, 1>(keys, weights, shifted(rows, step * kStepBytes), o, group_floats,
                              fetcher.next());
  }
}

template <class Rows>
void dot_add_head(int keys, const float* weights, int groups, const Rows& rows, int steps, float* o,
                  Fetcher& fetcher) {
  const ptrdiff_t group_floats = ptrdiff_t{2} * steps * kGroupRows * kLanes;
  int group = 0;
  for (; group < groups; group += 2) {
    const auto* from = reinterpret_cast<const std::byte*>(weights + group * kTileKeys * kGroupRows);
    float* to = o + group * group_floats;
    if (group + 2 <= groups) {
      dot_add_strips<2>(keys, from, rows, steps, to, fetcher);
    } else {
      dot_add_strips<1>(keys, from, rows, steps, to, fetcher);
    }
  }
}

/// The steps of one tile, head by head; as TileAttention.
class DotAttention {
 public:
  DotAttention(const ItemShape& shape, const Tile& tile, const ItemState& state)
      : shape_(shape),
        tile_(tile),
        state_(state),
        k_fetcher_(
            {tile.next_k_rows, tile.next_keys, tile.k_fetch_bytes},
            shape.heads * pairs_of_groups() * round_up(tile.keys, kBlockOfKeys) / kBlockOfKeys,
            k_steps_ * kBlockOfKeys, state.zeros),
        v_fetcher_({tile.next_v_rows, tile.next_keys, tile.v_fetch_bytes},
                   shape.heads * pairs_of_groups() * strips(), tile.keys / 2 * 2 * strip_vectors(),
                   state.zeros) {}

  /// Scores of all heads, one behind the other. Where the last block reaches beyond the last key it
  /// takes that key again; softmax masks what comes of it.
  void score() {
    const int blocks = round_up(tile_.keys, kBlockOfKeys) / kBlockOfKeys;
    const std::byte* const* rows = tile_.k_rows;
    const std::byte* padded[kDotTileKeys];
    if (tile_.keys % kBlockOfKeys != 0) {
      for (int i = 0; i < blocks * kBlockOfKeys; ++i) padded[i] = rows[std::min(i, tile_.keys - 1)];
      rows = padded;
    }
    StagedKeys staged({rows, 0});
    for (int head = 0; head < shape_.heads; ++head) {
      const auto* q = reinterpret_cast<const std::byte*>(query_group(shape_, head, 0, state_.q));
      const DotScoreInput in{q, k_steps_, _mm512_set1_ps(state_.factors[head])};
      const KeyBlock keys = {rows, head * tile_.k_head_bytes};
      const bool last = head + 1 == shape_.heads;
      const KeyBlock after = {rows, last ? 0 : keys.offset + tile_.k_head_bytes};
      dot_score_head(in, groups_, keys, blocks, after, slot(head), staged, k_fetcher_);
    }
  }

  void soften(int head) {
    for (int group = 0; group < groups_; ++group) {
      dot_softmax_group(shape_, tile_, head, group, slot(head) + group * kGroupRows * kTileKeys,
                        state_);
    }
  }

  void add_values(int head) {
    const ptrdiff_t offset = head * tile_.v_head_bytes;
    float* o = output_group(shape_, head, 0, state_.o);
    if (tile_.v_row_bytes != 0) {
      dot_add_head(tile_.keys, slot(head), groups_,
                   StridedRows{tile_.v_rows[0] + offset, tile_.v_row_bytes}, v_steps_, o,
                   v_fetcher_);
    } else {
      dot_add_head(tile_.keys, slot(head), groups_, GatheredRows{tile_.v_rows, offset}, v_steps_, o,
                   v_fetcher_);
    }
  }

 private:
  float* slot(int head) const {
    return state_.scores + ptrdiff_t{head * groups_} * kTileKeys * kGroupRows;
  }
  int pairs_of_groups() const { return (groups_ + 1) / 2; }
  int strip_vectors() const { return dot_strip(std::min(groups_, 2)); }
  int strips() const { return (v_steps_ + strip_vectors() - 1) / strip_vectors(); }

  const ItemShape& shape_;
  const Tile& tile_;
  const ItemState& state_;
  int groups_ = shape_.groups();
  int k_steps_ = step_count(shape_.head_dim_qk), v_steps_ = step_count(shape_.head_dim_v);
  Fetcher k_fetcher_, v_fetcher_;
};

/// The table's function: dots where the item takes them, fp32 vectors for the rest. All heads go
/// through one stage before the next begins, so that K and V are each walked at a stretch.
void attend_tile_with_dots(const ItemShape& shape, const Tile& tile, const ItemState& state) {
  if (!shape.dots) return attend_tile(shape, tile, state);
  DotAttention attention(shape, tile, state);
  attention.score();
  for (int head = 0; head < shape.heads; ++head) attention.soften(head);
  for (int head = 0; head < shape.heads; ++head) attention.add_values(head);
}

void place_bf16_query(const ItemShape& shape, int head, int row, const void* query, float* q) {
  const int pairs = shape.head_dim_qk / 2;
  auto* to = reinterpret_cast<std::byte*>(query_group(shape, head, row / kGroupRows, q)) +
             row % kGroupRows * kPairBytes;
  const auto* from = static_cast<const std::byte*>(query);
  for (int pair = 0; pair < pairs; ++pair, to += kGroupRows * kPairBytes) {
    uint32_t elements = 0;
    if (from != nullptr) std::memcpy(&elements, from + pair * kPairBytes, sizeof elements);
    std::memcpy(to, &elements, sizeof elements);
  }
}
