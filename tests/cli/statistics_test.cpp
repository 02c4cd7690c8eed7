// SPDX-License-Identifier: Apache-2.0
// Sampling: when it stops, and that one late sample moves neither median nor noise.
#include "statistics.h"

#include <gtest/gtest.h>

namespace deuce::cli {
namespace {

/// Hands out the values in turn.
std::function<Result<Timed>()> cycle(std::vector<double> values) {
  return [values, next = std::size_t{0}]() mutable -> Result<Timed> {
    const double value = values[next++ % values.size()];
    return Timed{value, value};
  };
}

constexpr SamplingLimits kLimits{
    .fewest = 10, .most = 1000, .shortest_s = 0, .longest_s = 1e9, .noise = 0.01};

TEST(Sampling, StopsAsSoonAsTheMedianIsKnown) {
  const auto samples = collect(kLimits, cycle({1.0}));
  EXPECT_EQ(samples.value().sorted_s.size(), 10U);
  EXPECT_TRUE(samples.value().settled);
  EXPECT_EQ(samples.value().median(), 1.0);
}

TEST(Sampling, GoesOnWhileItIsNoisy) {
  const auto samples = collect(kLimits, cycle({1.0, 1.02, 1.04, 1.06, 1.08, 1.1}));
  EXPECT_TRUE(samples.value().settled);
  EXPECT_GT(samples.value().sorted_s.size(), 15U);
  EXPECT_LE(samples.value().noise(), 0.01);
}

TEST(Sampling, SaysWhenTimeIsUpBeforeTheNoiseIsLow) {
  SamplingLimits limits = kLimits;
  limits.longest_s = 30;
  const auto samples = collect(limits, cycle({1.0, 2.0}));
  EXPECT_FALSE(samples.value().settled);
  EXPECT_EQ(samples.value().sorted_s.size(), 20U);
}

TEST(Sampling, IsNotMovedByOneLateSample) {
  std::vector<double> values(99, 1.0);
  values.push_back(1000);
  Samples samples;
  samples.sorted_s = values;
  EXPECT_EQ(samples.median(), 1.0);
  EXPECT_EQ(samples.noise(), 0.0);
  EXPECT_EQ(samples.quantile(1.0), 1000);
}

TEST(Sampling, InterpolatesQuantiles) {
  Samples samples;
  samples.sorted_s = {1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(samples.median(), 2.5);
  EXPECT_DOUBLE_EQ(samples.quantile(0.1), 1.3);
}

TEST(Sampling, PassesAFailureOn) {
  const auto samples = collect(kLimits, []() -> Result<Timed> { return invalid("x", "broken"); });
  ASSERT_FALSE(samples.ok());
  EXPECT_EQ(samples.status().sentence(), "broken");
}

TEST(Sampling, ThrottledSamplesAreCountedAndDropped) {
  int number = 0;
  const auto samples = collect(kLimits, [&]() -> Result<Timed> {
    const bool throttled = ++number % 2 == 0;
    return Timed{.seconds = throttled ? 9.0 : 1.0, .spent_s = 1e-6, .throttled = throttled};
  });
  ASSERT_TRUE(samples.ok());
  EXPECT_EQ(samples.value().throttled, samples.value().sorted_s.size() - 1);
  EXPECT_EQ(samples.value().quantile(1), 1.0);
}

}  // namespace
}  // namespace deuce::cli
