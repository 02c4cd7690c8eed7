// SPDX-License-Identifier: Apache-2.0
// The timing model says in which order things run before it says how long they take.
#include "emulator/timing_report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace deuce::emulator {
namespace {

TEST(Timing, PingPongHidesScoresUnderSoftmaxAndTheBasePathDoesNot) {
  for (const int head_dim : {64, 128}) {
    const Result<TimingReport> report = predict_timing(head_dim, 16);
    ASSERT_TRUE(report.ok());
    const auto& slots = report.value().slots;
    fmt::print("{}", report.value().text());
    EXPECT_EQ(slots[0].overlap, 0) << "QK(c + 1) starts before softmax(c) has ended";
    // At head dim 128 the second slot is bound by memory: QK waits for its K tile.
    EXPECT_GT(slots[1].overlap, head_dim == 64 ? 0.9 : -1.0);
    EXPECT_LT(slots[1].cycles_per_block[1], slots[0].cycles_per_block[1]);
    for (const SlotTiming& timing : slots) {
      EXPECT_LT(timing.cycles_per_block[0], timing.cycles_per_block[1] + 1);
      EXPECT_LT(timing.cycles_per_block[1], timing.cycles_per_block[2] + 1);
    }
  }
}

}  // namespace
}  // namespace deuce::emulator
