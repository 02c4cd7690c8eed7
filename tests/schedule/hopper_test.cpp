// SPDX-License-Identifier: Apache-2.0
// The Hopper kernel source in the emulator against double precision, and against itself over
// schedules: equal bit for bit, without a finding above a note.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "emulator/decode_case.h"
#include "emulator/hopper.h"
#include "schedule/named_case.h"

namespace deuce {
namespace {

using emulator::DecodeCase;
using emulator::Finding;
using emulator::Mode;
using emulator::Options;
using emulator::Report;
using emulator::RunName;
using emulator::RunResult;
using emulator::Severity;

/// What stands in a report beside H4: ldmatrix reads by the generic proxy, and TMA overwrites a
/// tile behind the barrier alone, as kernels for Hopper do everywhere.
std::string beside_slot_reuse(const Report& report) {
  std::string text = report.incomplete_reason();
  for (const Finding& finding : report.findings()) {
    if (finding.severity == Severity::note && finding.check == "H4") continue;
    text += finding.check + "  " + finding.text + "\n";
  }
  return text;
}

RunResult run_case(DecodeCase& decode, const RunName& name, int workers, int score_slots = 0,
                   emulator::OpFilter* filter = nullptr) {
  decode.problem().score_slots = score_slots;
  decode.problem().row_replicas = 0;
  decode.problem().emulated = Backend::hopper;
  EXPECT_EQ(hopper::check_problem(decode.problem()).sentence(), "");
  EXPECT_EQ(hopper::check_call(decode.problem(), decode.call()).sentence(), "");
  const WorkspaceNeed need = emulator::hopper_workspace(decode.problem(), workers);
  std::vector<std::byte> workspace(need.bytes);
  std::memset(workspace.data() + need.control_bytes, 0xff, need.bytes - need.control_bytes);
  decode.clear_results();
  Options options;
  options.run = name;
  options.filter = filter;
  RunResult result =
      emulator::run_hopper(decode.problem(), workers, decode.call(), workspace.data(), options);
  expect_counters_at_zero(workspace, need.control_bytes);
  return result;
}

const std::vector<NamedCase>& cases() {
  static const std::vector<NamedCase> list{
      {"OneRequest", {.kv_len = {700}}, 1},
      {"RingGoesRound", {.head_dim = 128, .kv_len = {900}}, 1},
      {"OneTile", {.kv_len = {1, 64, 65}}, 1},
      {"EmptyRequests", {.kv_len = {0, 257, 0, 0, 64, 0}}, 2},
      {"CutItem", {.kv_len = {1300}}, 4},
      {"CutItemHeadDim128", {.head_dim = 128, .kv_len = {1000, 30}, .sink = true}, 3},
      {"ManyParts", {.group = 4, .kv_len = {64 * 36}}, 36},
      // Equal requests: whole parts of items, with and without a worker left over.
      {"WholeParts", {.kv_heads = 2, .kv_len = {700, 645}}, 12},
      {"WholePartsOneLeft", {.head_dim = 128, .kv_heads = 3, .kv_len = {500}, .sink = true}, 16},
      {"WholePartsOneTile", {.kv_len = {64 * 5}, .page_size = 16}, 5},
      {"WholePartsWindow", {.group = 3, .kv_len = {900, 900}, .window_left = 300}, 6},
      {"WholePartsRows64", {.head_dim = 128, .group = 33, .kv_len = {700}}, 3},
      {"WholePartsRowTiles", {.group = 12, .kv_len = {300, 300}, .q_len = 11, .causal = true}, 12},
      {"WholePartsLong", {.kv_len = {64 * 40}}, 2},
      {"WholePartsStarts", {.kv_len = {700, 800}, .kv_start = {30, 130}}, 4},
      {"WholePartsOfNothing", {.kv_len = {0, 0}}, 4},
      {"ManyEqualRequests", {.kv_len = std::vector<int32_t>(33, 70)}, 33},
      {"OneWorkerAnItem", {.kv_heads = 4, .kv_len = {200}}, 4},
      {"UnequalItems", {.kv_heads = 2, .kv_len = {700, 100}}, 12},
      {"LongStretches", {.kv_len = {64 * 130}}, 2},
      {"SeveralHeads", {.group = 4, .kv_heads = 3, .kv_len = {200, 513}}, 2},
      {"OddGroup", {.group = 7, .kv_heads = 2, .kv_len = {300}, .q_len = 3, .causal = true}, 1},
      {"FourRowGroups", {.group = 12, .kv_len = {400, 90}, .q_len = 5, .causal = true}, 2},
      {"RowTiles", {.group = 12, .kv_len = {300}, .q_len = 11, .causal = true}, 2},
      {"RowTiles128",
       {.head_dim = 128, .group = 8, .kv_len = {260}, .q_len = 9, .causal = true},
       3},
      {"GrowingScores", {.kv_len = {900}, .growing = true}, 1},
      {"GrowingCut", {.head_dim = 128, .kv_len = {900}, .growing = true}, 3},
      {"Window",
       {.group = 5, .kv_len = {1000, 90}, .q_len = 3, .causal = true, .window_left = 300},
       2},
      {"Softcap", {.kv_len = {300}, .softcap = 5.0F}, 1},
      {"NegativeScale", {.kv_len = {300}, .scale = -0.2F}, 1},
      {"Sinks", {.group = 6, .kv_len = {0, 140}, .sink = true}, 1},
      {"Ragged", {.group = 8, .kv_len = {300, 20, 150}, .q_lens = {2, 0, 1}, .causal = true}, 2},
      {"Start", {.kv_len = {500, 300}, .kv_start = {130, 299}}, 2},
      {"Pages1", {.kv_len = {100, 7}, .page_size = 1}, 2},
      {"Pages4", {.head_dim = 128, .kv_len = {150}, .page_size = 4}, 1},
      {"Pages12", {.kv_len = {300}, .page_size = 12}, 1},
      {"Pages16", {.group = 3, .kv_heads = 2, .kv_len = {290}, .page_size = 16}, 1},
      {"Pages24", {.head_dim = 128, .kv_len = {150, 20}, .page_size = 24}, 2},
      {"Pages64Window", {.head_dim = 128, .kv_len = {400}, .page_size = 64, .window_left = 100}, 1},
      {"Pages256Start", {.kv_len = {600}, .kv_start = {37}, .page_size = 256}, 1},
      {"FixedSplits", {.kv_len = {900, 100}, .num_splits = 3}, 2},
      {"SplitTree", {.kv_len = {1700, 100, 700}, .split_kv_len = 128}, 3},
      {"SplitTreeWindow",
       {.head_dim = 128, .kv_len = {1500}, .window_left = 900, .sink = true, .split_kv_len = 256},
       2},
      {"Half", {.head_dim = 128, .kv_len = {300}, .bf16 = false}, 1},
      {"HalfRows64", {.group = 40, .kv_len = {300}, .bf16 = false}, 2},
      {"E4m3", {.kv_len = {1700}, .e4m3 = true}, 1},
      {"E4m3HeadDim128", {.head_dim = 128, .kv_len = {900, 70}, .e4m3 = true}, 2},
      {"E4m3Pages2", {.kv_len = {130}, .page_size = 2, .e4m3 = true}, 1},
      {"E4m3Pages1", {.kv_heads = 2, .kv_len = {130, 7}, .page_size = 1, .e4m3 = true}, 2},
      {"E4m3Pages5Window",
       {.group = 20, .kv_len = {300}, .page_size = 5, .window_left = 70, .e4m3 = true},
       2},
      {"E4m3HalfRows64",
       {.head_dim = 128, .group = 33, .kv_len = {260}, .bf16 = false, .e4m3 = true},
       2},
      {"Rows64HeadDim128", {.head_dim = 128, .group = 33, .kv_len = {1700, 90}}, 2},
      {"Rows64OneTile", {.group = 17, .kv_len = {1, 64, 65}}, 1},
      {"Rows64Growing", {.head_dim = 128, .group = 20, .kv_len = {900}, .growing = true}, 2},
      {"Rows64Pages4", {.head_dim = 128, .group = 18, .kv_len = {150}, .page_size = 4}, 1},
      {"Rows64Pages16", {.head_dim = 128, .group = 24, .kv_len = {700}, .page_size = 16}, 2},
      {"Rows64Pages24Window",
       {.head_dim = 128, .group = 24, .kv_len = {400}, .page_size = 24, .window_left = 100},
       2},
      {"Rows64Pages256Start",
       {.group = 64, .kv_len = {600}, .kv_start = {37}, .page_size = 256},
       1},
      {"Rows64Softcap",
       {.group = 6, .kv_len = {300}, .q_len = 6, .causal = true, .softcap = 5.0F},
       1},
      {"Rows64FixedSplits", {.group = 32, .kv_len = {900, 100}, .num_splits = 3}, 2},
      {"Rows64SplitTree",
       {.head_dim = 128, .group = 32, .kv_len = {1700, 100}, .split_kv_len = 128},
       3},
      {"Rows128", {.group = 16, .kv_heads = 2, .kv_len = {700, 90}, .q_len = 8, .causal = true}, 2},
      {"Rows128Half", {.head_dim = 128, .group = 65, .kv_len = {500}, .bf16 = false}, 2},
      {"Rows128SplitTree", {.group = 70, .kv_len = {900}, .split_kv_len = 128}, 2},
      {"Rows64NaNKeys", {.group = 30, .kv_len = {64}, .nan_keys = true}, 1},
      {"MoreRowsThanKeys", {.group = 4, .kv_len = {3}, .q_len = 4, .causal = true}, 1},
      {"NaNKeys", {.kv_len = {64}, .nan_keys = true}, 1},
  };
  return list;
}

class Hopper : public testing::TestWithParam<NamedCase> {};

TEST_P(Hopper, MatchesTheReferenceAndItselfUnderEverySchedule) {
  const NamedCase& param = GetParam();
  DecodeCase decode(param.spec);
  std::vector<uint16_t> out;
  std::vector<float> lse;
  for (const RunName& name : emulator::runs(9, 7)) {
    const RunResult result = run_case(decode, name, param.workers);
    ASSERT_EQ(beside_slot_reuse(result.report), "") << name.text();
    if (out.empty()) {
      ASSERT_EQ(decode.difference(), "");
      out = decode.out();
      lse = decode.lse();
    }
    ASSERT_EQ(decode.out(), out) << name.text();
    ASSERT_EQ(std::memcmp(decode.lse().data(), lse.data(), lse.size() * sizeof(float)), 0);
  }
}

/// Cases of the warpgroup engine, which has kernels with one score slot and with two.
bool has_two_slots(const emulator::CaseSpec& spec) {
  return spec.group * spec.q_len > 16 && !spec.e4m3;
}

TEST_P(Hopper, GivesTheSameBitsWithTwoScoreSlots) {
  const NamedCase& param = GetParam();
  if (!has_two_slots(param.spec)) return;
  DecodeCase decode(param.spec);
  run_case(decode, {}, param.workers, 1);
  const std::vector<uint16_t> out = decode.out();
  const std::vector<float> lse = decode.lse();
  for (const RunName& name : emulator::runs(3, 11)) {
    const RunResult result = run_case(decode, name, param.workers, 2);
    ASSERT_EQ(beside_slot_reuse(result.report), "") << name.text();
    ASSERT_EQ(decode.out(), out) << name.text();
    ASSERT_EQ(std::memcmp(decode.lse().data(), lse.data(), lse.size() * sizeof(float)), 0);
  }
}

/// Counts operations of one kind by CTA.
class Counts final : public emulator::OpFilter {
 public:
  Counts(emulator::OpKind kind, int workers) : kind_(kind), by_cta_(workers) {}
  bool pass(emulator::Op& op, const emulator::OpContext& context) override {
    if (op.kind == kind_) ++by_cta_[static_cast<std::size_t>(context.block)];
    return true;
  }
  const std::vector<int>& by_cta() const { return by_cta_; }

