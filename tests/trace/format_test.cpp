// SPDX-License-Identifier: Apache-2.0
// The trace format byte by byte, the bounded slices, and how the reader answers to damage.
#include <gtest/gtest.h>

#include <cstring>

#include "support/trace_facts.h"
#include "trace/summary.h"
#include "trace/timeline.h"
#include "trace/trace_file.h"

namespace deuce::trace {
namespace {

/// One warp with one wait of slot 3 for the phase before the first, and one value.
TraceFile small_trace() {
  TraceFile trace;
  trace.facts = test::plausible_facts();
  Recorder recorder(Level::edges, 8);
  Slice& slice = recorder.slice(0, Agent::warp, 14, static_cast<int>(Role::load));
  slice.add(0x1'0000'0100, pack(Kind::begin, Event::tma_wait, 3, -1, 7));
  slice.add(0x1'0000'0120, pack(Kind::end, Event::tma_wait, 0, 0, 0));
  slice.add(0x1'0000'0121, pack_value(Event::work_item, 0x123456));
  slice.header.begin.clock = 0x1'0000'0000;
  trace.slices = recorder.take();
  return trace;
}

/// One warp of a clock of 1 GHz.
TraceFile trace_of(std::vector<Record> records) {
  TraceFile trace;
  trace.facts.clock_hz = 1e9;
  Slice slice;
  slice.header.capacity = slice.header.wanted = static_cast<uint32_t>(records.size());
  slice.records = std::move(records);
  trace.slices = {slice};
  return trace;
}

TEST(TraceFormat, ARecordIsKindEventSlotParityBlock) {
  EXPECT_EQ(pack(Kind::begin, Event::tma_wait, 3, -1, 7), 0x020e0007U);
  EXPECT_EQ(pack(Kind::instant, Event::arrive_po_ready, 1, 2, 0x1ffff), 0x4c85ffffU);
  EXPECT_EQ(pack_value(Event::work_item, 0x123456), 0x61123456U);
  EXPECT_EQ(pack(Kind::next, Event::wait_V, 0, 0, 0), 0x97800000U);
  const uint32_t word = pack(Kind::end, Event::sm_compute, 31, 5, 123456);
  EXPECT_EQ(kind_of(word), Kind::end);
  EXPECT_EQ(event_of(word), Event::sm_compute);
  EXPECT_EQ(slot_of(word), 31);
  EXPECT_EQ(parity_of(word), 1);
  EXPECT_EQ(block_of(word), 123456);
}

TEST(TraceFormat, EventIdsAreThoseOfEarlierFiles) {
  EXPECT_EQ(static_cast<int>(Event::tma_wait), 4);
  EXPECT_EQ(static_cast<int>(Event::mma_issue_QK), 15);
  EXPECT_EQ(static_cast<int>(Event::sm_compute), 22);
  EXPECT_EQ(static_cast<int>(Event::arrive_po_ready), 25);
  EXPECT_EQ(static_cast<int>(Event::pipe_PV), 53);
  EXPECT_EQ(static_cast<int>(Event::sm_exp), 57);
  EXPECT_EQ(static_cast<int>(Event::mma_wait_PV), 59);
}

TEST(TraceFormat, AHeaderHasItsFieldsWhereADeviceWritesThem) {
  const std::string bytes = encode(small_trace());
  const std::size_t at = bytes.size() - 3 * sizeof(Record) - sizeof(SliceHeader);
  const auto byte = [&](std::size_t offset) {
    return static_cast<unsigned char>(bytes[at + offset]);
  };
  EXPECT_EQ(bytes.substr(at, 4), "DucT");
  EXPECT_EQ(byte(4), 2);  // version
  EXPECT_EQ(byte(6), 0);  // a warp
  EXPECT_EQ(byte(7), static_cast<int>(Role::load));
  EXPECT_EQ(byte(14), 14);  // warp 14
  EXPECT_EQ(byte(16), 8);   // capacity
  EXPECT_EQ(byte(20), 3);   // wanted
  EXPECT_EQ(byte(36), 1);   // high word of the first anchor's clock
  EXPECT_EQ(bytes.substr(0, 8), "DEUCETRC");
}

TEST(TraceFormat, AFileReadsAsItWasWritten) {
  const TraceFile trace = small_trace();
  const Result<TraceFile> read = decode_trace(encode(trace), "t");
  ASSERT_TRUE(read.ok()) << read.status().sentence();
  EXPECT_EQ(encode(read.value()), encode(trace));
}

TEST(TraceFormat, EveryShorterFileIsRefused) {
  const std::string bytes = encode(small_trace());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_trace(bytes.substr(0, length), "t").ok()) << length;
  }
  EXPECT_FALSE(decode_trace(bytes + "x", "t").ok());
}

