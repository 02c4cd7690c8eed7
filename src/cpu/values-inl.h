// SPDX-License-Identifier: Apache-2.0
// Sums of a tile: P V for four query rows at a time and two vectors of the head dimension, kept in
// registers over all keys of the tile. Included by kernels-inl.h, once per instruction set. A tile
// is summed by itself before it joins o, so that rounding errors do not grow with the length.
//
// o of a group: [pair, row, 2, lane]. A pair is two halves of steps; where the number of steps
// allows it, the same half of two neighbouring steps, so that every bf16 load folds into its
// conversion.

/// Where the two vectors of a pair lie: step and half.
struct Pair {
  int step[2];
  int half[2];
};
constexpr int pair_count(int steps) { return steps; }
constexpr Pair pair_at(int steps, int pair) {
  if (pair / 2 * 2 + 1 < steps) {
    return {{pair / 2 * 2, pair / 2 * 2 + 1}, {pair % 2, pair % 2}};
  }
  return {{steps - 1, steps - 1}, {0, 1}};
}

/// Rows of V at equal distances.
struct StridedRows {
  const std::byte* first;
  ptrdiff_t stride;
  const std::byte* operator()(int key) const { return first + key * stride; }
};
/// Rows of V anywhere.
struct GatheredRows {
  const std::byte* const* rows;
  ptrdiff_t offset;
  const std::byte* operator()(int key) const { return rows[key] + offset; }
};

/// Byte offsets of a pair's two steps in a row of V.
struct PairSteps {
  ptrdiff_t a, b;
};

template <DType kType, int kHalfA, int kHalfB, bool kFirst>
HWY_INLINE void add_key(const float* weights, const std::byte* row_bytes, const PairSteps& steps,
                        Vec (&sums)[kGroupRows][2]) {
  const Vec a = load_half<kType, kHalfA>(row_bytes + steps.a, broadcast(0));
  const Vec b = load_half<kType, kHalfB>(row_bytes + steps.b, broadcast(0));
#pragma GCC unroll 4
  for (int row = 0; row < kGroupRows; ++row) {
    const Vec weight = broadcast(weights[row]);
    sums[row][0] = kFirst ? mul(weight, a) : mul_add(weight, a, sums[row][0]);
    sums[row][1] = kFirst ? mul(weight, b) : mul_add(weight, b, sums[row][1]);
  }
}

/// Adds the weighted values of all keys to one pair. weights is [keys, kGroupRows].
template <DType kType, int kHalfA, int kHalfB, class Rows>
HWY_INLINE void add_values(const float* weights, const Rows& rows, int keys, const PairSteps& steps,
                           float* o) {
  Vec sums[kGroupRows][2];
  add_key<kType, kHalfA, kHalfB, true>(weights, rows(0), steps, sums);
#pragma GCC unroll 4
  for (int key = 1; key < keys; ++key) {
    add_key<kType, kHalfA, kHalfB, false>(weights + key * kGroupRows, rows(key), steps, sums);
  }
#pragma GCC unroll 4
  for (int row = 0; row < kGroupRows; ++row) {
    float* lanes = o + row * 2 * kLanes;
    store(add(load(lanes), sums[row][0]), lanes);
    store(add(load(lanes + kLanes), sums[row][1]), lanes + kLanes);
  }
}

template <DType kType, class Rows>
void add_pairs(const float* weights, const Rows& rows, int keys, int steps, float* o,
               Fetcher& fetcher) {
  static constexpr ptrdiff_t kStepBytes = ptrdiff_t{2} * kLanes * dtype_bytes(kType);
  for (int p = 0; p < pair_count(steps); ++p, o += kGroupRows * 2 * kLanes) {
    fetcher.advance();
    const Pair pair = pair_at(steps, p);
    const PairSteps at{pair.step[0] * kStepBytes, pair.step[1] * kStepBytes};
    if (pair.half[0] != pair.half[1]) {
      add_values<kType, 0, 1>(weights, rows, keys, at, o);
    } else if (pair.half[0] == 0) {
      add_values<kType, 0, 0>(weights, rows, keys, at, o);
    } else {
      add_values<kType, 1, 1>(weights, rows, keys, at, o);
    }
  }
}

/// `row_bytes` 0: the rows lie anywhere.
template <DType kType>
void add_group(const float* weights, const std::byte* const* rows, ptrdiff_t offset,
               ptrdiff_t row_bytes, int keys, int steps, float* o, Fetcher& fetcher) {
  if (row_bytes != 0) {
    add_pairs<kType>(weights, StridedRows{rows[0] + offset, row_bytes}, keys, steps, o, fetcher);
  } else {
    add_pairs<kType>(weights, GatheredRows{rows, offset}, keys, steps, o, fetcher);
  }
}
