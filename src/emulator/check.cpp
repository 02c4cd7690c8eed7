// SPDX-License-Identifier: Apache-2.0
// Runs schedules over two contents and sums up; see check.h.
#include "emulator/check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "emulator/blackwell.h"
#include "emulator/decode_kernel.h"

namespace deuce::emulator {
namespace {

/// One content of the problem with the results of its first run.
struct Content {
  explicit Content(const CaseSpec& spec) : growing(spec.growing), decode(spec) {}
  bool growing;
  DecodeCase decode;
  std::vector<std::byte> workspace;  // kept from run to run: counters must reset themselves
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
  const auto kernel = make_decode_kernel(decode.problem(), settings.blocks);
  content.workspace.resize(kernel->workspace().bytes);
  decode.clear_results();
  Options options;
  options.run = name;
  options.strict = settings.strict;
  options.strict_order = settings.strict_order;
  options.filter = settings.filter;
  const RunResult run = kernel->run(decode.call(), content.workspace.data(), options);
  result.report.merge(run.report);
  for (EdgeCount& edge : result.edges) edge.use.add(run.edges[edge.row]);
  result.rescales += run.rescales;
  if (result.cycles == 0 && name.mode == Mode::timed) result.cycles = run.cycles;
  if (run.report.has_error()) return;
  const std::string where =
      fmt::format("\n            on {} content", content.growing ? "growing" : "random");
  if (!content.has_run && result.difference.empty()) {
    result.difference = decode.difference();
    if (!result.difference.empty()) {
      result.difference += fmt::format("{}\n  replay: {}", where, replay_text(options));
    }
  }
  if (!content.equals_first_run() && result.unequal.empty()) {
    // Two schedules differ, so no single one shows it.
    result.unequal = fmt::format("{}{}\n  the same command repeats both", name.text(), where);
  }
}

void judge(CheckResult& result) {
  std::vector<std::string> idle;
  for (const EdgeCount& edge : result.edges) {
    if (!edge.exercised()) idle.push_back(edge.name);
  }
  // An error ends the run early; what that left out says nothing.
  if (!idle.empty() && !result.report.has_error()) {
    result.report.mark_incomplete(fmt::format(
        "not exercised: {} (no slot was used again, or nobody had to block); a longer "
        "problem, another cut or more schedules do it (--kv-len, --batch, --num-splits, "
        "--blocks, --schedules)",
        fmt::join(idle, ", ")));
  }
  result.verdict = result.report.verdict();
  if (!result.difference.empty() || !result.unequal.empty()) result.verdict = Verdict::error;
}

/// What is compiled of the Blackwell kernel; `replicas` becomes what the plan takes.
Status check_blackwell_variant(const CheckSettings& settings, const Problem& problem,
                               int& replicas) {
  replicas = plan_blackwell(problem, settings.blocks).row_replicas;
  return check_compiled({.head_dim = settings.spec.head_dim,
                         .score_slots = settings.spec.score_slots,
                         .bf16 = settings.spec.bf16,
                         .strict_order = settings.strict_order,
                         .row_replicas = replicas});
}

Status check_hopper_variant(const CheckSettings& settings) {
  if (!settings.strict_order) return {};
  return unsupported("strict_order", "strict_order is set: only blackwell has such a kernel");
}

}  // namespace

int CheckResult::exercised_edges() const {
  return static_cast<int>(std::count_if(edges.begin(), edges.end(),
                                        [](const EdgeCount& edge) { return edge.exercised(); }));
}

Result<CheckResult> check(const CheckSettings& settings, const CheckProgress& progress) {
  CaseSpec plain = settings.spec, growing = settings.spec;
  plain.growing = false;
  growing.growing = true;  // every block of keys asks for a rescale
  std::array<Content, 2> contents{Content(plain), Content(growing)};
  const Problem& problem = contents[0].decode.problem();
  CheckResult result;
  Status bad = check_kernel(problem);
  if (bad.ok()) {
    bad = problem.emulated == Backend::hopper
              ? check_hopper_variant(settings)
              : check_blackwell_variant(settings, problem, result.row_replicas);
  }
  const auto kernel = bad.ok() ? make_decode_kernel(problem, settings.blocks) : nullptr;
  if (bad.ok()) bad = kernel->check_call(contents[0].decode.call());
  if (!bad.ok()) return bad;
  Options options;
  options.strict_order = settings.strict_order;
  const std::vector<Edge>& table = kernel->spec(options).edges;
  for (std::size_t row = 0; row < table.size(); ++row) {
    if (table[row].kind == EdgeKind::implied) continue;
    result.edges.push_back(
        {std::string(table[row].name), row, table[row].kind == EdgeKind::named, {}});
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
