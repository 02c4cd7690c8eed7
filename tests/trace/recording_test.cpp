// SPDX-License-Identifier: Apache-2.0
// What a run of a GPU kernel on the emulator records, for every number of score slots.
#include <gtest/gtest.h>

#include <algorithm>

#include "emulator/blackwell.h"
#include "emulator/decode_case.h"
#include "emulator/hopper.h"
#include "plan/blackwell_params.h"
#include "support/range_count.h"
#include "trace/summary.h"

namespace deuce::trace {
namespace {

using test::range_count;

constexpr int kBlocks = 16;

struct Recorded {
  Timeline timeline;
  double cycles = 0;
};

emulator::RunResult run(const emulator::CaseSpec& spec, int ctas, Recorder* recorder) {
  emulator::DecodeCase decode(spec);
  const BlackwellPlan plan = plan_blackwell(decode.problem(), ctas);
  std::vector<std::byte> workspace(workspace_of(plan).bytes);
  emulator::Options options;
  options.recorder = recorder;
  emulator::RunResult result =
      run_blackwell(decode.problem(), plan, decode.call(), workspace.data(), options);
  EXPECT_EQ(result.report.text(), "");
  return result;
}

Recorded record(const emulator::CaseSpec& spec, int ctas = 1, Level level = Level::full,
                uint32_t capacity = 1 << 16) {
  Recorder recorder(level, capacity);
  Recorded recorded;
  recorded.cycles = run(spec, ctas, &recorder).cycles;
  TraceFile file;
  file.facts.clock_hz = emulator::kClockHz;
  file.facts.score_slots = spec.score_slots;
  file.slices = recorder.take();
  Result<Timeline> made = make_timeline(file);
  EXPECT_TRUE(made.ok()) << made.status().sentence();
  if (made.ok()) recorded.timeline = std::move(made.value());
  return recorded;
}

emulator::CaseSpec long_case(int slots) {
  return {.kv_len = {kBlocks * 128}, .score_slots = slots};
}

/// Pieces, splits and a paged cache: every role has work.
emulator::CaseSpec busy_case(int slots) {
  return {.kv_heads = 2,
          .kv_len = {700, 0, 1300},
          .page_size = 48,
          .score_slots = slots,
          .growing = true};
}

class Recording : public testing::TestWithParam<int> {};

TEST_P(Recording, HasEveryBlockOfEveryRole) {
  const Timeline timeline = record(long_case(GetParam())).timeline;
  EXPECT_EQ(range_count(timeline, Event::sm_compute), 4 * kBlocks);
  EXPECT_EQ(range_count(timeline, Event::sm_row_sum), 4 * kBlocks);
  EXPECT_EQ(range_count(timeline, Event::mma_issue_QK), kBlocks);
  EXPECT_EQ(range_count(timeline, Event::mma_issue_PV), kBlocks);
  EXPECT_EQ(range_count(timeline, Event::pipe_QK), kBlocks);
  EXPECT_EQ(range_count(timeline, Event::copy_K), kBlocks);
  EXPECT_EQ(range_count(timeline, Event::copy_V), kBlocks);
  EXPECT_EQ(range_count(timeline, Event::copy_Q), 1);
  EXPECT_EQ(range_count(timeline, Event::warp_lifetime), 16);
  EXPECT_EQ(timeline.dropped, 0U);
}

// A wait for a phase before the first has no arrival; all others do, and it comes before they end.
TEST_P(Recording, EveryWaitThatNeedsAnArrivalHasAnArrowThatPointsForward) {
  for (const emulator::CaseSpec& spec : {long_case(GetParam()), busy_case(GetParam())}) {
    const Timeline timeline = record(spec, 3).timeline;
    std::size_t waits = 0;
    for (const Track& track : timeline.tracks) {
      for (const Range& range : track.ranges) {
        waits += info(range.event).flow == Flow::wait && range.phase >= 0 ? 1 : 0;
      }
    }
    EXPECT_GT(waits, 100U);
    EXPECT_EQ(timeline.arrows.size(), waits);
    for (const Arrow& arrow : timeline.arrows) {
      EXPECT_LE(arrow.from, arrow.to)
          << arrow.edge << " slot " << arrow.slot << " phase " << arrow.phase << ", "
          << timeline.tracks[arrow.from_track].name << " to "
          << timeline.tracks[arrow.to_track].name;
    }
  }
}

TEST_P(Recording, AnArrowStartsAtTheLastArrivalOfItsPhase) {
  const Timeline timeline = record(long_case(GetParam())).timeline;
  int looked_at = 0;
  for (const Arrow& arrow : timeline.arrows) {
    if (arrow.edge != "po_ready" && arrow.edge != "p_tail_ready") continue;
    double last = -1;
    for (const Track& track : timeline.tracks) {
      for (const Instant& instant : track.instants) {
        if (info(instant.event).edge != arrow.edge || instant.slot != arrow.slot) continue;
        if (instant.phase == arrow.phase) last = std::max(last, instant.at);
      }
    }
    EXPECT_EQ(arrow.from, last) << arrow.edge << " phase " << arrow.phase;
    ++looked_at;
  }
  EXPECT_EQ(looked_at, 2 * kBlocks);
}

TEST_P(Recording, RangesOfATrackNest) {
  const Timeline timeline = record(busy_case(GetParam()), 3).timeline;
  for (const Track& track : timeline.tracks) {
    std::vector<const Range*> open;
    for (const Range& range : track.ranges) {
      EXPECT_LE(range.begin, range.end);
      while (!open.empty() && open.back()->end <= range.begin) open.pop_back();
      if (!open.empty()) {
        EXPECT_LE(range.end, open.back()->end) << track.name << ": " << info(range.event).name
                                               << " in " << info(open.back()->event).name;
      }
      open.push_back(&range);
    }
  }
}

TEST_P(Recording, ScoresRunInsideSoftmaxFromTwoSlotsOn) {
  const Summary summary = summarize(record(long_case(GetParam())).timeline);
  if (GetParam() == 1) {
    EXPECT_EQ(summary.overlap, 0);
  } else {
    EXPECT_GT(summary.overlap, 0.7);
  }
}

// Of one slot: scores wait for PV of the block before, so S and P never lie there together.
TEST_P(Recording, ASlotHoldsOneBlockAtATime) {
  const Timeline timeline = record(long_case(GetParam())).timeline;
  const Track* pipe = find_agent(timeline, Agent::tensor_pipe);
  ASSERT_NE(pipe, nullptr);
  std::vector<int> holds(static_cast<std::size_t>(GetParam()), -1);
  for (const Range& range : pipe->ranges) {
    int& slot = holds[static_cast<std::size_t>(range.slot)];
    EXPECT_EQ(range.slot, range.block % GetParam());
    if (range.event == Event::pipe_QK) {
      EXPECT_EQ(slot, range.block < GetParam() ? -1 : range.block - GetParam());
      slot = range.block;
    } else {
      EXPECT_EQ(slot, range.block);
    }
  }
}

TEST_P(Recording, ATracerChangesNoTimeThatMatters) {
  const emulator::CaseSpec spec = long_case(GetParam());
  const double without = run(spec, 1, nullptr).cycles;
  for (const Level level : {Level::edges, Level::full}) {
    EXPECT_NEAR(record(spec, 1, level).cycles, without, 0.01 * without);
  }
}

INSTANTIATE_TEST_SUITE_P(Slots, Recording, testing::Values(1, 2, 3));

/// One request of so many tiles and rows on one CTA.
Timeline record_hopper(int rows, int tiles) {
  emulator::DecodeCase decode({.kernel = Backend::hopper,
                               .head_dim = 128,
                               .group = rows,
                               .kv_len = {tiles * 64},
                               .score_slots = 0,
                               .row_replicas = 0});
  std::vector<std::byte> workspace(emulator::hopper_workspace(decode.problem(), 1).bytes);
  Recorder recorder(Level::edges, 1 << 16);
  emulator::Options options;
  options.recorder = &recorder;
  const emulator::RunResult run =
      emulator::run_hopper(decode.problem(), 1, decode.call(), workspace.data(), options);
  EXPECT_FALSE(run.report.has_error()) << run.report.text();
  TraceFile file;
  file.facts.kernel = "hopper";
  file.facts.clock_hz = emulator::facts_of(emulator::Chip::h200).clock_hz;
  file.slices = recorder.take();
  Result<Timeline> made = make_timeline(file);
  EXPECT_TRUE(made.ok()) << made.status().sentence();
  return made.ok() ? std::move(made.value()) : Timeline{};
}

TEST(HopperRecording, HasEveryTileOfEveryRole) {
  constexpr int kTiles = 20;
  const Timeline timeline = record_hopper(16, kTiles);
  for (const Event event :
       {Event::wait_K, Event::wait_V, Event::mma_issue_QK, Event::sm_compute, Event::mma_issue_PV,
        Event::tma_issue_K, Event::tma_issue_V, Event::copy_K, Event::copy_V}) {
    EXPECT_EQ(range_count(timeline, event), kTiles) << info(event).name;
  }
  EXPECT_EQ(range_count(timeline, Event::warp_lifetime), 5);
}

// Those of K and V come from the copies of their own tiles, which no warp sees arrive.
TEST(HopperRecording, EveryWaitForAnArrivalHasAnArrowThatPointsForward) {
  for (const int rows : {16, 64, 128}) {
    const Timeline timeline = record_hopper(rows, 20);
    std::size_t waits = 0;
    for (const Track& track : timeline.tracks) {
      for (const Range& range : track.ranges) {
        waits += info(range.event).flow == Flow::wait && range.phase >= 0 ? 1 : 0;
      }
    }
    EXPECT_EQ(timeline.arrows.size(), waits) << rows;
    int of_keys = 0, of_values = 0;
    for (const Arrow& arrow : timeline.arrows) {
      EXPECT_LE(arrow.from, arrow.to) << arrow.edge << " phase " << arrow.phase;
      const Track& from = timeline.tracks[arrow.from_track];
      if (from.agent != Agent::copy) continue;
      const bool keys = arrow.edge == "k_arrived";
      (keys ? of_keys : of_values) += 1;
      EXPECT_EQ(from.name, fmt::format("TMA {} slot {}", keys ? "K" : "V", arrow.slot));
      const Event copy = keys ? Event::copy_K : Event::copy_V;
      const Range* tile = find_range(from, copy, arrow.block);
      ASSERT_NE(tile, nullptr) << arrow.edge << " block " << arrow.block;
      EXPECT_EQ(tile->end, arrow.from) << arrow.edge << " block " << arrow.block;
    }
    EXPECT_GE(of_keys, 20);
    EXPECT_GE(of_values, 20);
  }
}

TEST(RecordingLevels, EdgesLeavesOutThePhasesInsideSoftmax) {
  const Timeline edges = record(long_case(2), 1, Level::edges).timeline;
  EXPECT_EQ(range_count(edges, Event::sm_max), 0);
  EXPECT_EQ(range_count(edges, Event::sm_compute), 4 * kBlocks);
  EXPECT_EQ(range_count(record(long_case(2)).timeline, Event::sm_max), 4 * kBlocks);
}

TEST(RecordingLevels, RescalesShowWhereScoresGrow) {
  emulator::CaseSpec spec = long_case(2);
  EXPECT_EQ(summarize(record(spec).timeline).rescales, 0U);
  spec.growing = true;
  // All 16 rows are those of one warp; the padding of the others never grows.
  EXPECT_EQ(summarize(record(spec).timeline).rescales, unsigned{kBlocks} - 1);
}

TEST(RecordingLevels, DroppedRecordsAreCountedAndTheRestIsRead) {
  const Timeline timeline = record(long_case(2), 1, Level::edges, 40).timeline;
  EXPECT_GT(timeline.dropped, 100U);
  EXPECT_GT(range_count(timeline, Event::sm_compute), 0);
  EXPECT_LT(range_count(timeline, Event::sm_compute), 4 * kBlocks);
}

// Cut items end in the epilogue, and the block that completes one merges it.
TEST(RecordingLevels, MergesOfCutItemsShow) {
  const Timeline timeline = record({.kv_len = {2000}}, 3).timeline;
  EXPECT_GT(range_count(timeline, Event::merge_write_partial), 0);
  EXPECT_GT(range_count(timeline, Event::merge_counter), 0);
  EXPECT_EQ(range_count(timeline, Event::merge_combine), 4);  // the warps of one epilogue
}

TEST(SummaryText, NamesTheOriginAndTheEdges) {
  const Timeline timeline = record(long_case(2)).timeline;
  const std::string text = text_of(timeline, summarize(timeline));
  for (const char* words : {"simulated", "po_ready", "s_ready", "softmax warp 3", "0 dropped"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  }
}

}  // namespace
}  // namespace deuce::trace
