// SPDX-License-Identifier: Apache-2.0
// Sums of a tile: P V for four query rows at a time and a strip of the head dimension, kept in
// registers over all keys of the tile. Included by kernels-inl.h, once per instruction set. A tile
// is summed by itself before it joins o, so that rounding errors do not grow with the length.
//
// o of a group: [vector, row, lane]; vector 2 s + h is half h of step s. A strip is a few
// neighbouring vectors: the sums, its values and one weight fill the registers.

/// Vectors of the widest strip.
inline constexpr int kStrip = kLanes == 8 ? 3 : 4;

/// Vectors `first` .. `first + count - 1`.
struct Strip {
  int first, count;
};
constexpr int strip_count(int vectors) { return (vectors + kStrip - 1) / kStrip; }
/// Strips as even as they can be, the wider ones first: none is a single vector.
constexpr Strip strip_at(int vectors, int index) {
  const int count = vectors / strip_count(vectors), wider = vectors % strip_count(vectors);
  return {index * count + std::min(index, wider), count + (index < wider ? 1 : 0)};
}

/// Enough to fetch the values of the widest strip.
constexpr int fetches_per_key(DType type) {
  return (kStrip * kLanes * dtype_bytes(type) + kCacheLine - 1) / kCacheLine;
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

/// Vector `kVector`, counted from the step at `step`.
template <DType kType, int kVector>
HWY_INLINE Vec load_vector(const std::byte* step, Vec zero) {
  static constexpr ptrdiff_t kStepBytes = ptrdiff_t{2} * kLanes * dtype_bytes(kType);
  return load_half<kType, kVector % 2>(step + kVector / 2 * kStepBytes, zero);
}

template <DType kType, int kHalf, int... kVectors>
HWY_INLINE void add_key(const float* zeros, const float* weights, const std::byte* step,
                        Vec (&sums)[kGroupRows][sizeof...(kVectors)],
                        std::integer_sequence<int, kVectors...>) {
  const Vec zero = load(zeros);
  const Vec values[] = {load_vector<kType, kHalf + kVectors>(step, zero)...};
#pragma GCC unroll 4
  for (int row = 0; row < kGroupRows; ++row) {
    const Vec weight = broadcast(weights[row]);
    hold_loads();
#pragma GCC unroll 4
    for (int j = 0; j < static_cast<int>(sizeof...(kVectors)); ++j) {
      sums[row][j] = mul_add(weight, values[j], sums[row][j]);
    }
  }
}

/// What stays the same over the strips and groups of a head.
struct ValueInput {
  const float* zeros;  // as in ScoreInput
  int keys;
};

/// Adds the weighted values of all keys to one strip of one group, whose first vector is half
/// `kHalf` of its first step. weights is [keys, kGroupRows], o points at the strip.
template <DType kType, int kHalf, int kCount, class Rows>
HWY_INLINE void add_strip(const ValueInput& in, const float* weights, const Rows& rows, float* o,
                          Ahead ahead) {
  static constexpr auto kVectors = std::make_integer_sequence<int, kCount>();
  Vec sums[kGroupRows][kCount];
#pragma GCC unroll 4
  for (auto& row_sums : sums) {
#pragma GCC unroll 4
    for (Vec& sum : row_sums) sum = broadcast(0);
  }
#pragma GCC unroll 1  // with two keys GCC runs out of registers
  for (int key = 0; key < in.keys; ++key) {
    ahead.fetch_next<fetches_per_key(kType)>();
    add_key<kType, kHalf>(in.zeros, weights + key * kGroupRows, rows(key), sums, kVectors);
  }
#pragma GCC unroll 4
  for (int j = 0; j < kCount; ++j) {
#pragma GCC unroll 4
    for (int row = 0; row < kGroupRows; ++row) {
      float* lanes = o + (j * kGroupRows + row) * kLanes;
      store(add(load(lanes), sums[row][j]), lanes);
    }
  }
}

template <DType kType, int kHalf, class Rows>
HWY_INLINE void add_strip(const ValueInput& in, int count, const float* weights, const Rows& rows,
                          float* o, const Ahead& ahead) {
  if (count == 2) return add_strip<kType, kHalf, 2>(in, weights, rows, o, ahead);
  if (kStrip == 3 || count == 3) return add_strip<kType, kHalf, 3>(in, weights, rows, o, ahead);
  add_strip<kType, kHalf, kStrip>(in, weights, rows, o, ahead);
}

/// Rows of V that the walk over strips can shift along the row.
inline StridedRows shifted(const StridedRows& rows, ptrdiff_t bytes) {
  return {rows.first + bytes, rows.stride};
}
inline GatheredRows shifted(const GatheredRows& rows, ptrdiff_t bytes) {
  return {rows.rows, rows.offset + bytes};
}

template <DType kType, class Rows>
void add_strips(const ValueInput& in, const float* weights, int groups, const Rows& rows, int steps,
                float* o, Fetcher& fetcher) {
  static constexpr ptrdiff_t kStepBytes = ptrdiff_t{2} * kLanes * dtype_bytes(kType);
  const int group_floats = 2 * steps * kGroupRows * kLanes;
  for (int i = 0; i < strip_count(2 * steps); ++i) {
    const Strip strip = strip_at(2 * steps, i);
    const Rows from = shifted(rows, strip.first / 2 * kStepBytes);
    for (int group = 0; group < groups; ++group) {
      const float* group_weights = weights + group * kVectorTileKeys * kGroupRows;
      float* to = o + group * group_floats + strip.first * kGroupRows * kLanes;
      const Ahead ahead = fetcher.next();
      if (strip.first % 2 == 0) {
        add_strip<kType, 0>(in, strip.count, group_weights, from, to, ahead);
      } else {
        add_strip<kType, 1>(in, strip.count, group_weights, from, to, ahead);
      }
    }
  }
}

/// `row_bytes` 0: the rows lie anywhere.
template <DType kType>
void add_head(const ValueInput& in, const float* weights, int groups, const std::byte* const* rows,
              ptrdiff_t offset, ptrdiff_t row_bytes, int steps, float* o, Fetcher& fetcher) {
  if (row_bytes != 0) {
    add_strips<kType>(in, weights, groups, StridedRows{rows[0] + offset, row_bytes}, steps, o,
                      fetcher);
  } else {
    add_strips<kType>(in, weights, groups, GatheredRows{rows, offset}, steps, o, fetcher);
  }
}
