// SPDX-License-Identifier: Apache-2.0
// P14 and P15: any finite score is legal, errors do not grow with length or position, and every
// value of every number format is itself.
#include <cmath>
#include <limits>

#include "kernel/backends.h"
#include "kernel/values.h"

namespace deuce::testing {
namespace {

constexpr int kDim = 64;
using ScoreOf = std::function<float(int64_t position)>;

/// Scores as given: q is a unit vector and the key's first element is the score.
Case scored_case(const std::vector<int64_t>& lengths, ScoreOf score) {
  Case scored = float_case();
  scored.requests = requests_of(lengths);
  scored.softmax_scale = 1;
  scored.content = [score = std::move(score)](char tensor, int32_t, int64_t, int64_t position,
                                              float* row) {
    if (tensor == 'v') return;
    for (int i = 0; i < kDim; ++i) row[i] = 0;
    row[0] = tensor == 'q' ? 1 : score(position);
  };
  return scored;
}

class Numerics : public Backends {};

// Witnesses: flashinfer-ai/flashinfer#4267, ohdearquant/lattice#361. Scores below a finite
// sentinel.
TEST_P(Numerics, OneKeyOfAnyScoreReturnsItsVAndItsScore) {
  for (const float score : {-1e6F, -2.45e5F, -1e30F, 1e30F, 1e2F, -5e4F, 0.0F, -1e-30F}) {
    const Case single = scored_case({1}, [=](int64_t) { return score; });
    const auto outcome = run_or_refuse(subject(), single);
    if (!outcome) return;
    EXPECT_NEAR(lse_values(*outcome)[0] / (score == 0 ? 1 : score), score == 0 ? 0 : 1, 1e-6);
    Instance source(single);
    const auto* v = static_cast<const float*>(source.args.v);
    const int64_t row = source.args.cache_row[0] * source.args.v_stride[0];
    const auto out = output_values(single, *outcome);
    for (int c = 0; c < kDim; ++c) ASSERT_FLOAT_EQ(static_cast<float>(out[c]), v[row + c]);
  }
}

TEST_P(Numerics, TheLargestScoreWinsAtAnyDistance) {
  for (const float size : {1e2F, 1e4F, 1e6F, 1e15F, 1e30F}) {
    for (const int64_t winner : {0, 63, 64, 127, 128, 299}) {
      const Case far =
          scored_case({300}, [=](int64_t position) { return position == winner ? size : -size; });
      const auto outcome = run_or_refuse(subject(), far);
      if (!outcome) return;
      Instance source(far);
      const auto* v = static_cast<const float*>(source.args.v);
      const int64_t row = source.args.cache_row[0] * source.args.v_stride[0] + winner * kDim;
      const auto out = output_values(far, *outcome);
      for (int c = 0; c < kDim; ++c) ASSERT_FLOAT_EQ(static_cast<float>(out[c]), v[row + c]);
    }
  }
}

// A part without a key and a part of nothing but NaN must not be taken for each other in a merge.
TEST_P(Numerics, NanScoresOfAllKeysGiveNanUnderEveryCutting) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t length : {1, 23, 64, 300, 1000}) {
    for (const auto& [num_splits, split_kv_len] :
         {std::pair{0, 0}, {1, 0}, {2, 0}, {7, 0}, {0, 128}}) {
      Case poisoned = scored_case({length}, [](int64_t) { return kNan; });
      poisoned.num_splits = num_splits;
      poisoned.split_kv_len = split_kv_len;
      const auto outcome = run_or_refuse(subject(), poisoned);
      if (!outcome) continue;
      EXPECT_TRUE(std::isnan(lse_values(*outcome)[0])) << length << " keys, " << num_splits;
      for (const double value : output_values(poisoned, *outcome)) {
        ASSERT_TRUE(std::isnan(value)) << length << " keys, " << num_splits << ", " << split_kv_len;
      }
    }
  }
}

TEST_P(Numerics, ScoresOfEveryShapeStayWithinTolerance) {
  const auto log2_step = [](double per_tile) {  // rises by this much in log2 each 128 keys
    return [=](int64_t position) {
      return static_cast<float>(per_tile * 0.6931471805599453 *
                                static_cast<double>(position / 128));
    };
  };
  const std::vector<ScoreOf> shapes{
      [](int64_t) { return 0.0F; },
      [](int64_t) { return -250.0F; },
      [](int64_t position) { return -200.0F - static_cast<float>(position % 101); },
      [](int64_t position) { return position == 1500 ? 80.0F : 0.0F; },
      [](int64_t position) { return position % 2 == 0 ? 20.0F : -20.0F; },
      log2_step(7.9),  // just under the lazy rescale threshold
      log2_step(8.1),  // just over it
      log2_step(-8.1),
      log2_step(0.51),  // never over it at once, far over it in total
  };
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    for (const int32_t num_splits : {0, 1, 5}) {
      Case shaped = scored_case({2000, 1501, 129}, shapes[i]);
      shaped.num_splits = num_splits;
      ASSERT_EQ(check_if_served(subject(), shaped), "") << "shape " << i;
    }
  }
}

// Witness: ggml-org/llama.cpp#12433. Accumulation in fp16 with large V.
TEST_P(Numerics, LargeValuesOfOneSignAreAveragedExactly) {
  for (const int64_t length : {1, 100, 32768}) {
    Case large = scored_case({length}, [](int64_t) { return 1.0F; });
    large.q_dtype = large.kv_dtype = large.out_dtype = DEUCE_F16;
    auto scores = large.content;
    large.content = [scores](char tensor, int32_t request, int64_t head, int64_t position,
                             float* row) {
      scores(tensor, request, head, position, row);
      for (int i = 0; i < kDim && tensor == 'v'; ++i) row[i] = 60000;
    };
    const auto outcome = run_or_refuse(subject(), large);
    if (!outcome) return;
    for (const double value : output_values(large, *outcome)) ASSERT_NEAR(value, 60000, 32);
  }
}

