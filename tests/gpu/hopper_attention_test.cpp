// SPDX-License-Identifier: Apache-2.0
// The Hopper kernel against the double-precision reference, on a GPU.
// One named test per feature, then a random grid over all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "gpu/gpu_case.h"
#include "gpu/random_spec.h"

namespace deuce::test {
namespace {

void expect_right(const CaseSpec& spec) {
  GpuCase problem(spec);
  EXPECT_EQ(problem.disagreement(), "");
}

TEST(HopperAttention, ContiguousCacheOfOneRequest) {
  DEUCE_NEEDS_HOPPER();
  expect_right({.page_size = 0, .lengths = {64}});
  expect_right({.page_size = 0, .lengths = {1000}});
}

TEST(HopperAttention, RaggedLengthsWithShuffledPagesOfEverySize) {
  DEUCE_NEEDS_HOPPER();
  for (int page : {8, 16, 32, 64, 128, 256, 24, 48, 1, 2, 3, 4, 5, 7, 20}) {
    expect_right({.seed = 1, .page_size = page});
  }
}

TEST(HopperAttention, HeadMajorAndInterleavedCaches) {
  DEUCE_NEEDS_HOPPER();
  for (Layout layout : {Layout::hnd, Layout::interleaved}) {
    expect_right({.seed = 2, .layout = layout});
    expect_right({.seed = 2, .page_size = 0, .layout = layout});
  }
}

TEST(HopperAttention, HeadDim64AndHalfPrecision) {
  DEUCE_NEEDS_HOPPER();
  for (int dim : {64, 128}) {
    for (int32_t type : {DEUCE_BF16, DEUCE_F16}) {
      expect_right({.seed = 3, .head_dim = dim, .q_dtype = type, .kv_dtype = type});
    }
  }
}

TEST(HopperAttention, Fp8CacheWithDescales) {
  DEUCE_NEEDS_HOPPER();
  for (int dim : {64, 128}) {
    for (int32_t type : {DEUCE_BF16, DEUCE_F16}) {
      expect_right(
          {.seed = 4, .head_dim = dim, .q_dtype = type, .kv_dtype = DEUCE_E4M3, .descales = true});
    }
  }
}

TEST(HopperAttention, CausalRowsOfSeveralTokens) {
  DEUCE_NEEDS_HOPPER();
  for (int q_len : {2, 4, 5, 8, 16, 40}) {
    expect_right({.seed = 5, .causal = true, .q_len = q_len});
  }
}

TEST(HopperAttention, WindowsNearTileAndPageBorders) {
  DEUCE_NEEDS_HOPPER();
  for (int left : {0, 1, 15, 16, 63, 64, 127, 128, 1000000000}) {
    expect_right({.seed = 6, .causal = true, .q_len = 3, .window_left = left});
    expect_right({.seed = 6, .q_len = 3, .window_left = left, .window_right = 1});
  }
}

TEST(HopperAttention, SoftcapSinksAndNegativeScale) {
  DEUCE_NEEDS_HOPPER();
  expect_right({.seed = 7, .softcap = 5});
  expect_right({.seed = 7, .sinks = true});
  expect_right({.seed = 7, .sinks = true, .softcap = 2, .softmax_scale = -0.2F});
  expect_right({.seed = 7, .lse_base2 = true, .softmax_scale = 2.0F});
}

TEST(HopperAttention, TableStylesStartsAndRaggedRows) {
  DEUCE_NEEDS_HOPPER();
  expect_right({.seed = 8, .indptr_style = true});
  expect_right({.seed = 8, .starts = true});
  expect_right({.seed = 8, .page_size = 0, .starts = true, .rows_by_index = true});
  expect_right({.seed = 8, .ragged_rows = true, .causal = true, .q_len = 6});
}

TEST(HopperAttention, OneLongRequestIsSplitOverAllSms) {
  DEUCE_NEEDS_HOPPER();
  expect_right({.seed = 9, .kv_heads = 1, .lengths = {40000}});
  expect_right({.seed = 9, .kv_heads = 1, .page_size = 0, .lengths = {9000, 3}});
}

TEST(HopperAttention, FixedNumbersOfSplits) {
  DEUCE_NEEDS_HOPPER();
  for (int splits : {1, 2, 3, 7, 16, 17, 40, 256}) {
    expect_right({.seed = 11, .lengths = {5000, 0, 64, 130, 700}, .num_splits = splits});
    expect_right({.seed = 11, .causal = true, .q_len = 20, .num_splits = splits});
  }
}

TEST(HopperAttention, SplitsAtFixedBorders) {
  DEUCE_NEEDS_HOPPER();
  for (int length : {128, 256, 384, 1024}) {
    expect_right({.seed = 12, .lengths = {5000, 0, 64, 130, 700}, .split_kv_len = length});
    expect_right({.seed = 12, .kv_heads = 1, .lengths = {40000}, .split_kv_len = length});
    expect_right({.seed = 12, .causal = true, .starts = true, .q_len = 20, .split_kv_len = length});
    expect_right({.seed = 12,
                  .causal = true,
                  .window_left = 300,
                  .lengths = {5000, 1100, 3},
                  .split_kv_len = length});
  }
}

/// Bytes of a request's output and LSE rows.
std::vector<uint8_t> rows_of(const std::vector<uint8_t>& result, int request, int batch,
                             std::size_t out_bytes, std::size_t lse_bytes) {
  std::vector<uint8_t> rows;
  std::copy_n(result.begin() + request * out_bytes, out_bytes, std::back_inserter(rows));
  std::copy_n(result.begin() + batch * out_bytes + request * lse_bytes, lse_bytes,
              std::back_inserter(rows));
  return rows;
}

TEST(HopperAttention, SplitKvLenMakesBitsIndependentOfBatchAndGrid) {
  DEUCE_NEEDS_HOPPER();
  CaseSpec spec{.seed = 13, .kv_heads = 1, .lengths = {9000, 3000, 500, 20000}};
  spec.split_kv_len = 256;
  constexpr std::size_t kRows = 4, kOut = kRows * 128 * 2, kLse = kRows * 4;
  GpuCase problem(spec);
  const std::vector<uint8_t> wanted = rows_of(problem.run_on_gpu(), 0, 4, kOut, kLse);
  problem.set_lengths({9000, 1, 0, 64});  // other company, other shares
  EXPECT_EQ(rows_of(problem.run_on_gpu(), 0, 4, kOut, kLse), wanted);
  spec.sm_margin = 97;
  GpuCase fewer(spec);
  EXPECT_EQ(rows_of(fewer.run_on_gpu(), 0, 4, kOut, kLse), wanted);
}

TEST(HopperAttention, ManyShortRequests) {
  DEUCE_NEEDS_HOPPER();
  CaseSpec spec{.seed = 14, .kv_heads = 8};
  for (int i = 0; i < 64; ++i) spec.lengths.push_back(1 + 37 * i % 400);
  expect_right(spec);
}

TEST(HopperAttention, RepeatsBitForBit) {
  DEUCE_NEEDS_HOPPER();
  GpuCase problem({.seed = 10, .sinks = true, .lengths = {3000, 70, 5000, 0, 64, 1}});
  const std::vector<uint8_t> first = problem.run_on_gpu();
  for (int i = 0; i < 50; ++i) ASSERT_EQ(problem.run_on_gpu(), first) << "run " << i;
}

TEST(HopperAttention, RandomProblems) {
  DEUCE_NEEDS_HOPPER();
  const char* wanted = std::getenv("DEUCE_GPU_CASES");
  const int cases = wanted != nullptr ? std::atoi(wanted) : 200;
  const char* first_seed = std::getenv("DEUCE_GPU_SEED");
  const int first = first_seed != nullptr ? std::atoi(first_seed) : 1000;
  int failures = 0;
  for (int i = first; i < first + cases && failures < 20; ++i) {
    const CaseSpec spec = random_spec(i);
    SCOPED_TRACE(spec.text());
    if (cases == 1) std::fprintf(stderr, "%s\n", spec.text().c_str());
    GpuCase problem(spec);
    const std::string text = problem.disagreement();
    EXPECT_EQ(text, "");
    failures += text.empty() ? 0 : 1;
  }
}

}  // namespace
}  // namespace deuce::test
