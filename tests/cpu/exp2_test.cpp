// SPDX-License-Identifier: Apache-2.0
// exp2 as softmax takes it, on each instruction set that this CPU has, against double: the bound of
// docs/numerics.md over the whole range, and what lies beyond its ends.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "cpu/kernels.h"

namespace deuce::cpu {
namespace {

// Bounds of docs/numerics.md.
constexpr double kBound = 0x1p-23, kBoundWithDots = 0x1p-22;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class Exp2 : public ::testing::TestWithParam<const Kernels*> {
 protected:
  float exp2(float x) const {
    std::array<float, kMaxLanes> from, to;
    from.fill(x);
    GetParam()->exp2(from.data(), kMaxLanes, to.data());
    for (const float lane : to) {
      EXPECT_EQ(std::bit_cast<int32_t>(lane), std::bit_cast<int32_t>(to[0])) << x;
    }
    return to[0];
  }
  /// Notes the error of each of these, which are in range.
  void measure(std::vector<float>& xs) {
    while (xs.size() % kMaxLanes != 0) xs.push_back(0);
    std::vector<float> results(xs.size());
    GetParam()->exp2(xs.data(), static_cast<int>(xs.size()), results.data());
    for (std::size_t i = 0; i < xs.size(); ++i) {
      const double exact = std::exp2(static_cast<double>(xs[i]));
      double error = std::fabs(results[i] - exact) / exact;
      if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
      if (error <= worst_) continue;
      worst_ = error;
      where_ = xs[i];
    }
    xs.clear();
  }
  double worst_ = 0;
  float where_ = 0;
};

TEST_P(Exp2, IsWithinItsBoundOverTheWholeRange) {
  constexpr uint32_t kStep = 61;  // of the representations: 9 million arguments
  std::vector<float> xs;
  for (const float end : {-126.0F, 127.0F}) {
    for (uint32_t bits = 0; bits <= std::bit_cast<uint32_t>(std::fabs(end)); bits += kStep) {
      xs.push_back(std::copysign(std::bit_cast<float>(bits), end));
      if (xs.size() == 4096) measure(xs);
    }
  }
  // Where the fraction and the exponent change over, and both ends.
  for (int half = -252; half <= 254; ++half) {
    float x = static_cast<float>(half) / 2;
    for (int i = 0; i < 64; ++i) x = std::nextafter(x, -kInfinity);
    for (int i = 0; i < 128; ++i, x = std::nextafter(x, kInfinity)) {
      if (x >= -126 && x <= 127) xs.push_back(x);
    }
  }
  measure(xs);
  EXPECT_LT(worst_, GetParam()->dots ? kBoundWithDots : kBound) << "at " << where_;
  RecordProperty("worst_error_2e24", std::to_string(worst_ * 0x1p24));
}

TEST_P(Exp2, IsExactAtIntegers) {
  for (int power = -126; power <= 127; ++power) {
    EXPECT_EQ(exp2(static_cast<float>(power)), std::ldexp(1.0F, power)) << power;
  }
}

TEST_P(Exp2, IsZeroBelowTheNormalRangeAndKeepsNan) {
  for (const float x : {std::nextafter(-126.0F, -kInfinity), -126.5F, -127.0F, -149.0F, -1e4F,
                        -0x1p30F, -3e38F, -kInfinity}) {
    EXPECT_EQ(exp2(x), 0) << x;
  }
  EXPECT_TRUE(std::isnan(exp2(std::numeric_limits<float>::quiet_NaN())));
}

INSTANTIATE_TEST_SUITE_P(Cpu, Exp2,
                         ::testing::ValuesIn(available_kernels().begin(),
                                             available_kernels().end()),
                         [](const auto& param) { return std::string(param.param->name); });

}  // namespace
}  // namespace deuce::cpu
