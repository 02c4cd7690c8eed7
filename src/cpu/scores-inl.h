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

/// Enough to fetch a block's keys in its half steps.
constexpr int fetches_per_step(DType type) {
  return (kBlockKeys * kLanes * dtype_bytes(type) + kCacheLine - 1) / kCacheLine;
}

/// What stays the same over the keys of a tile. `zeros` is memory, and read again in every step: a
/// zero that the compiler can see is kept in a register, which is the one too many.
struct ScoreInput {
  const float* q;  // of the group
  int steps;
  const float* zeros;
};

template <DType kType, int kHalf, int kKeys, bool kFirst>
HWY_INLINE void add_step(const float* zeros, const float* q, const std::byte* const (&keys)[kKeys],
                         ptrdiff_t offset, Vec (&sums)[kGroupRows][kKeys], Ahead& ahead) {
  ahead.fetch_next<fetches_per_step(kType)>();
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
                         Vec (&sums)[kGroupRows][kKeys], Ahead& ahead) {
  static constexpr int kQueryFloats = kGroupRows * kLanes;
  static constexpr ptrdiff_t kStepBytes = ptrdiff_t{2} * kLanes * dtype_bytes(kType);
  const int steps = kSteps > 0 ? kSteps : in.steps;
  const float* q = in.q + kHalf * steps * kQueryFloats;
  const float* zeros = in.zeros;
  add_step<kType, kHalf, kKeys, kHalf == 0>(zeros, q, keys, 0, sums, ahead);
  if constexpr (kSteps > 0) {
#pragma GCC unroll 16
    for (int step = 1; step < kSteps; ++step) {
      add_step<kType, kHalf, kKeys, false>(zeros, q + step * kQueryFloats, keys, step * kStepBytes,
                                           sums, ahead);
    }
  } else {
    for (int step = 1; step < steps; ++step) {
      add_step<kType, kHalf, kKeys, false>(zeros, q + step * kQueryFloats, keys, step * kStepBytes,
                                           sums, ahead);
    }
  }
}

template <DType kType, int kKeys, int kSteps>
HWY_INLINE void score_block(const ScoreInput& in, const std::byte* const* rows, ptrdiff_t offset,
                            float* scores, Ahead ahead) {
  const std::byte* keys[kKeys];
#pragma GCC unroll 4
  for (int k = 0; k < kKeys; ++k) keys[k] = rows[k] + offset;
  Vec sums[kGroupRows][kKeys];
  add_half<kType, 0, kKeys, kSteps>(in, keys, sums, ahead);
  add_half<kType, 1, kKeys, kSteps>(in, keys, sums, ahead);
#pragma GCC unroll 4
  for (int k = 0; k < kKeys; ++k) {
    store_sums(sums[0][k], sums[1][k], sums[2][k], sums[3][k], scores + k * kGroupRows);
  }
}

/// Scores of a head's groups against the keys of a tile: scores is [group, kVectorTileKeys,
/// kGroupRows]. A few keys meet all groups before the next few keys: rows of a bundle lie kilobytes
/// apart, where a tile of them does not stay in the first-level cache, but queries do.
template <DType kType, int kSteps>
void score_head(const ScoreInput& in, int groups, const std::byte* const* rows, ptrdiff_t offset,
                int keys, float* scores, Fetcher& fetcher) {
  const int group_floats = 2 * in.steps * kGroupRows * kLanes;
  const auto block = [&]<int kKeys>(std::integral_constant<int, kKeys>, int key) {
    ScoreInput group_in = in;
    for (int group = 0; group < groups; ++group, group_in.q += group_floats) {
      score_block<kType, kKeys, kSteps>(group_in, rows + key, offset,
                                        scores + (group * kVectorTileKeys + key) * kGroupRows,
                                        fetcher.next());
    }
  };
  int key = 0;
  for (; key + kBlockKeys <= keys; key += kBlockKeys) {
    block(std::integral_constant<int, kBlockKeys>(), key);
  }
  for (; key + 2 <= keys; key += 2) block(std::integral_constant<int, 2>(), key);
  if (key < keys) block(std::integral_constant<int, 1>(), key);
}

using ScoreHead = void (*)(const ScoreInput&, int, const std::byte* const*, ptrdiff_t, int, float*,
                           Fetcher&);

/// The unrolled variants are the head dims 64, 96, 128, 192 and 256.
template <DType kType>
ScoreHead score_function(int steps) {
  if constexpr (kUnrollSteps) {
    switch (steps * 2 * kLanes) {
      case 64: return score_head<kType, 64 / (2 * kLanes)>;
      case 96: return score_head<kType, 96 / (2 * kLanes)>;
      case 128: return score_head<kType, 128 / (2 * kLanes)>;
      case 192: return score_head<kType, 192 / (2 * kLanes)>;
      case 256: return score_head<kType, 256 / (2 * kLanes)>;
      default: break;
    }
  }
  return score_head<kType, 0>;
}
