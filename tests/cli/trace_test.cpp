// SPDX-License-Identifier: Apache-2.0
// `deuce trace`: every kernel on the problems of `deuce check`, a run that stands still, and what
// cannot be recorded.
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/tool.h"
#include "cli/traced_case.h"
#include "support/drops_arrivals.h"
#include "support/range_count.h"
#include "trace/summary.h"

namespace deuce::cli {
namespace {

TEST(TraceTool, ADeadlockOfTheEmulatorIsReportedInTheWordsOfTheTimeline) {
  test::DropsArrivals filter;
  TraceSettings settings;
  settings.spec.kernel = Backend::hopper;
  settings.spec.score_slots = settings.spec.row_replicas = 0;
  settings.spec.kv_len = {64 * 40};
  settings.filter = &filter;
  const Result<Recorded> file = trace_on_emulator(settings);
  ASSERT_FALSE(file.ok());
  const std::string text = file.status().sentence();
  for (const char* words : {"no warp can run and nothing is pending",
                            "CTA 0  load warp 0: waits for kv_released (tma_wait KV), slot "}) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  }
}

TEST(TraceTool, AColdCacheThatWouldStayInTheL2IsRefused) {
  for (const std::size_t bytes : {std::size_t{0}, (std::size_t{1} << 20) - 1}) {
    const Result<std::size_t> copies = cold_copies(bytes);
    ASSERT_FALSE(copies.ok());
    EXPECT_EQ(copies.status().field(), "cold");
  }
  for (const std::size_t bytes :
       {std::size_t{1} << 20, std::size_t{5} << 20, std::size_t{1} << 30}) {
    const Result<std::size_t> copies = cold_copies(bytes);
    ASSERT_TRUE(copies.ok()) << copies.status().sentence();
    EXPECT_GE(copies.value() * bytes, std::size_t{64} << 20);
    EXPECT_LE(copies.value(), 64U);
  }
}

// The reader counts phases, so a wait that a kernel does not record, or records twice, is refused.
TEST(TraceTool, EveryHopperKernelLeavesATimelineOfBothLevels) {
  for (const hopper::Config& shape : hopper::kShapes) {
    if (shape.element == hopper::Element::half) continue;  // the same code as bf16
    TraceSettings settings = traced_case(shape);
    for (const trace::Level level : {trace::Level::edges, trace::Level::full}) {
      if (shape.fixed_borders && level == trace::Level::edges) continue;
      settings.level = level;
      ASSERT_TRUE(check_traced(settings).ok()) << check_traced(settings).sentence();
      const Result<Recorded> run = trace_on_emulator(settings);
      ASSERT_TRUE(run.ok()) << run.status().sentence();
      const std::string& name = run.value().kernel->name;
      EXPECT_EQ(run.value().file.facts.score_slots, shape.score_slots) << name;
      const Result<trace::Timeline> timeline = trace::make_timeline(run.value().file);
      ASSERT_TRUE(timeline.ok()) << name << ": " << timeline.status().sentence();
      const int softmax = test::range_count(timeline.value(), trace::Event::sm_compute);
      const int exponentials = test::range_count(timeline.value(), trace::Event::sm_exp);
      EXPECT_GE(softmax, tiles_of(settings)) << name;
      const bool full = level == trace::Level::full;
      EXPECT_EQ(exponentials > 0, full) << name;
      if (full) {
        EXPECT_GE(exponentials, softmax) << name;
      }
    }
  }
}

// Warps of Hopper take tiles in turn, so starts of neighbouring tiles say nothing about a tile's
// time.
TEST(TraceTool, CyclesPerBlockOfHopperAreThoseOfTheWholeRequest) {
  for (const int shape : {0, 2, 5, 6, 8, 12}) {
    TraceSettings settings = traced_case(hopper::kShapes[static_cast<std::size_t>(shape)]);
    settings.blocks = 1;
    settings.spec.kv_len = {64 * 96};
    const Result<Recorded> run = trace_on_emulator(settings);
    ASSERT_TRUE(run.ok()) << run.status().sentence();
    const Result<trace::Timeline> timeline = trace::make_timeline(run.value().file);
    ASSERT_TRUE(timeline.ok()) << timeline.status().sentence();
    const trace::Summary summary = trace::summarize(timeline.value());
    const auto item = std::find_if(
        summary.events.begin(), summary.events.end(),
        [](const trace::EventTotal& row) { return row.event == trace::Event::work_item; });
    ASSERT_NE(item, summary.events.end());
    const double cycles = item->cycles / static_cast<double>(item->count) / 96;
    EXPECT_NEAR(summary.median / cycles, 1, 0.12) << run.value().kernel->name;
  }
}

TEST(TraceTool, TakesTheProblemsOfCheck) {
  const Folder folder;
  const struct {
    const char *options, *words;
  } problems[] = {
      {"--kv-len 700,0,1300 --q-len 2,1,3 --no-causal --sink --softcap 20",
       "3 requests of 0 to 1300 keys, 48 rows at most, softcap 20, sinks"},
      {"--kv-len 900 --batch 3 --kv-heads 2 --window-left 99 --q-len 2 --page-size 24",
       "3 requests of 900 keys, 32 rows for each of 2 KV heads, pages of 24, causal, window left "
       "99"},
      {"--kv-len 900,400 --kv-start 70 --split-kv-len 256 --type f16",
       "2 requests of 400 to 900 keys, 16 rows, from key 70 on, splits of 256 keys"},
      {"--kv-len 500 --batch 0", "10 requests of 0 to 500 keys"},
      {"--kernel hopper --type e4m3 --kv-len 700,300 --num-splits 3 --sink --window-left 200",
       "2 requests of 300 to 700 keys, 16 rows, window left 200, sinks, 3 splits"},
      {"--kernel hopper --rows 40 --kv-len 700,300 --q-len 2 --type f16 --level full",
       "2 requests of 300 to 700 keys, 80 rows, causal"},
      {"--row-replicas 0 --rows 4", "1 request of 2048 keys, 4 rows"},
  };
  for (const auto& problem : problems) {
    const ToolOutput run =
        folder.run(fmt::format("trace --blocks 2 --write summary --out t {}", problem.options));
    EXPECT_EQ(run.exit_code, 0) << problem.options << "\n" << run.err;
    EXPECT_NE(run.out.find(problem.words), std::string::npos) << problem.options << "\n" << run.out;
  }
  const ToolOutput mixed = folder.run("trace --batch 0 --kv-len 500 --write summary");
  EXPECT_NE(mixed.out.find("10 requests of 0 to 500 keys"), std::string::npos) << mixed.out;
  const ToolOutput one = folder.run("trace --write summary");
  EXPECT_NE(one.out.find("1 request of 2048 keys"), std::string::npos) << one.out;
}

TEST(TraceTool, ASummaryOfAPartSaysSo) {
  const Folder folder;
  const char* words = "those of the records kept, not of the whole run";
  EXPECT_NE(folder.run("trace --records 20 --write summary").out.find(words), std::string::npos);
  EXPECT_EQ(folder.run("trace --write summary").out.find(words), std::string::npos);
}

// The first blocks of a run, whose keys are still under way, are no part of a steady figure.
TEST(TraceTool, TheOverlapIsThatOfCheckTimingWhateverTheLength) {
  const Folder folder;
  const std::string timing = folder.run("check --timing --rows 4").out;
  for (const int replicas : {1, 2, 4}) {
    const auto row = timing.find(fmt::format("\n    2         {}", replicas));
    ASSERT_NE(row, std::string::npos) << timing;
    const std::string line = timing.substr(row + 1, timing.find('\n', row + 1) - row - 1);
    const int percent = std::stoi(line.substr(line.rfind(' ')));
    for (const int keys : {2048, 6144}) {
      const ToolOutput run = folder.run(fmt::format(
          "trace --rows 4 --row-replicas {} --kv-len {} --write summary", replicas, keys));
      EXPECT_NE(run.out.find(fmt::format("\noverlap     {} % of QK", percent)), std::string::npos)
          << line << "\n"
          << run.out;
    }
  }
}

TEST(TraceTool, CtrlCLeavesNothingAndSaysSo) {
  const Folder folder;
  const ToolOutput run = folder.shell(
      "\"$DEUCE\" trace --kv-len 100000 --batch 2 --out t &\n"
      "sleep 0.5; while kill -INT $!; do sleep 0.2; done 2>/dev/null\nwait $!");
  EXPECT_EQ(run.exit_code, 130);
  EXPECT_EQ(run.err, "deuce trace: stopped by Ctrl-C; nothing was written\n");
  EXPECT_EQ(run.out, "");
  EXPECT_FALSE(std::filesystem::exists(folder.file("t")));
}

TEST(TraceTool, ANameThatNoFileCanTakeIsRefusedBeforeAnyFileIsWritten) {
  const struct {
    const char *name, *block, *sentence;
  } cases[] = {
      {"trace.json", "mkdir -p t/trace.json/x", "is a folder, not a file"},
      {"timeline.html", "mkdir -p t/timeline.html/x", "is a folder, not a file"},
      {"timeline.html", "mkdir -p t/timeline.html", "is a folder, not a file"},
      {"timeline.html", "mkdir t; mkfifo t/timeline.html", "is not a file"},
      {"timeline.html", "mkdir t; ln -s /dev/null t/timeline.html", "is not a file"},
  };
  for (const auto& taken : cases) {
    const Folder folder;
    folder.shell(taken.block);
    const ToolOutput run = folder.run("trace --out t --write json,html");
    EXPECT_EQ(run.exit_code, 5) << taken.block;
    EXPECT_EQ(run.err, fmt::format("deuce trace: t/{}: {}\n", taken.name, taken.sentence));
    EXPECT_EQ(run.out, "") << taken.block;
    for (const auto& entry : std::filesystem::directory_iterator(folder.file("t"))) {
      EXPECT_EQ(entry.path().filename(), taken.name) << taken.block;
    }
  }
}

// The second file stands still in a pipe that nobody reads, while the first is complete.
TEST(TraceTool, CtrlCBetweenTwoFilesLeavesNeither) {
  const Folder folder;
  const ToolOutput run = folder.shell(
      "mkdir t; mkfifo t/trace.json.partial\n"
      "\"$DEUCE\" trace --out t --write perfetto,json &\n"
      "while ! [ -s t/trace.pftrace.partial ] && kill -0 $!; do sleep 0.1; done\n"
      "[ -e t/trace.pftrace.partial ] && echo written; sleep 0.3\n"
      "while kill -INT $!; do sleep 0.2; done 2>/dev/null\nwait $!");
  EXPECT_EQ(run.exit_code, 130);
  EXPECT_EQ(run.out, "written\n");
  EXPECT_EQ(run.err, "deuce trace: stopped by Ctrl-C; nothing was written\n");
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("t")));
}

