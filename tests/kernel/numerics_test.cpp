// SPDX-License-Identifier: Apache-2.0
// P14 and P15: any finite score is legal, errors do not grow with length or position, and every
// value of every number format is itself.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernel/backends.h"
#include "kernel/values.h"
#include "support/content.h"

namespace deuce::testing {
namespace {

constexpr int kDim = 64;
using ScoreOf = std::function<float(int64_t position)>;

/// fp32 for a backend's full accuracy, the others because GPU kernels and the emulator serve them.
constexpr int32_t kTypes[] = {DEUCE_F32, DEUCE_F16, DEUCE_BF16};

/// Scores size * unit(position), exact in every type if unit is: q is a unit vector, the key's
/// first element is unit, and the factor makes the size.
Case scored_case(int32_t type, const std::vector<int64_t>& lengths, float size, ScoreOf unit) {
  Case scored;
  scored.q_dtype = scored.kv_dtype = scored.out_dtype = type;
  scored.requests = requests_of(lengths);
  scored.softmax_scale = size;
  scored.content = [unit = std::move(unit)](char tensor, int32_t, int64_t, int64_t position,
                                            float* row) {
    if (tensor == 'v') return;
    for (int i = 0; i < kDim; ++i) row[i] = 0;
    row[0] = tensor == 'q' ? 1 : unit(position);
  };
  return scored;
}
Case scored_case(const std::vector<int64_t>& lengths, ScoreOf score) {
  return scored_case(DEUCE_F32, lengths, 1, std::move(score));
}

/// V of one key of the first request of `source`, KV head 0.
std::vector<double> v_row(const Case& from, const Instance& source, int64_t key) {
  const int64_t row = source.args.cache_row[0] * source.args.v_stride[0] + key * kDim;
  std::vector<double> values(kDim);
  for (int c = 0; c < kDim; ++c) values[c] = element(from.kv_dtype, source.args.v, row + c);
  return values;
}

/// The keys first .. last - 1 share the weight, all others have none.
void expect_mean(const Case& from, const Outcome& outcome, int64_t first, int64_t last) {
  const Instance source(from);
  const auto count = static_cast<double>(last - first);
  std::vector<double> mean(kDim, 0), magnitude(kDim, 0);
  for (int64_t key = first; key < last; ++key) {
    const std::vector<double> v = v_row(from, source, key);
    for (int c = 0; c < kDim; ++c) {
      mean[c] += v[c] / count;
      magnitude[c] += std::fabs(v[c]) / count;
    }
  }
  const std::vector<double> out = output_values(from, outcome);
  for (int c = 0; c < kDim; ++c) ASSERT_NEAR(out[c], mean[c], 0x1p-8 * magnitude[c]) << c;
}

class Numerics : public Backends {};

// Witnesses: flashinfer-ai/flashinfer#4267, ohdearquant/lattice#361. Scores below a finite
// sentinel.
TEST_P(Numerics, OneKeyOfAnyScoreReturnsItsVAndItsScore) {
  for (const int32_t type : kTypes) {
    for (const float score :
         {-1e6F, -2.45e5F, -1e30F, 1e30F, 3e9F, -7e9F, 2.3e38F, 1e2F, -5e4F, 0.0F, -1e-30F}) {
      const float unit = score < 0 ? -1.0F : score > 0 ? 1.0F : 0.0F;
      const Case single =
          scored_case(type, {1}, score == 0 ? 1 : std::fabs(score), [=](int64_t) { return unit; });
      const auto outcome = run_or_refuse(subject(), single);
      if (!outcome) break;
      EXPECT_NEAR(lse_values(*outcome)[0] / (score == 0 ? 1 : score), score == 0 ? 0 : 1, 1e-6);
      EXPECT_EQ(output_values(single, *outcome), v_row(single, Instance(single), 0)) << score;
    }
  }
}

TEST_P(Numerics, TheLargestScoreWinsAtAnyDistance) {
  for (const int32_t type : kTypes) {
    for (const float size : {1e2F, 1e4F, 1e6F, 5e8F, 2e9F, 1e15F, 1e30F, 2.3e38F}) {
      for (const int64_t winner : {0, 63, 64, 127, 128, 299}) {
        const Case far = scored_case(
            type, {300}, size, [=](int64_t position) { return position == winner ? 1.0F : -1.0F; });
        const auto outcome = run_or_refuse(subject(), far);
        if (!outcome) break;
        ASSERT_EQ(output_values(far, *outcome), v_row(far, Instance(far), winner))
            << size << ", key " << winner;
      }
    }
  }
}

// Far from zero, neighbouring scores lie whole powers of two apart, and so may their products with
// the factor. Keys of the largest score share the weight, all others have none.
TEST_P(Numerics, NeighboursOfAHugeScoreAreToldApart) {
  for (const int32_t type : kTypes) {
    for (const float size : {3e9F, -3e9F, 1.7e10F, 1e12F, -1e30F}) {
      // Two binades: rising over the tiles, falling, and the same for all.
      for (const int shape : {0, 1, 2}) {
        const auto unit = [=](int64_t position) {
          const auto step = static_cast<float>(position / 3);  // three keys of each score
          const float magnitude = shape == 0   ? 1 + step / 128
                                  : shape == 1 ? 2 - step / 128
                                               : 1.3984375F;
          return size < 0 ? -magnitude : magnitude;
        };
        const int64_t length = 384;
        Case far = scored_case(type, {length}, size, unit);
        far.num_splits = shape == 2 ? 0 : 1;  // one worker for all tiles
        const auto outcome = run_or_refuse(subject(), far);
        if (!outcome) break;
        const int64_t first = shape == 0 ? length - 3 : 0, last = shape == 1 ? 3 : length;
        SCOPED_TRACE(fmt::format("size {}, shape {}", size, shape));
        expect_mean(far, *outcome, first, last);
      }
    }
  }
}

// The maximum of a row moves from near zero to far from it while tiles pass; in one piece too, so
// that one worker carries it through all of them.
TEST_P(Numerics, ScoresThatGrowFromNothingToHugeEndAtTheLast) {
  for (const int32_t type : kTypes) {
    for (const auto& [length, num_splits] :
         {std::pair{129, 0}, {500, 0}, {1000, 0}, {1000, 1}, {1000, 3}, {5000, 1}}) {
      Case growing = scored_case(type, {length}, 1e20F, [length = length](int64_t position) {
        return std::exp2(static_cast<float>((position - length + 1) / 8));
      });
      growing.num_splits = num_splits;
      const auto outcome = run_or_refuse(subject(), growing);
      if (!outcome) break;
      expect_mean(growing, *outcome, length - 8, length);
      EXPECT_NEAR(lse_values(*outcome)[0] / 1e20, 1, 1e-6) << length;
    }
  }
}

// A part without a key and a part of nothing but NaN must not be taken for each other in a merge.
TEST_P(Numerics, NanScoresOfAllKeysGiveNanUnderEveryCutting) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [type, length] : {std::pair{DEUCE_F32, 1},
                                     {DEUCE_F32, 23},
                                     {DEUCE_F32, 64},
                                     {DEUCE_F32, 300},
                                     {DEUCE_F32, 1000},
                                     {DEUCE_BF16, 1},
                                     {DEUCE_BF16, 300},
                                     {DEUCE_F16, 1000}}) {
    for (const auto& [num_splits, split_kv_len] :
         {std::pair{0, 0}, {1, 0}, {2, 0}, {7, 0}, {0, 128}}) {
      Case poisoned = scored_case(type, {length}, 1, [](int64_t) { return kNan; });
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
    for (const int32_t type : kTypes) {
      for (const int32_t num_splits : {0, 1, 5}) {
        Case shaped = scored_case(type, {2000, 1501, 129}, 1, shapes[i]);
        shaped.num_splits = num_splits;
        ASSERT_EQ(check_if_served(subject(), shaped), "") << "shape " << i << ", type " << type;
      }
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
    one_sign.out_dtype = DEUCE_F32;  // refused by GPU kernels and emulator: 16 bits show less
    one_sign.requests = requests_of({length});
    one_sign.group = 2;
    one_sign.k_size = 0.5F;
    one_sign.content = [](char tensor, int32_t, int64_t, int64_t, float* row) {
      for (int i = 0; i < 16 && tensor == 'v'; ++i) row[i] = 1 + std::fabs(row[i]);
    };
    Instance instance(one_sign);
    const Outcome outcome = run(subject(), instance);
    if (outcome.refused()) return;
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
    if (outcome.refused()) return;
    errors[group - 7] = judge_results(subject(), instance).max_output_error;
  }
  EXPECT_LE(errors[0], 1.5 * errors[1] + 1e-7);
}

// Witness: vllm-project/vllm PR#49077. The NaN byte of e4m3 decoded as 480.
TEST_P(Numerics, EveryByteOfTheFp8FormatsIsItself) {
  if (leaves_out(subject().device != nullptr, "all")) GTEST_SKIP() << "its tensors lie on the host";
  for (const int32_t dtype : {DEUCE_E4M3, DEUCE_E5M2}) {
    const reference::NumberFormat format = reference::number_format(DType{dtype});
    deuce_decode_config config;
    deuce_decode_config_init(&config);
    config.backend = subject().backend;
    config.emulated_backend = subject().emulated_backend;
    config.num_q_heads = config.num_kv_heads = 1;
    config.head_dim_qk = config.head_dim_v = kDim;
    config.q_dtype = subject().is_gpu_kernel() ? DEUCE_F16 : DEUCE_F32;
    config.out_dtype = DEUCE_F32;
    config.kv_dtype = dtype;
    config.max_batch = 256;
    config.max_q_len = 1;
    config.max_kv_len = 1;
    config.softmax_scale = 1;
    deuce_decode_plan plan = nullptr;
    const deuce_status planned = deuce_decode_plan_create(&config, &plan);
    served_cases().note(planned);
    if (planned == DEUCE_UNSUPPORTED) continue;
    ASSERT_EQ(planned, DEUCE_OK) << deuce_last_error();

    std::vector<uint8_t> k(256 * kDim, 0), v(256 * kDim);  // one request a byte
    std::vector<float> out(256 * kDim), lse(256);
    float unit[kDim] = {1};
    alignas(16) std::byte q[sizeof unit];
    store_elements(config.q_dtype, q, unit, kDim);
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
      args.q = q;
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
