// SPDX-License-Identifier: Apache-2.0
// The ranges of the drawn problems.
#include "gpu/random_spec.h"

namespace deuce::test {
namespace {

template <class T>
T pick(std::mt19937_64& random, std::initializer_list<T> values) {
  return values.begin()[random() % values.size()];
}

}  // namespace

CaseSpec random_spec(uint64_t seed) {
  std::mt19937_64 random(seed);
  CaseSpec spec;
  spec.seed = seed;
  spec.head_dim = pick(random, {64, 128});
  spec.kv_heads = pick(random, {1, 2, 3, 8});
  spec.group = pick(random, {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24});
  spec.q_dtype = pick<int32_t>(random, {DEUCE_BF16, DEUCE_F16});
  spec.kv_dtype = random() % 3 == 0 ? DEUCE_E4M3 : spec.q_dtype;
  spec.out_dtype = pick<int32_t>(random, {0, 0, DEUCE_F32, DEUCE_BF16, DEUCE_F16});
  spec.page_size = pick(random, {0, 0, 8, 16, 16, 32, 64, 128, 24, 3, 1});
  spec.layout = pick(random, {Layout::nhd, Layout::hnd, Layout::interleaved});
  spec.q_len = pick(random, {1, 1, 1, 2, 3, 4, 8, 17});
  spec.causal = random() % 2 == 0;
  spec.indptr_style = spec.page_size > 0 && random() % 3 == 0;
  spec.rows_by_index = spec.page_size == 0 && random() % 2 == 0;
  spec.ragged_rows = random() % 4 == 0;
  spec.starts = random() % 4 == 0;
  spec.sinks = random() % 3 == 0;
  spec.descales = spec.kv_dtype == DEUCE_E4M3 && random() % 2 == 0;
  spec.lse_base2 = random() % 4 == 0;
  spec.lse = random() % 4 != 0;
  if (random() % 3 == 0) spec.window_left = static_cast<int32_t>(random() % 200);
  if (random() % 6 == 0) spec.window_right = static_cast<int32_t>(random() % 8);
  if (random() % 4 == 0) spec.softcap = pick(random, {1.0F, 10.0F, 50.0F});
  if (random() % 4 == 0) spec.num_splits = pick(random, {1, 2, 5, 16, 33});
  if (spec.num_splits == 0 && random() % 4 == 0) {
    spec.split_kv_len = pick(random, {128, 256, 512});
  }
  if (random() % 4 == 0) spec.softmax_scale = pick(random, {-0.1F, 0.5F, 1e-3F});
  spec.lengths.resize(1 + random() % 6);
  for (int32_t& length : spec.lengths) {
    length =
        random() % 8 == 0 ? 0 : static_cast<int32_t>(random() % pick(random, {5, 70, 400, 1500}));
  }
  return spec;
}

}  // namespace deuce::test