TEST(TraceTool, FilesOfAnEarlierRunStayAndAreNamed) {
  const Folder folder;
  ASSERT_EQ(folder.run("trace --out t").exit_code, 0);
  folder.shell("echo mine > t/notes.txt; echo mine > t/other.deucetrace");
  const ToolOutput run = folder.run("trace --kernel hopper --out t");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("\nnot of this run: other.deucetrace phases.svg ping-pong.deucetrace "
                         "residency.svg schedule.svg schedule_to_scale.svg\n"),
            std::string::npos)
      << run.out;
  for (const char* name : {"t/notes.txt", "t/other.deucetrace", "t/ping-pong.deucetrace"}) {
    EXPECT_FALSE(file_text(folder.file(name)).empty()) << name;
  }
  const std::string first = folder.run("trace --out u").out;
  EXPECT_EQ(first.find("not of this run"), std::string::npos) << first;
}

TEST(TraceTool, BaseAndPingPongOfHopperAreCompared) {
  const Folder folder;
  const ToolOutput run =
      folder.run("trace --kernel hopper --rows 64 --head-dim 128 --compare base,pingpong --out t");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("ping-pong against base (simulated)"), std::string::npos) << run.out;
  EXPECT_EQ(run.out.find("overlap"), std::string::npos) << run.out;  // nothing shows when QK ran
  for (const char* name : {"base.deucetrace", "ping-pong.deucetrace", "edges.svg"}) {
    EXPECT_FALSE(file_text(folder.file(std::string("t/") + name)).empty()) << name;
  }
}

