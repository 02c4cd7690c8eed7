// SPDX-License-Identifier: Apache-2.0
// Axes as users write them, and the straight line through a sweep.
#include "axes.h"

#include <gtest/gtest.h>

#include "fit.h"

namespace deuce::cli {
namespace {

std::vector<int64_t> axis(const char* text) {
  const auto values = parse_axis(text, 0, 1 << 20);
  EXPECT_TRUE(values.ok()) << text << ": " << values.status().sentence();
  return values.ok() ? values.value() : std::vector<int64_t>{};
}

TEST(Axis, ReadsListsRangesAndSuffixes) {
  EXPECT_EQ(axis("8"), (std::vector<int64_t>{8}));
  EXPECT_EQ(axis("1,8"), (std::vector<int64_t>{1, 8}));
  EXPECT_EQ(axis("1k:8k:x2"), (std::vector<int64_t>{1024, 2048, 4096, 8192}));
  EXPECT_EQ(axis("1m"), (std::vector<int64_t>{1 << 20}));
  EXPECT_EQ(axis("1..4"), (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(axis("0:64:+16"), (std::vector<int64_t>{0, 16, 32, 48, 64}));
  EXPECT_EQ(axis("3,1..2,8:20:x2"), (std::vector<int64_t>{3, 1, 2, 8, 16}));
  EXPECT_EQ(axis("5:5:x3"), (std::vector<int64_t>{5}));
}

TEST(Axis, RefusesByTheTextAtFault) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "'' is not an integer"},
      {"8,", "'' is not an integer"},
      {"1kk", "'1k' is not an integer"},
      {"2m", "'2m' is outside 0 .. 1048576"},
      {"-1", "'-1' is outside 0 .. 1048576"},
      {"4..1", "'1' is outside 4 .. 1048576"},
      {"1:4", "'' is no step of a range: x2 multiplies, +16 adds"},
      {"1:4:x1", "'1' is outside 2 .. 1099511627776"},
      {"0:4:x2", "'0:4:x2': a range that multiplies cannot start at 0"},
      {"0..1m", "'0..1m' gives more than 4096 values"},
  };
  for (const auto& [text, sentence] : wrong) {
    EXPECT_EQ(parse_axis(text, 0, 1 << 20).status().sentence(), sentence) << text;
  }
}

TEST(Axis, ReadsHeadPairs) {
  const auto heads = parse_heads("16:1,32:8");
  ASSERT_TRUE(heads.ok());
  ASSERT_EQ(heads.value().size(), 2U);
  EXPECT_EQ(heads.value()[1].q, 32);
  EXPECT_EQ(heads.value()[1].kv, 8);
  EXPECT_FALSE(parse_heads("16:3").ok());
  EXPECT_FALSE(parse_heads("16:1,").ok());
  EXPECT_FALSE(parse_heads("16:1:1").ok());
}

TEST(Fit, FindsTheLineBehindItsPoints) {
  std::vector<TimePoint> points;
  for (const double bytes : {1e6, 4e6, 16e6, 64e6, 256e6})
    points.push_back({bytes, 2e-6 + bytes / 4e12});
  const BandwidthFit fit = fit_line(points);
  EXPECT_NEAR(fit.t0_s, 2e-6, 1e-12);
  EXPECT_NEAR(fit.bytes_per_s, 4e12, 1e6);
  EXPECT_LT(fit.worst_residual, 1e-9);
}

TEST(Fit, WeighsShortAndLongPointsAlike) {
  // 10 % off at the long end must not swamp T0, which the short points know.
  std::vector<TimePoint> points;
  for (const double bytes : {1e6, 2e6, 4e6, 8e6}) points.push_back({bytes, 2e-6 + bytes / 4e12});
  points.push_back({1e9, 1.1 * (2e-6 + 1e9 / 4e12)});
  const BandwidthFit fit = fit_line(points);
  EXPECT_NEAR(fit.t0_s, 2e-6, 0.1e-6);
  EXPECT_GT(fit.worst_residual, 0.01);
}

TEST(Fit, SaysNothingWhereTimeDoesNotGrow) {
  EXPECT_EQ(fit_line({{1, 5}, {2, 5}, {3, 5}}).bytes_per_s, 0);
  EXPECT_EQ(fit_line({{1, 5}, {1, 5}}).bytes_per_s, 0);
}

}  // namespace
}  // namespace deuce::cli