// Witness: vllm-project/vllm#23813. Accumulators that lose bits with the length; V of one sign is
// the worst case for truncation.
TEST_P(Numerics, TheErrorDoesNotGrowWithTheLength) {
  double shortest = 0;
  for (const int64_t length : {1024, 16384, 131072, 524288}) {
    Case one_sign;
    one_sign.head_dim_qk = one_sign.head_dim_v = 16;
    one_sign.out_dtype = DEUCE_F32;
    one_sign.requests = requests_of({length});
    one_sign.group = 2;
    one_sign.k_size = 0.5F;
    one_sign.content = [](char tensor, int32_t, int64_t, int64_t, float* row) {
      for (int i = 0; i < 16 && tensor == 'v'; ++i) row[i] = 1 + std::fabs(row[i]);
    };
    Instance instance(one_sign);
    const Outcome outcome = run(subject(), instance);
    if (outcome.refused()) GTEST_SKIP() << outcome.sentence;
    const reference::Verdict verdict = judge_results(subject(), instance);
    ASSERT_TRUE(verdict.ok) << verdict.first_failure << ", length " << length;
    if (length == 1024) shortest = verdict.max_output_error;
    EXPECT_LE(verdict.max_output_error, 4 * shortest + 2e-6) << "length " << length;
  }
}

// Witness: flashinfer-ai/flashinfer#2896. A ratio whose result is worse than its neighbour's.
TEST_P(Numerics, RatioSevenIsAsGoodAsRatioEight) {
  double errors[2] = {};
  for (const int group : {7, 8}) {
    Case grouped;
    grouped.head_dim_qk = grouped.head_dim_v = 128;
    grouped.out_dtype = DEUCE_F32;
    grouped.requests = requests_of({3000, 500});
    grouped.kv_heads = 4;
    grouped.group = group;
    Instance instance(grouped);
    const Outcome outcome = run(subject(), instance);
    if (outcome.refused()) GTEST_SKIP() << outcome.sentence;
    errors[group - 7] = judge_results(subject(), instance).max_output_error;
  }
  EXPECT_LE(errors[0], 1.5 * errors[1] + 1e-7);
}

// Witness: vllm-project/vllm PR#49077. The NaN byte of e4m3 decoded as 480.
TEST_P(Numerics, EveryByteOfTheFp8FormatsIsItself) {
  for (const int32_t dtype : {DEUCE_E4M3, DEUCE_E5M2}) {
    const reference::NumberFormat format = reference::number_format(DType{dtype});
    deuce_decode_config config;
    deuce_decode_config_init(&config);
    config.backend = subject().backend;
    config.num_q_heads = config.num_kv_heads = 1;
    config.head_dim_qk = config.head_dim_v = kDim;
    config.q_dtype = config.out_dtype = DEUCE_F32;
    config.kv_dtype = dtype;
    config.max_batch = 256;
    config.max_q_len = 1;
    config.max_kv_len = 1;
    config.softmax_scale = 1;
    deuce_decode_plan plan = nullptr;
    const deuce_status planned = deuce_decode_plan_create(&config, &plan);
    if (planned == DEUCE_UNSUPPORTED) GTEST_SKIP() << deuce_last_error();
    ASSERT_EQ(planned, DEUCE_OK) << deuce_last_error();

    std::vector<uint8_t> k(256 * kDim, 0), v(256 * kDim);  // one request a byte
    std::vector<float> q(kDim, 0), out(256 * kDim), lse(256);
    q[0] = 1;
    for (int byte = 0; byte < 256; ++byte) {
      k[byte * kDim] = static_cast<uint8_t>(byte);
      std::fill_n(v.begin() + byte * kDim, kDim, static_cast<uint8_t>(byte));
    }
    for (const bool through_k : {true, false}) {
      const std::vector<uint8_t> zeros(256 * kDim, 0);
      deuce_decode_args args{};
      args.struct_size = sizeof args;
      args.batch = 256;
      args.q_len = 1;
      args.q = q.data();
      args.k = through_k ? k.data() : zeros.data();
      args.v = through_k ? zeros.data() : v.data();
      args.out = out.data();
      args.lse = lse.data();
      args.q_stride[0] = 0;
      args.out_stride[0] = args.k_stride[0] = args.v_stride[0] = kDim;
      args.lse_stride[0] = 1;
      args.kv_len_all = args.cache_slots = 1;
      args.num_pages = 256;
      std::size_t bytes = 0, control = 0;
      deuce_decode_workspace_size(&config, &bytes, &control);
      GuardedBuffer workspace(bytes, 256);
      ASSERT_EQ(deuce_decode_run(plan, &args, workspace.data(), bytes, nullptr), DEUCE_OK)
          << deuce_last_error();
      for (int byte = 0; byte < 256; ++byte) {
        const double expected = reference::decode(static_cast<uint32_t>(byte), format);
        const double found = through_k ? lse[byte] : out[byte * kDim];
        if (std::isfinite(expected)) {
          EXPECT_NEAR(found, expected, 1e-6 * std::fabs(expected)) << "byte " << byte;
        } else {
          EXPECT_FALSE(std::isfinite(found)) << "byte " << byte << " became " << found;
        }
      }
    }
    deuce_decode_plan_destroy(plan);
  }
}

DEUCE_ON_EVERY_BACKEND(Numerics);

}  // namespace
}  // namespace deuce::testing