TEST(TraceFormat, AnotherVersionIsRefused) {
  TraceFile trace = small_trace();
  trace.slices[0].header.version = 1;
  const Result<TraceFile> read = decode_trace(encode(trace), "old.deucetrace");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(
      read.status().sentence(),
      "old.deucetrace: its records are of another version than this deuce reads: record it again");
}

TEST(TraceRecorder, AFullSliceKeepsTheFirstRecordsAndCountsTheOthers) {
  Recorder recorder(Level::edges, 2);
  Slice& slice = recorder.slice(0, Agent::warp, 0);
  for (uint32_t i = 0; i < 5; ++i) slice.add(i, pack(Kind::instant, Event::fault, 0, 0, 0));
  ASSERT_EQ(slice.records.size(), 2U);
  EXPECT_EQ(slice.records[1].clock, 1U);
  EXPECT_EQ(slice.header.wanted, 5U);
  EXPECT_EQ(slice.dropped(), 3U);
}

TEST(TraceTimeline, ClocksUnwrapAndAProducersFirstPhaseIsMinusOne) {
  TraceFile trace = small_trace();
  trace.slices[0].records[0].clock = 0xfffffff0;
  trace.slices[0].records[1].clock = 0x00000010;
  trace.slices[0].records[2].clock = 0x00000011;
  const Result<Timeline> made = make_timeline(trace);
  ASSERT_TRUE(made.ok()) << made.status().sentence();
  const Range& wait = made.value().tracks[0].ranges[0];
  EXPECT_EQ(wait.end - wait.begin, 32);
  EXPECT_EQ(wait.phase, -1);
  EXPECT_EQ(wait.block, 7);
  EXPECT_EQ(made.value().tracks[0].samples[0].value, 0x123456U);
}

TEST(TraceTimeline, BlocksUnwrapPastTheirSeventeenBits) {
  std::vector<Record> records;
  for (const int block : {50000, 100000, 150000}) {
    const auto clock = static_cast<uint32_t>(block);
    records.push_back({clock, pack(Kind::begin, Event::sm_compute, 0, 0, block)});
    records.push_back({clock, pack(Kind::end, Event::sm_compute, 0, 0, block)});
  }
  const Result<Timeline> made = make_timeline(trace_of(records));
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made.value().tracks[0].ranges[2].block, 150000);
}

TEST(TraceTimeline, TheOldestBlockKeptMayBeAny) {
  TraceFile trace = trace_of({{10, pack(Kind::begin, Event::sm_compute, 0, 0, 100000)},
                              {20, pack(Kind::end, Event::sm_compute, 0, 0, 0)}});
  trace.slices[0].header.policy = Policy::keep_newest;
  trace.slices[0].header.wanted = 200000;
  const Result<Timeline> made = make_timeline(trace);
  ASSERT_TRUE(made.ok()) << made.status().sentence();
  EXPECT_EQ(made.value().tracks[0].ranges[0].block, 100000);
}

