// SPDX-License-Identifier: Apache-2.0
// The Blackwell kernel source in the emulator against double precision, and against itself over
// score slots and schedules: equal bit for bit.
#include <gtest/gtest.h>

#include <cstring>

#include "emulator/blackwell.h"
#include "emulator/decode_case.h"
#include "schedule/named_case.h"

namespace deuce {
namespace {

using emulator::DecodeCase;
using emulator::Mode;
using emulator::Options;
using emulator::RunName;
using emulator::RunResult;

RunResult run_case(DecodeCase& decode, int slots, const RunName& name, int workers) {
  decode.problem().score_slots = slots;
  const BlackwellPlan plan = plan_blackwell(decode.problem(), workers);
  std::vector<std::byte> workspace(workspace_of(plan).bytes);
  std::memset(workspace.data() + plan.counter_bytes, 0xff, plan.partial_bytes);
  decode.clear_results();
  Options options;
  options.run = name;
  RunResult result =
      emulator::run_blackwell(decode.problem(), plan, decode.call(), workspace.data(), options);
  expect_counters_at_zero(workspace, plan.counter_bytes);
  return result;
}

const std::vector<NamedCase>& cases() {
  static const std::vector<NamedCase> list{
      {"OneRequest", {}, 1},
      {"HeadDim128", {.head_dim = 128, .kv_len = {700}}, 1},
      {"OneBlockOfKeys", {.kv_len = {1, 128, 129}}, 1},
      {"EmptyRequests", {.kv_len = {0, 257, 0, 0, 64, 0}}, 2},
      {"CutItem", {.kv_len = {1300}}, 4},
      {"CutItemHeadDim128", {.head_dim = 128, .kv_len = {1000, 30}, .sink = true}, 3},
      {"SeveralHeads", {.group = 4, .kv_heads = 3, .kv_len = {200, 513}}, 2},
      {"OddGroup", {.group = 7, .kv_heads = 2, .kv_len = {300}, .q_len = 3, .causal = true}, 1},
      {"RowTiles", {.group = 12, .kv_len = {400}, .q_len = 15, .causal = true}, 2},
      {"Group128", {.group = 128, .kv_len = {300}, .q_len = 2, .causal = true}, 1},
      {"GrowingScores", {.kv_len = {900}, .growing = true}, 1},
      {"GrowingCut", {.head_dim = 128, .kv_len = {900}, .growing = true}, 3},
      {"Window",
       {.group = 5, .kv_len = {1000, 90}, .q_len = 4, .causal = true, .window_left = 300},
       2},
      {"WindowRight", {.kv_len = {500}, .q_len = 2, .window_left = 200, .window_right = 10}, 1},
      {"Softcap", {.kv_len = {300}, .softcap = 5.0F}, 1},
      {"NegativeScale", {.kv_len = {300}, .scale = -0.2F}, 1},
      {"Sinks", {.group = 6, .kv_len = {0, 140}, .sink = true}, 1},
      {"Ragged", {.group = 8, .kv_len = {300, 20, 150}, .q_lens = {3, 0, 5}, .causal = true}, 2},
      {"Start", {.kv_len = {500, 300}, .kv_start = {130, 299}}, 2},
      {"Pages8", {.kv_len = {300, 77}, .page_size = 8}, 2},
      {"Pages12", {.kv_len = {300}, .page_size = 12}, 1},
      {"Pages16", {.group = 3, .kv_heads = 2, .kv_len = {290}, .page_size = 16}, 1},
      {"Pages24", {.head_dim = 128, .kv_len = {150, 20}, .page_size = 24}, 2},
      {"Pages32", {.group = 6, .kv_len = {300}, .page_size = 32, .bf16 = false}, 1},
      {"Pages128", {.kv_len = {400, 129}, .page_size = 128}, 2},
      {"Pages64Window", {.head_dim = 128, .kv_len = {400}, .page_size = 64, .window_left = 100}, 1},
      {"Pages200", {.kv_len = {900}, .page_size = 200}, 2},
      {"Pages256Start", {.kv_len = {600}, .kv_start = {37}, .page_size = 256}, 1},
      {"FixedSplits", {.kv_len = {900, 100}, .num_splits = 3}, 2},
      {"SplitTree", {.kv_len = {1700, 100, 700}, .split_kv_len = 128}, 3},
      {"SplitTreeWindow",
       {.head_dim = 128, .kv_len = {1500}, .window_left = 900, .sink = true, .split_kv_len = 256},
       2},
      {"Half", {.head_dim = 128, .kv_len = {300}, .bf16 = false}, 1},
      {"MoreRowsThanKeys", {.group = 4, .kv_len = {3}, .q_len = 6, .causal = true}, 1},
      {"NaNKeys", {.kv_len = {64}, .nan_keys = true}, 1},
      {"Replicas4", {.kv_len = {700}, .row_replicas = 4}, 1},
      {"Replicas4NaNKeys", {.kv_len = {64}, .row_replicas = 4, .nan_keys = true}, 1},
      {"Replicas4Growing", {.kv_len = {900}, .row_replicas = 4, .growing = true}, 1},
      {"Replicas4Empty", {.kv_len = {0, 257, 0, 1}, .sink = true, .row_replicas = 4}, 2},
      {"Replicas4CutHeadDim128",
       {.head_dim = 128, .kv_len = {1000, 30}, .sink = true, .row_replicas = 4},
       3},
      {"Replicas4OddGroup",
       {.group = 7, .kv_heads = 2, .kv_len = {300}, .q_len = 3, .causal = true, .row_replicas = 4},
       1},
      {"Replicas4Ragged",
       {.group = 8,
        .kv_len = {300, 20, 150},
        .q_lens = {3, 0, 1},
        .causal = true,
        .row_replicas = 4},
       2},
      {"Replicas4Window",
       {.group = 5,
        .kv_len = {1000, 90},
        .q_len = 4,
        .causal = true,
        .window_left = 300,
        .row_replicas = 4},
       2},
      {"Replicas4SplitTree",
       {.kv_len = {1700, 100, 700}, .split_kv_len = 128, .row_replicas = 4},
       3},
      {"Replicas4SoftcapPages",
       {.kv_len = {300}, .page_size = 12, .softcap = 5.0F, .row_replicas = 4},
       1},
      {"Replicas2RowTiles",
       {.group = 12, .kv_len = {400}, .q_len = 15, .causal = true, .row_replicas = 2},
       2},
      {"Replicas2FixedSplits",
       {.group = 40, .kv_len = {900, 100}, .num_splits = 3, .row_replicas = 2},
       2},
      {"Replicas2HalfNegativeScale",
       {.head_dim = 128, .kv_len = {300, 80}, .scale = -0.2F, .bf16 = false, .row_replicas = 2},
       1},
  };
  return list;
}

class Blackwell : public testing::TestWithParam<NamedCase> {};

TEST_P(Blackwell, MatchesTheReferenceAndItselfOverSlots) {
  const NamedCase& param = GetParam();
  DecodeCase decode(param.spec);
  std::vector<uint16_t> out;
  std::vector<float> lse;
  for (int slots = 1; slots <= 3; ++slots) {
    const RunResult result = run_case(decode, slots, {Mode::timed, 0, 1}, param.workers);
    EXPECT_EQ(result.report.text(), "") << "slots " << slots;
    if (slots == 1) {
      EXPECT_EQ(decode.difference(), "");
      out = decode.out();
      lse = decode.lse();
    }
    EXPECT_EQ(decode.out(), out) << "slots " << slots;
    EXPECT_EQ(std::memcmp(decode.lse().data(), lse.data(), lse.size() * sizeof(float)), 0);
  }
}

TEST_P(Blackwell, IsCleanAndEqualUnderEverySchedule) {
  const NamedCase& param = GetParam();
  DecodeCase decode(param.spec);
  run_case(decode, 2, {Mode::timed, 0, 1}, param.workers);
  const std::vector<uint16_t> out = decode.out();
  for (const RunName& name : emulator::runs(12, 7)) {
    for (int slots = 1; slots <= 3; ++slots) {
      const RunResult result = run_case(decode, slots, name, param.workers);
      ASSERT_EQ(result.report.text(), "") << name.text() << ", slots " << slots;
      ASSERT_EQ(decode.out(), out) << name.text() << ", slots " << slots;
    }
  }
}

RunResult run_strictly(int slots, bool strict_order, Mode mode) {
  DecodeCase decode({.kv_len = {700, 300}, .growing = true});
  decode.problem().score_slots = slots;
  const BlackwellPlan plan = plan_blackwell(decode.problem(), 2);
  std::vector<std::byte> workspace(workspace_of(plan).bytes);
  Options options;
  options.run = {mode, 0, 1};
  options.strict = true;
  options.strict_order = strict_order;
  return emulator::run_blackwell(decode.problem(), plan, decode.call(), workspace.data(), options);
}

constexpr Mode kModes[] = {Mode::timed, Mode::eager, Mode::lazy, Mode::random, Mode::adversarial};

// QK of block c + slots overwrites the P that PV of block c reads: another accumulator.
TEST(StrictMode, ReportsTheRelianceOnTheTensorPipe) {
  for (int slots = 1; slots <= 3; ++slots) {
    for (const Mode mode : kModes) {
      const RunResult result = run_strictly(slots, false, mode);
      EXPECT_TRUE(result.report.has("H2")) << result.report.text();
      EXPECT_NE(result.report.text().find("S/P slot"), std::string::npos) << result.report.text();
    }
  }
}

TEST(StrictMode, FindsNothingElseInTheKernelThatWaits) {
  for (int slots = 2; slots <= 3; ++slots) {
    for (const Mode mode : kModes) {
      EXPECT_EQ(run_strictly(slots, true, mode).report.text(), "") << slots << " slots";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Blackwell, testing::ValuesIn(cases()),
                         [](const auto& named) { return std::string(named.param.name); });

}  // namespace
}  // namespace deuce
