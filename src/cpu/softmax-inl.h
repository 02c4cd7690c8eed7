// SPDX-License-Identifier: Apache-2.0
// Softmax of a tile for one group of four rows. Included by kernels-inl.h, once per instruction
// set. Scores are [key, row]: a vector holds the four rows of one or more keys, so that maximum,
// exponential and sum are lane by lane, and only the maximum is ever folded across a vector.
//
// The maximum is raised lazily: while no score exceeds it by more than 2^8 in weight, sums and o
// keep their scale. From the first key on every weight is at most 2^8, so nothing overflows. A row
// without a key so far has maximum -inf and nothing but scores of -inf: any finite number in place
// of its maximum gives them weight 0.

inline constexpr int kBlocks = kLanes / kGroupRows;  // keys of a vector
inline constexpr float kLazyLog2 = 8;

/// cap * tanh(x / cap), in log2 units. Below 1/8 by its series (relative error below 2^-28): the
/// quotient of exponentials would cancel, and a large cap with it.
HWY_INLINE Vec soft_cap(Vec x, float cap) {
  const Vec y = divide(abs(x), broadcast(cap)), square = mul(y, y), one = broadcast(1);
  Vec series = mul_add(square, broadcast(-17.0F / 315), broadcast(2.0F / 15));
  series = mul_add(series, square, broadcast(-1.0F / 3));
  series = mul(mul_add(series, square, one), y);
  const Vec weight = exp2(mul(y, broadcast(-2 * kLog2E)));  // e^(-2 y)
  const Vec quotient = divide(sub(one, weight), add(one, weight));
  const Vec tanh = if_less(y, broadcast(0.125F), series, quotient);
  return copy_sign(mul(mul(tanh, broadcast(cap)), broadcast(kLog2E)), x);
}

/// What scores need beyond the dot product: a late factor, scales of keys, the cap, -inf for keys
/// that a row does not see and for the rest of the last vector. Most tiles need nothing.
inline void finish_scores(const ItemShape& shape, const Tile& tile, float factor,
                          const float* k_scale, const TileRange* seen, int rows, float* scores) {
  const int count = tile.keys * kGroupRows;
  const int padded = round_up(tile.keys, kBlocks) * kGroupRows;
  if (shape.late_factor) {
    for (int i = 0; i < count; ++i) {
      const double scale = k_scale != nullptr ? k_scale[i / kGroupRows] : 1.0F;
      scores[i] = static_cast<float>(scores[i] * (scale * factor));
    }
  } else if (k_scale != nullptr) {
    for (int i = 0; i < count; ++i) scores[i] *= k_scale[i / kGroupRows];
  }
  if (shape.softcap > 0) {
    for (int i = 0; i < padded; i += kLanes) {
      store(soft_cap(load(scores + i), shape.softcap), scores + i);
    }
  }
  for (int i = count; i < padded; ++i) scores[i] = kNoKey;
  if (seen == nullptr) return;
  for (int row = 0; row < rows; ++row) {
    for (int key = 0; key < tile.keys; ++key) {
      const bool visible = key >= seen[row].first && key < seen[row].last;
      if (!visible) scores[key * kGroupRows + row] = kNoKey;
    }
  }
}

/// Raises the maxima to `top`, lane by lane as in GroupStats; `factors` as below.
HWY_INLINE void raise_max_to(Vec top, GroupStats& stats, float* factors) {
  const Vec before = load(stats.max), after = max(before, top);
  const Vec factor = exp2(sub(before, zero_if_no_key(after)));
  store(after, stats.max);
  store(mul(load(stats.sum), factor), stats.sum);
  store(factor, factors);
}

/// Raises the maxima to those of the tile if one of them is too far above. Returns whether it did;
/// `factors` then holds what o of each row has to be multiplied by.
HWY_INLINE bool raise_max(const float* scores, int padded, GroupStats& stats, float* factors) {
  Vec top = load(scores);
  for (int i = kLanes; i < padded; i += kLanes) top = max(top, load(scores + i));
  top = max_over_blocks(top);
  if (all_at_most(top, add(load(stats.max), broadcast(kLazyLog2)))) return false;
  raise_max_to(top, stats, factors);
  return true;
}

/// Replaces scores by weights and adds them to the sums.
HWY_INLINE void make_weights(float* scores, int padded, GroupStats& stats) {
  const Vec row_max = zero_if_no_key(load(stats.max));
  Vec sum = load(stats.sum);
  for (int i = 0; i < padded; i += kLanes) {
    const Vec weight = exp2(sub(load(scores + i), row_max));
    store(weight, scores + i);
    sum = add(sum, weight);
  }
  store(sum, stats.sum);
}
