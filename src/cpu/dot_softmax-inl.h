// SPDX-License-Identifier: Apache-2.0
// Softmax of scores as dot_scores-inl.h leaves them, lanes [row, key]. Included by dots-inl.h; the
// rules are those of softmax-inl.h.
//
// Scores come less what their row's maximum was before the tile, so that most tiles need no
// subtraction here.

/// 2^x as exp2() says, but for the error: below 2^-22, which bf16 weights do not show. x is split
/// into n + j / 32 + f, |f| <= 1/64, by adding `kRound`, which leaves 32 n + j in the lowest bits:
/// j finds 2^(j/32) in a table and a polynomial of degree 2 (minimax) does the rest. Nine
/// instructions instead of twelve, and half as many that need a multiplier.
HWY_INLINE __m512 exp2_by_table(__m512 x) {
  static constexpr float kRound = 0x1.8p18F;
  static constexpr int kStepLog2 = 18;  // of j, where n is the exponent
  /// Bits of 2^(j/32) less j << kStepLog2.
  alignas(64) static constexpr uint32_t kTable[2][kLanes] = {
      {0x3f800000, 0x3f7ecd87, 0x3f7daac3, 0x3f7c980f, 0x3f7b95c2, 0x3f7aa43a, 0x3f79c3d3,
       0x3f78f4f0, 0x3f7837f0, 0x3f778d3a, 0x3f76f532, 0x3f767043, 0x3f75fed7, 0x3f75a15b,
       0x3f75583f, 0x3f7523f6},
      {0x3f7504f3, 0x3f74fbaf, 0x3f7508a4, 0x3f752c4d, 0x3f75672a, 0x3f75b9be, 0x3f76248c,
       0x3f76a81e, 0x3f7744fd, 0x3f77fbb8, 0x3f78ccdf, 0x3f79b907, 0x3f7ac0c7, 0x3f7be4ba,
       0x3f7d257d, 0x3f7e83b3}};
  const __mmask16 in_range = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-126), _CMP_NLT_UQ);
  const __m512 rounded = _mm512_add_ps(x, _mm512_set1_ps(kRound));
  const __m512 f = _mm512_sub_ps(x, _mm512_sub_ps(rounded, _mm512_set1_ps(kRound)));
  const __m512i index = _mm512_castps_si512(rounded);
  const __m512i entry =
      _mm512_permutex2var_epi32(_mm512_load_si512(kTable[0]), index, _mm512_load_si512(kTable[1]));
  const __m512 power =
      _mm512_castsi512_ps(_mm512_add_epi32(entry, _mm512_slli_epi32(index, kStepLog2)));
  const __m512 rest = _mm512_mul_ps(
      f, _mm512_fmadd_ps(f, _mm512_set1_ps(0.24022649F), _mm512_set1_ps(0.69315732F)));
  return _mm512_maskz_fmadd_ps(in_range, rest, power, power);
}

void exp2_of_all_by_table(const float* from, int count, float* to) {
  for (int i = 0; i < count; i += kLanes) {
    _mm512_storeu_ps(to + i, exp2_by_table(_mm512_loadu_ps(from + i)));
  }
}

/// Beyond this a maximum is not subtracted from products: the difference could overflow.
inline constexpr float kFarLog2 = 0x1p22F;

/// Lane [row, key] of a set from statistics, whose lanes repeat the rows of a group.
template <int kGroups>
HWY_INLINE __m512 spread_max(const GroupStats* stats) {
  if constexpr (kGroups == 1) {
    const __m512i lanes = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    return _mm512_permutexvar_ps(lanes, _mm512_load_ps(stats[0].max));
  } else {
    const __m512i lanes = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 16, 16, 17, 17, 18, 18, 19, 19);
    return _mm512_permutex2var_ps(_mm512_load_ps(stats[0].max), lanes,
                                  _mm512_load_ps(stats[1].max));
  }
}

