// SPDX-License-Identifier: Apache-2.0
// `deuce trace --from`: recorded files are drawn as the run itself was, side by side in their
// order, and what is no trace or no question to one is refused.
#include <gtest/gtest.h>

#include "cli/tool.h"
#include "trace/trace_file.h"

namespace deuce::cli {
namespace {

/// A file of the emulator as one that a GPU would leave.
void make_measured(const Folder& folder, const std::string& from, const std::string& to) {
  Result<trace::TraceFile> file = trace::decode_trace(file_text(folder.file(from)), from);
  ASSERT_TRUE(file.ok()) << file.status().sentence();
  trace::Facts& facts = file.value().facts;
  facts.simulated = false;
  facts.costs.clear();
  facts.chip = "a GPU";
  facts.clock_hz = 1.5e9;
  facts.driver = "580.1";
  facts.recorded = "2026-11-30";
  facts.cycles = 1.064 * facts.untraced_cycles;
  facts.self_cost = 3;
  std::ofstream(folder.file(to), std::ios::binary) << trace::encode(file.value());
}

void expect_same_files(const Folder& folder, const std::string& first, const std::string& second) {
  int compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.file(second))) {
    const std::string name = entry.path().filename().string();
    EXPECT_TRUE(file_text(entry.path()) == file_text(folder.file(first + "/" + name))) << name;
    ++compared;
  }
  EXPECT_GE(compared, 5);
}

TEST(TraceFrom, DrawsWhatTheRunItselfDrew) {
  const struct {
    const char *run, *files;
  } cases[] = {
      {"--compare base,pingpong --level full", "base ping-pong"},
      {"--compare 3slots,base --batch 0 --blocks 2 --time cycles", "3-slots base"},
      {"--kernel hopper --type e4m3 --costs low --growing", "hopper"},
      {"--kernel hopper --rows 64 --compare base,pingpong --records 90", "base ping-pong"},
  };
  for (const auto& one : cases) {
    const Folder folder;
    const ToolOutput run = folder.run(fmt::format("trace --out run {}", one.run));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const bool cycles = std::string(one.run).find("--time cycles") != std::string::npos;
    const ToolOutput again =
        folder.shell(fmt::format("cd run\nfor f in {}; do set -- \"$@\" $f.deucetrace; "
                                 "done\n\"$DEUCE\" trace --out ../again {} --from \"$@\"",
                                 one.files, cycles ? "--time cycles" : ""));
    ASSERT_EQ(again.exit_code, 0) << again.err;
    expect_same_files(folder, "run", "again");
  }
}

TEST(TraceFrom, FilesOfAFewCtasAndRecordsAreSmallEnoughToKeep) {
  const Folder folder;
  const ToolOutput run = folder.run(
      "trace --kernel hopper --kv-len 32768 --ctas 1 --blocks 2 --write records --out t");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_LT(std::filesystem::file_size(folder.file("t/hopper.deucetrace")), 100'000U);
}

TEST(TraceFrom, MeasuredAndSimulatedRunsAreToldApart) {
  const Folder folder;
  ASSERT_EQ(folder.run("trace --kernel hopper --write records --out t").exit_code, 0);
  make_measured(folder, "t/hopper.deucetrace", "h200.deucetrace");
  const ToolOutput run = folder.run("trace --from h200.deucetrace t/hopper.deucetrace --out both");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const char* words :
       {"run         h200 (measured): hopper", "run         hopper (simulated): hopper",
        "recorded    2026-11-30, driver 580.1, commit ", "+6.4 % cycles against the run",
        "hopper (simulated) against h200 (measured)"}) {
    EXPECT_NE(run.out.find(words), std::string::npos) << words << "\n" << run.out;
  }
  const std::string picture = file_text(folder.file("both/timeline.svg"));
  for (const char* words :
       {">h200<", ">hopper<", ">measured: a GPU, 1.500 GHz", "; tracer +6.4 % cycles; 2026-11-30<",
        ">simulated: H200 (model), 1.810 GHz",
        "1000 cycles are 667 ns of h200, 552 ns of hopper"}) {
    EXPECT_NE(picture.find(words), std::string::npos) << words;
  }
  const ToolOutput net =
      folder.run("trace --from h200.deucetrace --subtract-self-cost --write summary --out n");
  EXPECT_NE(net.out.find("3.0 cycles a record, taken off"), std::string::npos)
      << net.out << net.err;
}

TEST(TraceFrom, RunsOfOneNameAreToldApartByTheirPaths) {
  const Folder folder;
  for (const char* out : {"before/x", "after/x"}) {
    ASSERT_EQ(folder.run(fmt::format("trace --write records --out {}", out)).exit_code, 0);
  }
  const ToolOutput run = folder.run(
      "trace --from before/x/ping-pong.deucetrace after/x/ping-pong.deucetrace --write summary");
  for (const char* words :
       {"run         before/x/ping-pong (", "run         after/x/ping-pong ("}) {
    EXPECT_NE(run.out.find(words), std::string::npos) << words << "\n" << run.out << run.err;
  }
  const ToolOutput twice =
      folder.run("trace --from before/x/ping-pong.deucetrace ./before/x/ping-pong.deucetrace");
  EXPECT_EQ(twice.err, "deuce trace: --from: ./before/x/ping-pong.deucetrace is named twice\n");
  EXPECT_EQ(twice.exit_code, 2);
}

