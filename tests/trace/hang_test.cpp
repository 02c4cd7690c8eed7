// SPDX-License-Identifier: Apache-2.0
// A run that stands still, in words: by the last records of its warps, in whatever state their
// slices are, and for a deadlock of the emulator.
#include <gtest/gtest.h>

#include "emulator/blackwell.h"
#include "emulator/decode_case.h"
#include "emulator/hopper.h"
#include "support/drops_arrivals.h"
#include "trace/hang_report.h"
#include "trace/slice_extra.h"
#include "trace/timeline.h"

namespace deuce::trace {
namespace {

uint32_t begins(Event event, int slot = 0, int32_t phase = 0, int block = 0) {
  return pack(Kind::begin, event, slot, phase, block);
}
uint32_t follows(Event event, int slot, int32_t phase, int block) {
  return pack(Kind::next, event, slot, phase, block);
}
uint32_t ends(Event event) { return pack(Kind::end, event, 0, 0, 0); }

Slice slice_of(uint32_t cta, int unit, Role role, std::vector<uint32_t> words) {
  Slice slice;
  slice.header.agent = Agent::warp;
  slice.header.cta = cta;
  slice.header.unit = static_cast<uint16_t>(unit);
  slice.header.role = static_cast<uint8_t>(role);
  uint32_t clock = 100;
  for (const uint32_t word : words) slice.records.push_back({clock += 10, word});
  return slice;
}

TEST(HangReport, NamesCtaRoleWarpEventSlotAndBlock) {
  const std::vector<Slice> slices{
      slice_of(7, 0, Role::load,
               {begins(Event::warp_lifetime), begins(Event::tma_issue_K, 3, 1, 15),
                ends(Event::tma_issue_K)}),
      slice_of(7, 1, Role::attend, {begins(Event::warp_lifetime), ends(Event::warp_lifetime)}),
      slice_of(7, 2, Role::attend, {begins(Event::warp_lifetime), begins(Event::wait_K, 2, 1, 14)}),
      slice_of(7, 3, Role::attend, {}),
  };
  EXPECT_EQ(hang_report(slices),
            "3 of 4 warps have not ended; their last events:\n"
            "  CTA 7  load warp 0: after tma_issue K, slot 3, block 15, parity 1\n"
            "  CTA 7  attend warp 1: waits for k_arrived (wait_K), slot 2, block 14, parity 1\n"
            "  CTA 7  attend warp 2: has not started\n");
}

TEST(HangReport, ARangeThatFollowsAnotherIsWaitedInOrEnded) {
  const std::vector<Slice> slices{
      slice_of(0, 0, Role::attend,
               {begins(Event::warp_lifetime), begins(Event::wait_K, 2, 1, 14),
                follows(Event::wait_V, 2, 1, 14)}),
      slice_of(0, 1, Role::attend,
               {begins(Event::warp_lifetime), begins(Event::wait_K, 3, 0, 15),
                follows(Event::mma_issue_QK, 3, 0, 15), ends(Event::mma_issue_QK)}),
  };
  EXPECT_EQ(hang_report(slices),
            "2 of 2 warps have not ended; their last events:\n"
            "  CTA 0  attend warp 0: waits for v_arrived (wait_V), slot 2, block 14, parity 1\n"
            "  CTA 0  attend warp 1: after mma_issue_QK, slot 3, block 15, parity 0\n");
}

TEST(HangReport, SaysNothingWhenEveryWarpHasEnded) {
  EXPECT_EQ(hang_report({slice_of(0, 0, Role::load,
                                  {begins(Event::warp_lifetime), ends(Event::warp_lifetime)})}),
            "");
}

TEST(HangReport, ShowsTheFirstCtasAndCountsTheOthers) {
  std::vector<Slice> slices;
  for (uint32_t cta = 0; cta < 20; ++cta) {
    slices.push_back(slice_of(cta, 0, Role::load, {begins(Event::warp_lifetime)}));
  }
  const std::string report = hang_report(slices);
  EXPECT_NE(report.find("CTA 7  load warp 0: inside warp_lifetime"), std::string::npos) << report;
  EXPECT_EQ(report.find("CTA 8 "), std::string::npos) << report;
  EXPECT_NE(report.find("and warps of 12 CTAs more"), std::string::npos) << report;
}

TEST(HangReport, ASliceThatIsBeingWrittenEndsAtItsFirstEmptyPlace) {
  const std::vector<Record> records = in_order({{5, 1}, {9, 2}, {0, 0}, {0, 0}});
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records.back().word, 2U);
}

// Also where the clock's low word has begun again.
TEST(HangReport, ASliceThatBeganAgainIsReadFromItsOldestRecord) {
  const std::vector<Record> records = in_order({{7, 4}, {12, 5}, {0xfffffff0U, 2}, {3, 3}});
  ASSERT_EQ(records.size(), 4U);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(records[i].word, i + 2);
}

TEST(KeepNewest, ATimelineBeginsWhereTheOldestRecordsWereLost) {
  TraceFile file;
  file.facts.clock_hz = 1e9;
  file.slices.push_back(
      slice_of(0, 0, Role::attend,
               {ends(Event::wait_V), begins(Event::wait_K, 2, 1, 14), ends(Event::wait_K),
                begins(Event::wait_K, 2, 0, 20), ends(Event::wait_K), ends(Event::warp_lifetime)}));
  SliceHeader& header = file.slices[0].header;
  header.capacity = 6;
  header.wanted = 100;
  header.policy = Policy::keep_newest;
  const Result<Timeline> timeline = make_timeline(file);
  ASSERT_TRUE(timeline.ok()) << timeline.status().sentence();
  ASSERT_EQ(timeline.value().tracks[0].ranges.size(), 2U);
  EXPECT_EQ(timeline.value().tracks[0].ranges[1].block, 20);
  EXPECT_EQ(timeline.value().dropped, 94U);
  header.policy = Policy::keep_first;
  EXPECT_FALSE(make_timeline(file).ok()) << "of a whole slice every range has its begin";
}

// Only two score slots ask twice for the keys of a tile.
TEST(Timeline, AWaitThatIsRecordedTwiceIsRefused) {
  TraceFile file;
  file.facts.clock_hz = 1e9;
  file.slices.push_back(slice_of(0, 0, Role::attend,
                                 {begins(Event::wait_K, 2, 0, 2), ends(Event::wait_K),
                                  begins(Event::wait_K, 2, 0, 2), ends(Event::wait_K)}));
  file.facts.score_slots = 1;
  EXPECT_FALSE(make_timeline(file).ok());
  file.facts.score_slots = 2;
  EXPECT_TRUE(make_timeline(file).ok());
}

TEST(SelfCost, LiesInTheHeader) {
  SliceHeader header{};
  EXPECT_EQ(self_cost(header), 0U);
  set_self_cost(header, 700);
  EXPECT_EQ(self_cost(header), 700U);
}

TEST(HangReport, OfADeadlockInTheEmulatorNamesWhoWaitsForWhat) {
  emulator::DecodeCase decode(
      {.kernel = Backend::hopper, .kv_len = {64 * 40}, .score_slots = 0, .row_replicas = 0});
  std::vector<std::byte> workspace(emulator::hopper_workspace(decode.problem(), 1).bytes);
  Recorder recorder(Level::edges, 1 << 12);
  test::DropsArrivals filter;
  emulator::Options options;
  options.recorder = &recorder;
  options.filter = &filter;
  const emulator::RunResult result =
      emulator::run_hopper(decode.problem(), 1, decode.call(), workspace.data(), options);
  ASSERT_TRUE(result.report.has_error());
  EXPECT_NE(result.report.text().find("no warp can run"), std::string::npos);
  const std::string report = hang_report(recorder.take());
  for (const char* words : {"CTA 0  load warp 0: waits for kv_released (tma_wait KV), slot ",
                            "CTA 0  attend warp 0: waits for k_arrived (wait_K), slot "}) {
    EXPECT_NE(report.find(words), std::string::npos) << report;
  }
}

}  // namespace
}  // namespace deuce::trace
