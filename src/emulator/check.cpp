// SPDX-License-Identifier: Apache-2.0
// Runs schedules over two contents and sums up; see check.h.
#include "emulator/check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "emulator/blackwell.h"

namespace deuce::emulator {
namespace {

/// One content of the problem with the results of its first run.
struct Content {
  explicit Content(const CaseSpec& spec) : decode(spec) {}
  DecodeCase decode;
  std::vector<uint16_t> out;
  std::vector<float> lse;
  bool has_run = false;

  bool equals_first_run() {
    if (!has_run) {
      out = decode.out();
      lse = decode.lse();
      has_run = true;
    }
    return out == decode.out() &&
           std::memcmp(lse.data(), decode.lse().data(), lse.size() * sizeof(float)) == 0;
  }
};

void run_once(Content& content, const RunName& name, const CheckSettings& settings,
              CheckResult& result) {
  DecodeCase& decode = content.decode;
  const BlackwellPlan plan = plan_blackwell(decode.problem(), settings.blocks);
  std::vector<std::byte> workspace(workspace_of(plan).bytes);
  decode.clear_results();
  Options options;
  options.run = name;
  options.strict = settings.strict;
  options.strict_order = settings.strict_order;
  options.filter = settings.filter;
  const RunResult run =
      run_blackwell(decode.problem(), plan, decode.call(), workspace.data(), options);
  result.report.merge(run.report);
  for (std::size_t i = 0; i < result.edges.size(); ++i) result.edges[i].phases += run.phases[i];
  result.rescales += run.rescales;
  if (result.cycles == 0 && name.mode == Mode::timed) result.cycles = run.cycles;
  if (run.report.has_error()) return;
  if (!content.has_run && result.difference.empty()) {
    decode.compute_reference();
    result.difference = decode.difference();
  }
  if (!content.equals_first_run() && result.unequal.empty()) result.unequal = name.text();
}

void judge(CheckResult& result) {
  std::vector<std::string> idle;
  for (const EdgeCount& edge : result.edges) {
    if (edge.phases == 0) idle.push_back(edge.name);
  }
  if (!idle.empty()) {
    result.report.mark_incomplete(fmt::format("never exercised: {}", fmt::join(idle, ", ")));
  }
  result.verdict = result.report.verdict();
  if (!result.difference.empty() || !result.unequal.empty()) result.verdict = Verdict::error;
}

}  // namespace

int CheckResult::exercised_edges() const {
  return static_cast<int>(std::count_if(edges.begin(), edges.end(),
                                        [](const EdgeCount& edge) { return edge.phases > 0; }));
}

Result<CheckResult> check(const CheckSettings& settings, const CheckProgress& progress) {
  CaseSpec plain = settings.spec, growing = settings.spec;
  plain.growing = false;
  growing.growing = true;  // every block of keys asks for a rescale
  std::array<Content, 2> contents{Content(plain), Content(growing)};
  if (Status bad = check_blackwell(contents[0].decode.problem()); !bad.ok()) return bad;
  const BlackwellPlan taken = plan_blackwell(contents[0].decode.problem(), settings.blocks);
  const blackwell::Config config{.head_dim = settings.spec.head_dim,
                                 .score_slots = settings.spec.score_slots,
                                 .bf16 = settings.spec.bf16,
                                 .strict_order = settings.strict_order,
                                 .row_replicas = taken.row_replicas};
  if (Status bad = check_compiled(config); !bad.ok()) return bad;
  CheckResult result;
  result.row_replicas = taken.row_replicas;
  for (const Edge& edge : blackwell_spec(config)->edges) {
    if (edge.kind != EdgeKind::implied) result.edges.push_back({std::string(edge.name), 0});
  }
  std::vector<RunName> names = runs(settings.schedules, settings.seed);
  if (settings.replay) names = {*settings.replay};
  const int total = 2 * static_cast<int>(names.size());
  int done = 0;
  for (const RunName& name : names) {
    for (Content& content : contents) {
      run_once(content, name, settings, result);
      if (progress && !progress(++done, total)) {
        result.report.mark_incomplete(fmt::format("stopped after {} of {} runs", done, total));
      }
      if (result.report.has_error() || !result.report.incomplete_reason().empty()) break;
    }
    result.runs.push_back(name);
    if (result.report.has_error() || !result.report.incomplete_reason().empty()) break;
  }
  if (names.empty()) result.report.mark_incomplete("no schedule was asked for");
  judge(result);
  return result;
}

}  // namespace deuce::emulator