/// What scores of the next tile come without: the maxima so far where they are small numbers.
template <int kGroups>
HWY_INLINE __m512 known_offset(const GroupStats* stats) {
  const __m512 max = spread_max<kGroups>(stats);
  const __mmask16 near =
      _mm512_cmp_ps_mask(_mm512_abs_ps(max), _mm512_set1_ps(kFarLog2), _CMP_LE_OQ);
  return _mm512_maskz_mov_ps(near, max);
}

/// Lanes [row, key] summed into the statistics, whose lanes are [any, row of a group].
template <int kGroups>
HWY_INLINE void add_row_sums(__m512 sums, GroupStats* stats) {
  if constexpr (kGroups == 1) {
    const __m512i lanes = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512 in_order = _mm512_permutexvar_ps(lanes, sums);
    _mm512_store_ps(stats->sum, _mm512_add_ps(_mm512_load_ps(stats->sum), in_order));
  } else {
    const __m512i first = _mm512_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
    for (int group = 0; group < 2; ++group) {
      const __m512 in_order =
          _mm512_maskz_permutexvar_ps(0x00ff, group == 0 ? first : second, sums);
      float* sum = stats[group].sum;
      _mm512_store_ps(sum, _mm512_add_ps(_mm512_load_ps(sum), in_order));
    }
  }
}

/// Lanes [row, key] of vector `vector` of a tile's keys; 0 beyond the last one.
template <int kKeys>
HWY_INLINE __m512 spread_keys(const float* of_keys, int vector, int keys) {
  float lanes[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    const int key = vector * kKeys + lane % kKeys;
    lanes[lane] = key < keys ? of_keys[key] : 0.0F;
  }
  return _mm512_loadu_ps(lanes);
}

/// finish_scores() for these lanes; `seen` as there.
template <int kGroups>
void finish_set(const ItemShape& shape, const Tile& tile, int group, const float* k_scale,
                int vectors, float* scores) {
  static constexpr int kKeys = RowSet<kGroups>::kKeys;
  for (int vector = 0; vector < vectors; ++vector, scores += kLanes) {
    Vec score = load(scores);
    if (k_scale != nullptr) score = mul(score, Vec{spread_keys<kKeys>(k_scale, vector, tile.keys)});
    if (shape.softcap > 0) score = soft_cap(score, shape.softcap);
    __mmask16 visible = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      const int key = vector * kKeys + lane % kKeys, row = group * kGroupRows + lane / kKeys;
      const bool masked = tile.seen != nullptr && row < shape.rows;
      const TileRange seen = masked ? tile.seen[row] : TileRange{0, tile.keys};
      const bool sees = key >= seen.first && key < seen.last;
      visible = static_cast<__mmask16>(visible | sees << lane);
    }
    store(Vec{_mm512_mask_blend_ps(visible, _mm512_set1_ps(kNoKey), score.raw)}, scores);
  }
}

/// The largest score of each row, in all its lanes.
template <int kGroups>
HWY_INLINE __m512 row_tops(const float* scores, int vectors) {
  __m512 top = _mm512_loadu_ps(scores);
  for (int i = 1; i < vectors; ++i) top = _mm512_max_ps(top, _mm512_loadu_ps(scores + i * kLanes));
  top = _mm512_max_ps(top, _mm512_permute_ps(top, 0xb1));
  if constexpr (kGroups == 1) top = _mm512_max_ps(top, _mm512_permute_ps(top, 0x4e));
  return top;
}

/// Raises the maxima of a set to `tops`, lane by lane as scores, and rescales o.
template <int kGroups>
void raise_set(const ItemShape& shape, __m512 tops, float* o, GroupStats* stats) {
  alignas(64) float of_rows[kLanes], of_group[kLanes], factors[kLanes];
  _mm512_store_ps(of_rows, tops);
  const ptrdiff_t group_floats = ptrdiff_t{step_count(shape.head_dim_v)} * 2 * kLanes * kGroupRows;
  for (int group = 0; group < kGroups; ++group, o += group_floats) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const int row = group * kGroupRows + lane % kGroupRows;
      of_group[lane] = of_rows[row * RowSet<kGroups>::kKeys];
    }
    raise_max_to(load(of_group), stats[group], factors);
    rescale_group(shape, o, factors);
  }
}

