// SPDX-License-Identifier: Apache-2.0
// The timing model says in which order things run before it says how long they take. All figures
// are simulated; the published ones are those of the S/P ping-pong article and of FlashAttention-4
// on a B200.
#include "emulator/timing_report.h"

#include <gtest/gtest.h>

#include "emulator/blackwell.h"
#include "emulator/decode_case.h"
#include "plan/blackwell_params.h"

namespace deuce::emulator {
namespace {

TimingReport predict(int head_dim, int rows) {
  const Result<TimingReport> report = predict_timing(head_dim, rows);
  EXPECT_TRUE(report.ok());
  return report.value();
}

double best(const SlotTiming& timing) { return timing.cycles_per_block[1]; }

TEST(Timing, PingPongHidesScoresUnderSoftmaxAndTheBasePathDoesNot) {
  for (const int head_dim : {64, 128}) {
    const TimingReport report = predict(head_dim, 16);
    EXPECT_EQ(report.slots[0].overlap, 0) << "QK starts before softmax of the block before ends";
    // At head dim 128 the second slot is bound by memory: QK waits for its K tile.
    if (head_dim == 64) {
      EXPECT_GT(report.slots[1].overlap, 0.7);
    }
    EXPECT_LT(best(report.slots[1]), best(report.slots[0]));
    for (const SlotTiming& timing : report.slots) {
      EXPECT_LE(timing.cycles_per_block[0], timing.cycles_per_block[1] + 1);
      EXPECT_LE(timing.cycles_per_block[1], timing.cycles_per_block[2] + 1);
    }
  }
}

// Published: up to 16 % at head dim 64, 9 to 15 % at 128.
TEST(Timing, GainOfTheSecondSlotLiesNearWhatWasPublished) {
  const TimingReport narrow = predict(64, 16), wide = predict(128, 16);
  EXPECT_GT(narrow.gain_percent(narrow.slots[1]), 10);
  EXPECT_LT(narrow.gain_percent(narrow.slots[1]), 20);
  EXPECT_GT(wide.gain_percent(wide.slots[1]), 5);
  EXPECT_LT(wide.gain_percent(wide.slots[1]), 20);
}

// flash-attention #2104: 1.594 us a block at head dim 128 in the base path, within 15 %.
TEST(Timing, BasePathOfHeadDim128TakesThePublishedTime) {
  constexpr double kPublished = 1.594e-6 * kClockHz;
  EXPECT_NEAR(best(predict(128, 16).slots[0]), kPublished, 0.15 * kPublished);
}

TEST(Timing, GainIsSmallWhereKeysAreFew) {
  const TimingReport report = predict(64, 16);
  const auto total = [](const SlotTiming& timing, int blocks) {
    return timing.fixed_cycles[1] + blocks * best(timing);
  };
  const auto gain = [&](int blocks) {
    return total(report.slots[0], blocks) / total(report.slots[1], blocks) - 1;
  };
  EXPECT_LT(gain(2), 0.5 * gain(512));
}

// Softmax or memory is the bound with two slots already.
TEST(Timing, AThirdSlotBringsNothingInSteadyState) {
  for (const int head_dim : {64, 128}) {
    const TimingReport report = predict(head_dim, 16);
    EXPECT_NEAR(best(report.slots[2]), best(report.slots[1]), 0.01 * best(report.slots[1]));
  }
}

TEST(Timing, ARunWithoutValuesTakesTheCyclesOfOneWith) {
  double cycles[2];
  for (const bool values : {false, true}) {
    DecodeCase decode({.kv_len = {1500}, .scale = 1e-3F});  // scores too even for any rescale
    const BlackwellPlan plan = plan_blackwell(decode.problem(), 1);
    std::vector<std::byte> workspace(workspace_of(plan).bytes);
    Options options;
    options.values = values;
    const RunResult result =
        run_blackwell(decode.problem(), plan, decode.call(), workspace.data(), options);
    EXPECT_EQ(result.report.text(), "");
    EXPECT_EQ(result.rescales, 0U);
    cycles[values ? 1 : 0] = result.cycles;
  }
  EXPECT_NEAR(cycles[0], cycles[1], 0.01 * cycles[1]);
}

TEST(Timing, TheDispatcherReplicatesRowsWhereTheModelSaysThatItPays) {
  for (const int head_dim : {64, 128}) {
    for (const int rows : {16, 40}) {
      const TimingReport report = predict(head_dim, rows);
      const SlotTiming& most = report.slots.back();
      const bool pays = report.gain_over_ping_pong(most, 1) > 2;
      DecodeCase decode({.head_dim = head_dim, .group = rows, .row_replicas = 0});
      EXPECT_EQ(plan_blackwell(decode.problem(), 1).row_replicas, pays ? most.row_replicas : 1)
          << "head dim " << head_dim << ", " << rows << " rows\n"
          << report.text();
    }
  }
}

}  // namespace
}  // namespace deuce::emulator
