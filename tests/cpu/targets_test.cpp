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