TEST(TraceTimeline, OneRecordEndsARangeAndBeginsTheNext) {
  const Result<Timeline> made =
      make_timeline(trace_of({{10, pack(Kind::begin, Event::work_item, 0, 0, 0)},
                              {20, pack(Kind::begin, Event::wait_K, 1, 0, 1)},
                              {30, pack(Kind::next, Event::mma_issue_QK, 1, 0, 1)},
                              {50, pack(Kind::end, Event::mma_issue_QK, 0, 0, 0)},
                              {90, pack(Kind::end, Event::work_item, 0, 0, 0)}}));
  ASSERT_TRUE(made.ok()) << made.status().sentence();
  const std::vector<Range>& ranges = made.value().tracks[0].ranges;
  ASSERT_EQ(ranges.size(), 3U);
  EXPECT_EQ(ranges[0].end - ranges[0].begin, 80);
  EXPECT_EQ(ranges[1].event, Event::wait_K);
  EXPECT_EQ(ranges[1].end - ranges[1].begin, 10);
  EXPECT_EQ(ranges[2].event, Event::mma_issue_QK);
  EXPECT_EQ(ranges[2].begin, ranges[1].end);
  EXPECT_EQ(ranges[2].end - ranges[2].begin, 20);
}

TEST(TraceTimeline, ARangeThatFollowsNoneIsRefused) {
  TraceFile trace = small_trace();
  trace.slices[0].records[0].word = pack(Kind::next, Event::tma_wait, 3, -1, 7);
  const Result<Timeline> made = make_timeline(trace);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().sentence(),
            "load warp 0: tma_wait begins at the end of a range, but none is open");
}

TEST(TraceTimeline, RangesThatDoNotNestAreRefused) {
  TraceFile trace = small_trace();
  trace.slices[0].records[1].word = pack(Kind::end, Event::tma_issue_K, 0, 0, 0);
  const Result<Timeline> made = make_timeline(trace);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().sentence(),
            "load warp 0: tma_issue ends, which is not the innermost open range");
}

TEST(TraceTimeline, AParityThatContradictsTheCountIsRefused) {
  TraceFile trace = small_trace();
  Slice& slice = trace.slices[0];
  slice.header.wanted = 5;
  slice.records.push_back({0x130, pack(Kind::begin, Event::tma_wait, 3, -1, 8)});  // 0 is expected
  slice.records.push_back({0x140, pack(Kind::end, Event::tma_wait, 0, 0, 0)});
  EXPECT_FALSE(make_timeline(trace).ok());
}

// A GPU's timer counts nanoseconds from 1970: cycles must survive beside such numbers.
TEST(TraceTimeline, KeepsSingleCyclesBesideTheTimerOfADevice) {
  TraceFile file;
  file.facts.clock_hz = 1.8e9;
  Slice slice;
  slice.header.begin = {123'456'789'000, 1'796'000'000'123'456'768};
  const auto low = static_cast<uint32_t>(slice.header.begin.clock);
  slice.records = {{low + 10, pack(Kind::begin, Event::prologue, 0, 0, 0)},
                   {low + 11, pack(Kind::end, Event::prologue, 0, 0, 0)},
                   {low + 14, pack(Kind::begin, Event::work_item, 0, 0, 0)},
                   {low + 21, pack(Kind::end, Event::work_item, 0, 0, 0)}};
  file.slices = {slice};
  const Result<Timeline> timeline = make_timeline(file);
  ASSERT_TRUE(timeline.ok()) << timeline.status().sentence();
  const std::vector<Range>& ranges = timeline.value().tracks[0].ranges;
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_DOUBLE_EQ(ranges[0].end - ranges[0].begin, 1);
  EXPECT_DOUBLE_EQ(ranges[1].begin - ranges[0].begin, 4);
  EXPECT_DOUBLE_EQ(ranges[1].end - ranges[1].begin, 7);
}

// A record takes its time before the next one reads the clock: those of a range, its begin's own
// included, are what a summary may take off.
TEST(TraceSummary, TakesOffWhatTheRecordsInsideARangeCost) {
  const Result<Timeline> timeline =
      make_timeline(trace_of({{0, pack(Kind::begin, Event::work_item, 0, 0, 0)},
                              {100, pack(Kind::begin, Event::prologue, 0, 0, 0)},
                              {150, pack(Kind::end, Event::prologue, 0, 0, 0)},
                              {400, pack(Kind::end, Event::work_item, 0, 0, 0)}}));
  ASSERT_TRUE(timeline.ok());
  for (const EventTotal& total : summarize(timeline.value(), 20).events) {
    EXPECT_DOUBLE_EQ(total.cycles, total.event == Event::work_item ? 340 : 30);
  }
}

}  // namespace
}  // namespace deuce::trace
