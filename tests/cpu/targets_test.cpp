// SPDX-License-Identifier: Apache-2.0
// The whole frame on each instruction set that this CPU has: the SIMD targets and plain C++ must
// pass the same judge.
#include <gtest/gtest.h>

#include "cpu/kernels.h"
#include "support/subject.h"

namespace deuce::cpu {
namespace {

using testing::Case;
using testing::Subject;

class Targets : public ::testing::TestWithParam<const Kernels*> {
 protected:
  void SetUp() override { ASSERT_TRUE(force_kernels(GetParam()->name)); }
  void TearDown() override { ASSERT_TRUE(force_kernels(nullptr)); }
  const Subject subject_{.name = "cpu", .backend = DEUCE_BACKEND_CPU};
};

TEST_P(Targets, DrawnCasesAreExactWithinTolerance) {
  const testing::Property property = [](const Subject& subject, const Case& from) {
    return testing::check_frame(subject, from);
  };
  int refused_cases = 0;
  for (uint64_t seed = 5000; seed < 5200; ++seed) {
    const Case drawn = testing::draw_case(seed, 1e6);
    bool refused = false;
    const std::string failure = testing::check_frame(subject_, drawn, &refused);
    ASSERT_EQ(failure, "") << testing::shrink(subject_, drawn, property);
    refused_cases += refused ? 1 : 0;
  }
  EXPECT_LT(refused_cases, 100) << "hardly anything was computed";
}

// Every head dim the backend names, so also those whose last step is only partly filled.
TEST_P(Targets, EveryHeadDimensionAndTypeOfCacheIsExactWithinTolerance) {
  for (int32_t type : {DEUCE_F32, DEUCE_F16, DEUCE_BF16, DEUCE_E4M3, DEUCE_E5M2}) {
    for (int32_t head_dim = 16; head_dim <= 256; head_dim += 8) {
      Case from;
      from.seed = static_cast<uint64_t>(head_dim);
      from.requests = {{.kv_len = 77, .name = 1}, {.kv_len = 5, .name = 2}};
      from.kv_heads = 2;
      from.group = 3;
      from.head_dim_qk = head_dim;
      from.head_dim_v = 272 - head_dim;
      from.kv_dtype = type;
      EXPECT_EQ(testing::check_frame(subject_, from), "") << testing::describe(from);
    }
  }
}

/// Numbers at the ends of the range whose scores and outputs are ordinary: every other key scores
/// 64 q k factor, the rest minus that.
struct Extremes {
  const char* what;
  int32_t type;
  float q, k, v, factor;
  float out_scale = 1, softcap = 0;
};

constexpr Extremes kExtremes[] = {
    {"products below the normal range", DEUCE_BF16, 0x1p-66F, 0x1p-66F, 1, 0x1p127F},
    {"the same of fp32", DEUCE_F32, 0x1p-66F, 0x1p-66F, 1, 0x1p127F},
    {"the same with a cap", DEUCE_BF16, 0x1p-66F, 0x1p-66F, 1, 0x1p126F, 1, 3},
    {"keys below the normal range", DEUCE_BF16, 0x1p100F, 0x1.8p-130F, 1, 0x1p24F},
    {"keys and ordinary queries", DEUCE_BF16, 0x1p-2F, 0x1.8p-130F, 1, 0x1p126F},
    {"queries below the normal range", DEUCE_BF16, 0x1.8p-130F, 0x1p100F, 1, 0x1p24F},
    {"values below the normal range", DEUCE_BF16, 1, 1, 0x1.8p-130F, 0x1p-6F, 0x1p120F},
    {"values below the normal range with dots", DEUCE_BF16, 1, 1, 0x1.8p-130F, 0x1p-6F, 0x1p59F},
    {"queries times factor above the range", DEUCE_F32, 0x1p100F, 0x1p-105F, 1, 0x1p40F},
    {"the same of bf16", DEUCE_BF16, 0x1p100F, 0x1p-105F, 1, 0x1p40F},
    {"the same with a cap", DEUCE_F32, 0x1p100F, 0x1p-145F, 1, 0x1p40F, 1, 5},
};

Case extreme_case(const Extremes& of) {
  Case from;
  from.requests = {{.kv_len = 200, .name = 1}, {.kv_len = 7, .name = 2}};
  from.kv_heads = 2;
  from.group = 3;
  from.q_dtype = from.kv_dtype = from.out_dtype = of.type;
  from.softmax_scale = of.factor;
  from.softcap = of.softcap;
  from.out_scale = of.out_scale;
  from.content = [of](char tensor, int32_t, int64_t, int64_t position, float* row) {
    for (int i = 0; i < 64; ++i) {
      if (tensor == 'q') row[i] = of.q;
      if (tensor == 'k') row[i] = position % 2 == 0 ? of.k : -of.k;
      if (tensor == 'v') row[i] *= of.v;
    }
  };
  return from;
}

TEST_P(Targets, NumbersAtTheEndsOfTheRangeAreExactWithinTolerance) {
  for (const Extremes& extremes : kExtremes) {
    const Case from = extreme_case(extremes);
    EXPECT_EQ(testing::check_frame(subject_, from), "")
        << extremes.what << ", type " << extremes.type << "\n  " << testing::describe(from);
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Targets,
                         ::testing::ValuesIn(available_kernels().begin(),
                                             available_kernels().end()),
                         [](const auto& param) { return std::string(param.param->name); });

TEST(Target, ThePlainOneIsAlwaysThereAndLast) {
  ASSERT_FALSE(available_kernels().empty());
  EXPECT_STREQ(available_kernels().back()->name, "scalar");
}

TEST(Target, AnUnknownNameChangesNothing) {
  const Kernels* before = &chosen_kernels();
  EXPECT_FALSE(force_kernels("mmx"));
  EXPECT_EQ(&chosen_kernels(), before);
}

}  // namespace
}  // namespace deuce::cpu
