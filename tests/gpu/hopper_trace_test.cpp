// SPDX-License-Identifier: Apache-2.0
// Traces on a GPU: every kernel of the backend also exists with a tracer, at both levels, and what
// it records is read like a trace of the emulator.
#include <gtest/gtest.h>

#include <utility>

#include "cli/traced_case.h"
#include "gpu/device_buffer.h"
#include "gpu/hopper_traced_kernels.h"
#include "support/range_count.h"

namespace deuce::cli {
namespace {

using hopper::kShapes;

template <int... kShape>
std::vector<hopper::TracedFunctions> traced(trace::Level level,
                                            std::integer_sequence<int, kShape...>) {
  return {hopper::traced_functions<kShape>(level)...};
}

// Needs no GPU: what is missing does not link.
TEST(HopperTrace, EveryRowOfTheTableHasAKernelForEachLevel) {
  constexpr std::make_integer_sequence<int, static_cast<int>(kShapes.size())> kRows{};
  const auto edges = traced(trace::Level::edges, kRows), full = traced(trace::Level::full, kRows);
  for (std::size_t row = 0; row < kShapes.size(); ++row) {
    ASSERT_NE(edges[row].launch, nullptr);
    ASSERT_NE(full[row].launch, nullptr);
    EXPECT_NE(edges[row].launch, full[row].launch) << row;
    EXPECT_NE(edges[row].prepare, full[row].prepare) << row;
    for (std::size_t other = 0; other < row; ++other) {
      EXPECT_NE(edges[row].launch, edges[other].launch) << row << " and " << other;
    }
  }
}

TEST(HopperTrace, EveryKernelLeavesATimelineOfBothLevels) {
  DEUCE_NEEDS_HOPPER();
  for (const hopper::Config& shape : kShapes) {
    TraceSettings settings = traced_case(shape);
    for (const trace::Level level : {trace::Level::edges, trace::Level::full}) {
      settings.level = level;
      const Result<Recorded> run = trace_on_hopper(settings);
      ASSERT_TRUE(run.ok()) << run.status().sentence();
      const std::string& name = run.value().kernel->name;
      const trace::Facts& facts = run.value().file.facts;
      EXPECT_FALSE(facts.simulated) << name;
      EXPECT_EQ(facts.score_slots, shape.score_slots) << name;
      EXPECT_GT(facts.cycles, 0) << name;
      EXPECT_GT(facts.untraced_cycles, 0) << name;
      EXPECT_GE(facts.self_cost, 2) << name;
      EXPECT_LE(facts.self_cost, 100) << name;
      const Result<trace::Timeline> timeline = trace::make_timeline(run.value().file);
      ASSERT_TRUE(timeline.ok()) << name << ": " << timeline.status().sentence();
      EXPECT_EQ(timeline.value().dropped, 0U) << name;
      const int softmax = test::range_count(timeline.value(), trace::Event::sm_compute);
      EXPECT_GE(softmax, tiles_of(settings)) << name;
      EXPECT_EQ(test::range_count(timeline.value(), trace::Event::sm_exp) >= softmax,
                level == trace::Level::full)
          << name;
    }
  }
}

TEST(HopperTrace, TheNewestRecordsOfAWarpgroupAreReadToo) {
  DEUCE_NEEDS_HOPPER();
  for (const int rows : {64, 128}) {
    for (const int slots : {1, 2}) {
      const int shape = hopper::select_shape(128, hopper::Element::bf16, rows, false, slots);
      TraceSettings settings = traced_case(kShapes[static_cast<std::size_t>(shape)]);
      settings.spec.kv_len = {200000};
      settings.capacity = 64;
      settings.keeps_newest = true;
      const Result<Recorded> run = trace_on_hopper(settings);
      ASSERT_TRUE(run.ok()) << run.status().sentence();
      const Result<trace::Timeline> timeline = trace::make_timeline(run.value().file);
      ASSERT_TRUE(timeline.ok()) << timeline.status().sentence();
      EXPECT_GT(timeline.value().dropped, 0U);
      EXPECT_GT(test::range_count(timeline.value(), trace::Event::sm_compute), 0);
    }
  }
}

}  // namespace
}  // namespace deuce::cli