TEST(TraceTool, WhatARunDoesNotTakeIsRefusedByNameBeforeItRuns) {
  const struct {
    const char *line, *words;
  } cases[] = {
      {"--backend hopper --kernel blackwell", "--backend hopper runs the hopper kernel"},
      {"--backend hopper --blocks 2", "--blocks: of the emulator"},
      {"--backend hopper --costs low", "--costs: of the emulator"},
      {"--backend hopper --row-replicas 2", "row_replicas is 2: hopper has none"},
      {"--backend hopper --compare base,pingpong", "score_slots is 2: hopper takes"},
      {"--kernel hopper --compare base,pingpong", "score_slots is 2: hopper takes"},
      {"--kernel hopper --rows 64 --score-slots 3", "score_slots is 3: hopper takes"},
      {"--kernel hopper --write residency", "--write residency: hopper has no score slots"},
      {"--type e4m3", "kv_dtype is e4m3: blackwell takes"},
      {"--compare base,pingpong --score-slots 2", "exclude each other"},
      {"--kv-len 1,2 --batch 3", "3 requests, and --kv-len names 2"},
      {"--cold", "the emulator has no L2"},
      {"--keep newest", "of --backend hopper"},
      {"--hang-timeout 2", "of --backend hopper"},
      {"--backend hopper --hang-timeout nan", "'nan' is not a finite number"},
      {"--backend hopper --hang-timeout inf", "'inf' is not a finite number"},
      {"--backend hopper --hang-timeout 0", "'0' is not above 0"},
      {"--backend hopper --hang-timeout 1e9", "at most 1000000"},
      {"--subtract-self-cost", "records cost the emulator no virtual time"},
  };
  const Folder folder;
  for (const auto& refused : cases) {
    const ToolOutput run = folder.run(std::string("trace --out t ") + refused.line);
    EXPECT_NE(run.exit_code, 0) << refused.line;
    EXPECT_NE(run.err.find(refused.words), std::string::npos) << refused.line << "\n" << run.err;
    EXPECT_FALSE(std::filesystem::exists(folder.file("t"))) << refused.line;
  }
}

}  // namespace
}  // namespace deuce::cli
