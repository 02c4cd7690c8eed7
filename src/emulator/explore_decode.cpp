// SPDX-License-Identifier: Apache-2.0
// Cases and recordings of the Blackwell kernel; see explore_decode.h.
#include "emulator/explore_decode.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "emulator/blackwell.h"
#include "emulator/blackwell_variants.h"
#include "emulator/decode_case.h"

namespace deuce::emulator {
namespace {

constexpr int kKeys = 128;  // of a KV block
constexpr uint32_t kAlways = ~uint32_t{0};

/// `kernel`: slots, ring and replicas.
void add_cases(std::vector<ExploreCase>& list, const ExploreCase& kernel, int blocks) {
  const auto add = [&](std::vector<int> items, uint32_t even, uint32_t odd, int quarters = 1,
                       int splits = 0) {
    ExploreCase what = kernel;
    what.blocks = std::move(items);
    what.rescale[0] = even;
    what.rescale[1] = odd;
    what.quarters = quarters;
    what.splits = splits;
    list.push_back(std::move(what));
  };
  const uint32_t patterns = 1u << (blocks - 1);  // the first block of an item never rescales
  for (uint32_t pattern = 0; pattern < patterns; ++pattern) {
    const bool is_end = pattern == 0 || pattern == patterns - 1;
    if (is_end || kernel.kv_slots <= kPatternTiles) add({blocks}, pattern, pattern);
  }
  const int second = kernel.kv_slots <= kPatternTiles ? kMostBlocks : 1;
  add({blocks, second}, 0, 0);
  add({blocks, second}, kAlways, kAlways);
  if (kernel.kv_slots > kQuarterTiles) return;
  add({blocks}, 0, 0, 2);  // two quarters that drift apart, with like and unlike choices
  add({blocks}, kAlways, 0, 2);
  add({blocks}, kAlways, kAlways, 2);
  if (blocks > 1) add({blocks}, kAlways, kAlways, 1, 2);  // cut in two: staged, merged
}

}  // namespace

std::string explore_bounds() {
  return fmt::format(
      "1 to {} KV blocks an item, rings of {} to {} tiles, one and two items, whole and cut;\n"
      "            every choice of blocks that rescale up to {} tiles, none and all of them "
      "above;\n"
      "            one of the four lane quarters, two up to {} tiles",
      kMostBlocks, kFewestTiles, kMostTiles, kPatternTiles, kQuarterTiles);
}

std::string ExploreCase::text() const {
  const char* what = part == Part::whole    ? "tiles and pieces"
                     : part == Part::pieces ? "pieces alone"
                                            : "tiles alone";
  return fmt::format(
      "{} score slots, {} row replicas, ring of {} tiles, items of {} blocks{}, rescale {:#b} and "
      "{:#b}, {} of 4 lane quarters, {}",
      score_slots, row_replicas, kv_slots, fmt::join(blocks, " and "),
      splits > 0 ? fmt::format(" in {} parts", splits) : "", rescale[0], rescale[1], quarters,
      what);
}

std::vector<ExploreCase> explore_cases(int score_slots, int row_replicas) {
  std::vector<ExploreCase> list;
  for (int ring = kFewestTiles; ring <= kMostTiles; ++ring) {
    for (int blocks = 1; blocks <= kMostBlocks; ++blocks) {
      add_cases(list, {score_slots, ring, row_replicas}, blocks);
    }
  }
  // The list of pieces has a ring of its own, which five items go round; and all of it together.
  ExploreCase pieces{score_slots, kFewestTiles, row_replicas, {1, 1, 1, 1, 1}};
  pieces.part = Part::pieces;
  list.push_back(pieces);
  for (const std::vector<int>& items : {std::vector<int>{2}, {1, 1}}) {
    ExploreCase whole{score_slots, kFewestTiles, row_replicas, items, {kAlways, kAlways}};
    whole.part = Part::whole;
    list.push_back(whole);
  }
  return list;
}

Recording record_decode(const ExploreCase& what, const RunName& run) {
  CaseSpec spec;
  spec.num_splits = what.splits;
  spec.row_replicas = what.row_replicas;
  spec.kv_len.clear();
  for (const int blocks : what.blocks) spec.kv_len.push_back(kKeys * blocks);
  DecodeCase decode(spec);
  decode.problem().score_slots = what.score_slots;
  const BlackwellPlan plan = plan_blackwell(decode.problem(), 1);
  std::vector<std::byte> workspace(workspace_of(plan).bytes);
  Recorder recorder(*blackwell_spec({.score_slots = what.score_slots,
                                     .kv_slots = what.kv_slots,
                                     .row_replicas = what.row_replicas}),
                    [&](int warp, int vote) { return (what.rescale[warp % 2] >> vote & 1u) != 0; });
  Options options;
  options.run = run;
  options.kv_slots = what.kv_slots;
  options.filter = &recorder;
  const RunResult result =
      run_blackwell(decode.problem(), plan, decode.call(), workspace.data(), options);
  Recording recording = recorder.take();
  if (result.report.has_error()) recording.fault = result.report.text();
  return recording;
}

ExploreSummary explore_decode(int score_slots, int row_replicas, uint64_t state_limit,
                              const std::function<bool()>& go_on, int only) {
  ExploreSummary summary;
  const std::vector<ExploreCase> cases = explore_cases(score_slots, row_replicas);
  summary.cases = only > 0 ? 1 : static_cast<int>(cases.size());
  for (int number = 1; number <= static_cast<int>(cases.size()); ++number) {
    if (only > 0 && number != only) continue;
    if (!go_on()) break;
    const ExploreCase& what = cases[static_cast<std::size_t>(number - 1)];
    summary.last_number = number;
    const Recording recording = record_decode(what, {});
    const Exploration found = explore(make_model(recording, what.quarters, what.part), state_limit);
    summary.last = what;
    summary.states += found.states;
    summary.most_states = std::max(summary.most_states, found.states);
    summary.complete += found.complete ? 1 : 0;
    summary.violation = found.violation;
    if (!found.violation.kind.empty()) break;
  }
  return summary;
}

}  // namespace deuce::emulator