 private:
  emulator::OpKind kind_;
  std::vector<int> by_cta_;
};

std::vector<int> count(const char* name, emulator::OpKind kind) {
  const auto& named = *std::find_if(cases().begin(), cases().end(), [&](const NamedCase& row) {
    return std::string_view(row.name) == name;
  });
  DecodeCase decode(named.spec);
  Counts counts(kind, named.workers);
  run_case(decode, {}, named.workers, 0, &counts);
  return counts.by_cta();
}

// A warp that ends a part of an item adds to a counter once, and a box brings one tile here.
TEST(HopperSchedule, EqualRequestsGiveEveryWorkerOnePartOfOneItem) {
  const std::vector<int> parts = count("WholeParts", emulator::OpKind::atomic_add);
  EXPECT_GT(parts[0], 0);
  EXPECT_EQ(parts, std::vector<int>(12, parts[0]));
  std::vector<int> but_one = count("WholePartsOneLeft", emulator::OpKind::atomic_add);
  EXPECT_EQ(but_one.back(), 0);
  but_one.pop_back();
  EXPECT_GT(but_one[0], 0);
  EXPECT_EQ(but_one, std::vector<int>(15, but_one[0]));
  const std::vector<int> unequal = count("UnequalItems", emulator::OpKind::atomic_add);
  EXPECT_NE(unequal, std::vector<int>(12, unequal[0]));
  const std::vector<int> tiles = count("WholePartsLong", emulator::OpKind::copy_tensor);
  EXPECT_EQ(tiles, (std::vector<int>{40, 40})) << "20 tiles of K and of V each";
}

INSTANTIATE_TEST_SUITE_P(Cases, Hopper, testing::ValuesIn(cases()),
                         [](const auto& named) { return std::string(named.param.name); });

}  // namespace
}  // namespace deuce