TEST(TraceFrom, ALabelThatOneRunHasAloneStays) {
  const Folder folder;
  for (const char* line :
       {"--out a", "--out b", "--kernel hopper --out c", "--kernel hopper --out ping-pong"}) {
    ASSERT_EQ(folder.run(fmt::format("trace --write records {}", line)).exit_code, 0);
  }
  const ToolOutput one = folder.run(
      "trace --from a/ping-pong.deucetrace c/hopper.deucetrace b/ping-pong.deucetrace "
      "--write summary");
  for (const char* words : {"run         a/ping-pong (", "run         hopper (simulated)",
                            "run         b/ping-pong ("}) {
    EXPECT_NE(one.out.find(words), std::string::npos) << words << "\n" << one.out << one.err;
  }
  // The end of a path may be the label of a run that keeps its own.
  folder.shell("cp c/hopper.deucetrace c/ping-pong.deucetrace");
  const ToolOutput taken = folder.run(
      "trace --from a/ping-pong.deucetrace c/ping-pong.deucetrace ping-pong/hopper.deucetrace "
      "--write summary");
  for (const char* words :
       {"run         ping-pong (", "run         c/ping-pong (", "run         ping-pong/hopper ("}) {
    EXPECT_NE(taken.out.find(words), std::string::npos) << words << "\n" << taken.out << taken.err;
  }
}

TEST(TraceFrom, APathThatIsNoTextIsRefusedWhereItWouldBeALabel) {
  const Folder folder;
  ASSERT_EQ(folder.run("trace --write records --out t").exit_code, 0);
  for (const char* name : {"a\xff", "a\xc3", "a\nb"}) {
    const std::string path = std::string(name) + "/ping-pong.deucetrace";
    folder.shell(fmt::format("mkdir '{0}'; cp t/ping-pong.deucetrace '{0}'", name));
    const ToolOutput alone = folder.run(fmt::format("trace --out o --from '{}'", path));
    EXPECT_EQ(alone.exit_code, 0) << alone.err;
    const ToolOutput both =
        folder.run(fmt::format("trace --out n --from t/ping-pong.deucetrace '{}'", path));
    EXPECT_EQ(both.exit_code, 2);
    EXPECT_EQ(both.err,
              fmt::format("deuce trace: {}: its label is another run's too, and its path, which "
                          "would tell them apart, is not text in UTF-8\n",
                          path));
    EXPECT_FALSE(std::filesystem::exists(folder.file("n")));
  }
  const ToolOutput accent = folder.shell(
      "mkdir caf\xc3\xa9; cp t/ping-pong.deucetrace caf\xc3\xa9\n"
      "\"$DEUCE\" trace --out m --from t/ping-pong.deucetrace caf\xc3\xa9/ping-pong.deucetrace");
  EXPECT_NE(accent.out.find("run         caf\xc3\xa9/ping-pong ("), std::string::npos)
      << accent.err;
}

TEST(TraceFrom, WhatIsNoTraceOrNoQuestionToOneIsRefusedBeforeAnythingIsWritten) {
  const Folder folder;
  ASSERT_EQ(folder.run("trace --write records --out t").exit_code, 0);
  ASSERT_EQ(folder.run("trace --kernel hopper --write records --out t").exit_code, 0);
  folder.shell(
      "echo foreign > foreign; head -c 500 t/hopper.deucetrace > cut; mkfifo pipe; : > none");
  const std::string file = "--from t/ping-pong.deucetrace ";
  const struct {
    std::string line;
    const char* sentence;
    int code = 2;
  } cases[] = {
      {"--from foreign", "foreign: not a trace of deuce"},
      {"--from none", "none: not a trace of deuce"},
      {"--from cut", "cut: the trace ends early"},
      {"--from t", "t: is a folder, not a file"},
      {"--from pipe", "pipe: is not a file"},
      {"--from /dev/zero", "/dev/zero: is not a file"},
      {"--from absent", "absent: cannot be opened"},
      {file + "cut", "cut: the trace ends early"},
      {file + "--kv-len 100", "--kv-len: of a new run; --from draws runs as they were recorded"},
      {file + "--backend hopper",
       "--backend: of a new run; --from draws runs as they were recorded"},
      {file + "--seed 1", "--seed: of a new run; --from draws runs as they were recorded"},
      {file + "--compare base,pingpong",
       "--compare: of a new run; --from draws runs as they were recorded"},
      {file + "--ctas 1", "--ctas: of a new run; --from draws runs as they were recorded"},
      {file + "--growing", "--growing: of a new run; --from draws runs as they were recorded"},
      {file + "--write records", "--write records: they are what --from names"},
      {file + "--write svg,edges", "--write edges: of the kernel, not of a run; leave out --from"},
      {file + "--write phases", "--write phases: of the kernel, not of a run; leave out --from"},
      {file + "--subtract-self-cost",
       "--subtract-self-cost: what a record of ping-pong cost is not known", 3},
      {file + "t/hopper.deucetrace --write residency",
       "--write residency: hopper has no score slots in tensor memory", 3},
  };
  for (const auto& refused : cases) {
    const ToolOutput run = folder.run("trace --out o " + refused.line);
    EXPECT_EQ(run.err, fmt::format("deuce trace: {}\n", refused.sentence)) << refused.line;
    EXPECT_EQ(run.exit_code, refused.code) << refused.line;
    EXPECT_FALSE(std::filesystem::exists(folder.file("o"))) << refused.line;
  }
}

}  // namespace
}  // namespace deuce::cli