/// Lines that the softmax of a set fetches: with none, memory would rest for a tenth of the time.
constexpr int soft_fetches(int keys) { return round_up(keys, kBlockOfKeys) / 4; }

/// Scores, which lack their row's maximum alone, become weights: bf16 in the first half of their
/// place, rounded after they were summed.
template <int kGroups>
HWY_INLINE void make_set_weights(float* scores, int keys, const float* v_scale, GroupStats* stats,
                                 Ahead ahead) {
  static constexpr int kKeys = RowSet<kGroups>::kKeys;
  const int vectors = round_up(keys, kBlockOfKeys) / kKeys;
  __m512 sums = _mm512_setzero_ps();
  const auto weigh = [&](int vector) {
    const __m512 weight = exp2_by_table(_mm512_loadu_ps(scores + vector * kLanes));
    sums = _mm512_add_ps(sums, weight);
    if (v_scale == nullptr) return weight;
    return _mm512_mul_ps(weight, spread_keys<kKeys>(v_scale, vector, keys));
  };
  auto* to = reinterpret_cast<std::byte*>(scores);
  for (int vector = 0; vector < vectors; vector += 2, to += kLineBytes) {
    ahead.fetch_next<kGroups == 1 ? 2 : 1>();
    const __m512 low = weigh(vector), high = weigh(vector + 1);
    _mm512_storeu_si512(to, reinterpret_cast<Pairs>(_mm512_cvtne2ps_pbh(high, low)));
  }
  add_row_sums<kGroups>(sums, stats);
}

/// softmax_group() for a set, whose scores came less `offset`.
template <int kGroups>
void dot_soften_set(const ItemShape& shape, const Tile& tile, int head, int group, __m512 offset,
                    float* scores, const ItemState& state, Ahead ahead) {
  const float* k_scale = tile.k_scale == nullptr ? nullptr : tile.k_scale + head * kTileKeys;
  const float* v_scale = tile.v_scale == nullptr ? nullptr : tile.v_scale + head * kTileKeys;
  const int vectors = round_up(tile.keys, kBlockOfKeys) / RowSet<kGroups>::kKeys;
  const bool whole_blocks = tile.keys % kBlockOfKeys == 0;
  if (!whole_blocks || tile.seen != nullptr || k_scale != nullptr || shape.softcap > 0) {
    finish_set<kGroups>(shape, tile, group, k_scale, vectors, scores);
  }
  GroupStats* stats = &state.stats[head * shape.groups() + group];
  const __m512 tops = _mm512_add_ps(row_tops<kGroups>(scores, vectors), offset);
  const __m512 limit = _mm512_add_ps(spread_max<kGroups>(stats), _mm512_set1_ps(kLazyLog2));
  if (_mm512_cmp_ps_mask(tops, limit, _CMP_NLE_UQ) != 0) {
    raise_set<kGroups>(shape, tops, output_group(shape, head, group, state.o), stats);
  }
  const Vec row_max = zero_if_no_key(Vec{spread_max<kGroups>(stats)});
  if (_mm512_cmp_ps_mask(row_max.raw, offset, _CMP_NEQ_UQ) != 0) {
    const __m512 rest = _mm512_sub_ps(row_max.raw, offset);
    for (int i = 0; i < vectors * kLanes; i += kLanes) {
      _mm512_storeu_ps(scores + i, _mm512_sub_ps(_mm512_loadu_ps(scores + i), rest));
    }
  }
  make_set_weights<kGroups>(scores, tile.keys, v_scale, stats, ahead);
}
