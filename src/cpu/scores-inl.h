// SPDX-License-Identifier: Apache-2.0
// Scores of a tile: Q K^T for four query rows at a time against a few keys, as dot products kept in
// registers over the whole head dimension. Included by kernels-inl.h, once per instruction set.
// No element of a key is read twice from beyond the first-level cache, and each is converted once
// per four rows.
//
// q of a group: [half, step, row, lane]; a step is 2 * kLanes elements of the head dimension.

/// Keys of a register block: 4 * kBlockKeys sums, the keys and a query vector fill the registers.
inline constexpr int kBlockKeys = kLanes == 8 ? 3 : 4;

/// Compilers would fold each use of a query vector into its own load, or keep all keys of both
/// halves in registers and spill the sums. Loads do not cross this line; it emits no instruction.
HWY_INLINE void hold_loads() { std::atomic_signal_fence(std::memory_order_acq_rel); }

/// What stays the same over the keys of a tile. `zeros` is memory, and read again in every step: a
/// zero that the compiler can see is kept in a register, which is the one too many.
struct ScoreInput {
  const float* q;  // of the group
  int steps;
  const float* zeros;
};

template <DType kType, int kHalf, int kKeys, bool kFirst>
HWY_INLINE void add_step(const float* zeros, const float* q, const std::byte* const (&keys)[kKeys],
                         ptrdiff_t offset, Vec (&sums)[kGroupRows][kKeys]) {
  Vec key[kKeys];
  const Vec zero = load(zeros);
#pragma GCC unroll 4
  for (int k = 0; k < kKeys; ++k) key[k] = load_half<kType, kHalf>(keys[k] + offset, zero);
#pragma GCC unroll 4
  for (int row = 0; row < kGroupRows; ++row) {
    const Vec query = load(q + row * kLanes);
    hold_loads();
#pragma GCC unroll 4
    for (int k = 0; k < kKeys; ++k) {
      sums[row][k] = kFirst ? mul(query, key[k]) : mul_add(query, key[k], sums[row][k]);
    }
  }
}

/// One half of all steps. kSteps 0: any number of steps.
template <DType kType, int kHalf, int kKeys, int kSteps>
HWY_INLINE void add_half(const ScoreInput& in, const std::byte* const (&keys)[kKeys],
                         Vec (&sums)[kGroupRows][kKeys]) {
  static constexpr int kQueryFloats = kGroupRows * kLanes;
  static constexpr ptrdiff_t kStepBytes = ptrdiff_t{2} * kLanes * dtype_bytes(kType);
  const int steps = kSteps > 0 ? kSteps : in.steps;
  const float* q = in.q + kHalf * steps * kQueryFloats;
  const float* zeros = in.zeros;
  add_step<kType, kHalf, kKeys, kHalf == 0>(zeros, q, keys, 0, sums);
  if constexpr (kSteps > 0) {
#pragma GCC unroll 16
    for (int step = 1; step < kSteps; ++step) {
      add_step<kType, kHalf, kKeys, false>(zeros, q + step * kQueryFloats, keys, step * kStepBytes,
                                           sums);
    }
  } else {
    for (int step = 1; step < steps; ++step) {
      add_step<kType, kHalf, kKeys, false>(zeros, q + step * kQueryFloats, keys, step * kStepBytes,
                                           sums);
    }
  }
}

template <DType kType, int kKeys, int kSteps>
HWY_INLINE void score_block(const ScoreInput& in, const std::byte* const* rows, ptrdiff_t offset,
                            float* scores) {
  const std::byte* keys[kKeys];
#pragma GCC unroll 4
  for (int k = 0; k < kKeys; ++k) keys[k] = rows[k] + offset;
  Vec sums[kGroupRows][kKeys];
  add_half<kType, 0, kKeys, kSteps>(in, keys, sums);
  add_half<kType, 1, kKeys, kSteps>(in, keys, sums);
#pragma GCC unroll 4
  for (int k = 0; k < kKeys; ++k) {
    store_sums(sums[0][k], sums[1][k], sums[2][k], sums[3][k], scores + k * kGroupRows);
  }
}

/// Scores of one group of rows against the keys of a tile: scores is [keys, kGroupRows].
template <DType kType, int kSteps>
void score_group(const ScoreInput& in, const std::byte* const* rows, ptrdiff_t offset, int keys,
                 float* scores, Fetcher& fetcher) {
  int key = 0;
  for (; key + kBlockKeys <= keys; key += kBlockKeys) {
    fetcher.advance();
    score_block<kType, kBlockKeys, kSteps>(in, rows + key, offset, scores + key * kGroupRows);
  }
  for (; key + 2 <= keys; key += 2) {
    score_block<kType, 2, kSteps>(in, rows + key, offset, scores + key * kGroupRows);
  }
  if (key < keys) {
    score_block<kType, 1, kSteps>(in, rows + key, offset, scores + key * kGroupRows);
  }
}

using ScoreGroup = void (*)(const ScoreInput&, const std::byte* const*, ptrdiff_t, int, float*,
                            Fetcher&);

/// The unrolled variants are the head dims 64, 96, 128, 192 and 256.
template <DType kType>
ScoreGroup score_function(int steps) {
  switch (steps * 2 * kLanes) {
    case 64: return score_group<kType, 64 / (2 * kLanes)>;
    case 96: return score_group<kType, 96 / (2 * kLanes)>;
    case 128: return score_group<kType, 128 / (2 * kLanes)>;
    case 192: return score_group<kType, 192 / (2 * kLanes)>;
    case 256: return score_group<kType, 256 / (2 * kLanes)>;
    default: return score_group<kType, 0>;
  }
}
