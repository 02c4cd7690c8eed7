// SPDX-License-Identifier: Apache-2.0
// `deuce check`: runs a GPU kernel's source in the emulator under many schedules and says what was
// found and what was explored. Exits 0 only when the verdict is clean.
#include "emulator/check.h"

#include "emulator/blackwell.h"
#include "emulator/explore_decode.h"
#include "emulator/hopper_timing.h"
#include "emulator/timing_report.h"

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <memory>

#include "command.h"
#include "decode_options.h"
#include "interrupt.h"
#include "options.h"

namespace deuce::cli {
namespace {

struct CheckOptions : DecodeOptions {
  emulator::CheckSettings settings;
  std::string replay;
  int32_t explored_case = 0;  // from 1; 0 = all
  bool timing = false, explore = false;
};

constexpr const char* kExplanation =
    "Verdicts (the exit code says the same):\n"
    "  clean       nothing above a note, every schedule ran to its end, every edge was exercised\n"
    "              (a slot of it used again, and somebody had to block), all results equal bit "
    "for\n"
    "              bit and within the tolerance of double precision\n"
    "  review      findings that a human must judge\n"
    "  incomplete  stopped early, or a part of the barrier table was never exercised\n"
    "  error       a race, a deadlock, a wrong descriptor or a wrong result\n"
    "Each schedule runs twice: on random content, and on content whose scores grow with every\n"
    "block of keys, so that every block asks for a rescale. docs/emulator.md names the checks.";

ExitCode exit_code_of(const emulator::CheckResult& result) {
  switch (result.verdict) {
    case emulator::Verdict::clean: return ExitCode::ok;
    case emulator::Verdict::review: return ExitCode::review;
    case emulator::Verdict::incomplete: return ExitCode::incomplete;
    case emulator::Verdict::error: break;
  }
  return result.report.has_error() ? ExitCode::hazard : ExitCode::check_failed;
}

/// "1 timed, 1 eager, 1 lazy, 12 random, 5 adversarial"
std::string modes_text(const std::vector<emulator::RunName>& runs) {
  std::string text;
  for (const auto& [mode, name] :
       {std::pair{emulator::Mode::timed, "timed"}, std::pair{emulator::Mode::eager, "eager"},
        std::pair{emulator::Mode::lazy, "lazy"}, std::pair{emulator::Mode::random, "random"},
        std::pair{emulator::Mode::adversarial, "adversarial"}}) {
    int count = 0;
    for (const emulator::RunName& run : runs) count += run.mode == mode ? 1 : 0;
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  }
  return text.empty() ? "none" : text;
}

void print(const CheckOptions& options, const emulator::CheckResult& result) {
  const emulator::CheckSettings& settings = options.settings;
  const emulator::CaseSpec& spec = settings.spec;
  const std::string variant =
      options.on_hopper() ? ""
                          : fmt::format(" {} score slot{}, {} row replica{}{},", spec.score_slots,
                                        spec.score_slots == 1 ? "" : "s", result.row_replicas,
                                        result.row_replicas == 1 ? "" : "s",
                                        spec.row_replicas == 0 ? " (as a plan chooses)" : "");
  fmt::print("kernel      {}, head dim {},{} {}{}\n", options.kernel, spec.head_dim, variant,
             options.type, settings.strict ? ", ptx-strict" : "");
  fmt::print("problem     {}, {} CTAs\n", problem_text(spec), settings.blocks);
  fmt::print("schedules   {}; seed {}\n", modes_text(result.runs), settings.seed);
  fmt::print("edges       {} of {} exercised{}\n", result.exercised_edges(), result.total_edges(),
             options.on_hopper() ? "" : fmt::format("; {} rescales", result.rescales));
  std::string phases;
  for (const emulator::EdgeCount& edge : result.edges) {
    phases += fmt::format("{}{} {}", phases.empty() ? "" : ", ", edge.name, edge.use.phases);
  }
  fmt::print("phases      {}\n", phases);
  if (!result.unequal.empty()) {
    fmt::print("results     differ between the first schedule and {}\n", result.unequal);
  } else if (!result.difference.empty()) {
    fmt::print("results     {}\n", result.difference);
  } else if (!result.report.has_error()) {
    fmt::print("results     equal bit for bit, within tolerance of double precision\n");
  }
  fmt::print("verdict     {}\n", emulator::name_of(result.verdict));
  if (const std::string text = result.report.text(); !text.empty()) fmt::print("\n{}", text);
}

/// Refuses what was given beside `mode` and what it takes.
Status refuse_others(const CheckOptions& options, std::string_view mode,
                     const std::vector<std::string_view>& takes) {
  for (const std::string& name : options.given) {
    if (name == mode || std::find(takes.begin(), takes.end(), name) != takes.end()) continue;
    return invalid(name.substr(2), "{}: {} takes {} and nothing else", name, mode,
                   fmt::join(takes, ", "));
  }
  return {};
}

Result<ExitCode> predict_hopper(const CheckOptions& options) {
  const emulator::CaseSpec& spec = options.spec;
  Status others = refuse_others(options, "--timing",
                                {"--kernel", "--head-dim", "--rows", "--type", "--page-size"});
  if (!others.ok()) return others;
  if (options.type == "f16") {
    return unsupported("type", "--type f16: --timing of hopper knows bf16 and e4m3");
  }
  const Result<emulator::HopperTimingReport> report =
      emulator::predict_hopper_timing({.head_dim = spec.head_dim,
                                       .e4m3 = options.type == "e4m3",
                                       .rows = options.spec.group,
                                       .page_size = spec.page_size});
  if (!report.ok()) return report.status();
  fmt::print("{}", report.value().text());
  return ExitCode::ok;
}

Result<ExitCode> predict(const CheckOptions& options) {
  if (options.on_hopper()) return predict_hopper(options);
  Status others = refuse_others(options, "--timing", {"--kernel", "--head-dim", "--rows"});
  if (!others.ok()) return others;
  const Result<emulator::TimingReport> report =
      emulator::predict_timing(options.spec.head_dim, options.spec.group);
  if (!report.ok()) return report.status();
  fmt::print("{}", report.value().text());
  return ExitCode::ok;
}

/// Every interleaving of one kernel within small bounds, of one case where `only` is not 0.
ExitCode explore_kernel(int slots, int replicas, int only) {
  const emulator::ExploreSummary found = emulator::explore_decode(
      slots, replicas, emulator::kStateLimit, [] { return !interrupted(); }, only);
  const bool violated = !found.violation.kind.empty();
  fmt::print("slots {}, replicas {}: {} programs, {} states, at most {} in one: {}\n", slots,
             replicas, found.cases, found.states, found.most_states,
             violated        ? fmt::format("violation ({})", found.violation.kind)
             : found.clean() ? "complete, no violation"
                             : fmt::format("incomplete, {} programs ended", found.complete));
  if (violated) {
    fmt::print(
        "  {}\n  {}\n  replay: deuce check --explore --score-slots {} --row-replicas {} "
        "--case {}\n",
        found.last.text(), found.violation.text, slots, replicas, found.last_number);
    return ExitCode::hazard;
  }
  if (found.clean()) return ExitCode::ok;
  return interrupted() ? ExitCode::interrupted : ExitCode::incomplete;
}

/// A case has a number among those of one kernel.
Status check_case(const CheckOptions& options) {
  if (options.explored_case == 0) return {};
  if (!options.has("--score-slots") || options.spec.row_replicas == 0) {
    return invalid("case", "--case needs --score-slots and --row-replicas: it counts their cases");
  }
  const std::size_t cases =
      emulator::explore_cases(options.spec.score_slots, options.spec.row_replicas).size();
  if (static_cast<std::size_t>(options.explored_case) <= cases) return {};
  return invalid("case", "--case: {} of {} cases", options.explored_case, cases);
}

/// All slots and replicas, or those that were asked for.
Result<ExitCode> explore(const CheckOptions& options) {
  if (options.on_hopper()) {
    return unsupported("explore", "--explore: explored is the blackwell kernel only");
  }
  Status others = refuse_others(options, "--explore",
                                {"--kernel", "--score-slots", "--row-replicas", "--case"});
  if (!others.ok()) return others;
  std::vector<int> all_slots{1, 2, 3}, all_replicas{1, 2, 4};
  if (options.has("--score-slots")) all_slots = {options.spec.score_slots};
  if (options.spec.row_replicas != 0) all_replicas = {options.spec.row_replicas};
  Status bad =
      emulator::check_compiled({.score_slots = all_slots[0], .row_replicas = all_replicas[0]});
  if (bad.ok()) bad = check_case(options);
  if (!bad.ok()) return bad;
  catch_interrupt();
  fmt::print("programs    recorded from the kernel: blackwell, head dim 64, bf16\n");
  fmt::print("bounds      {}\n", emulator::explore_bounds());
  ExitCode worst = ExitCode::ok;
  for (const int replicas : all_replicas) {
    for (const int slots : all_slots) {
      if (worst == ExitCode::ok) worst = explore_kernel(slots, replicas, options.explored_case);
    }
  }
  fmt::print("verdict     {}\n", worst == ExitCode::ok       ? "complete within bounds"
                                 : worst == ExitCode::hazard ? "error"
                                                             : "incomplete");
  return worst;
}

Result<ExitCode> check(const CheckOptions& options) {
  if (options.timing) return predict(options);
  if (options.explore) return explore(options);
  if (!options.replay.empty() && options.has("--schedules")) {
    return invalid("schedules", "--schedules: --replay runs one schedule");
  }
  if (options.has("--case")) return invalid("case", "--case belongs to --explore");
  const Result<emulator::CaseSpec> spec = spec_of(options);
  if (!spec.ok()) return spec.status();
  emulator::CheckSettings settings = options.settings;
  settings.spec = spec.value();
  settings.seed = static_cast<uint64_t>(options.seed);
  if (!options.replay.empty()) {
    settings.replay = emulator::parse_run_name(options.replay, settings.seed);
    if (!settings.replay) {
      return invalid("replay",
                     "--replay: '{}' is not timed/0, eager/0, lazy/0, adversarial/0 to {} or "
                     "random/N",
                     options.replay, emulator::kAdversarialRoles - 1);
    }
  }
  catch_interrupt();
  const Result<emulator::CheckResult> result =
      emulator::check(settings, [](int, int) { return !interrupted(); });
  if (!result.ok()) return result.status();
  CheckOptions shown = options;
  shown.settings = settings;
  print(shown, result.value());
  return interrupted() ? ExitCode::interrupted : exit_code_of(result.value());
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand(
      "check", "Run a GPU kernel's source in the emulator and look for hazards");
  auto options = std::make_shared<CheckOptions>();
  emulator::CheckSettings& settings = options->settings;
  add_decode_options(command, *options);
  integer_option(command, "--blocks", settings.blocks, 1, "CTAs of the grid; default 4", 64);
  integer_option(command, "--schedules", settings.schedules, 1, "how many; default 20", 1 << 20);
  command
      .add_option("--replay", options->replay,
                  "one schedule as a finding names it, such as random/17")
      ->type_name("MODE/N");
  command.add_flag("--strict", settings.strict, "assume only what the PTX text promises");
  command.add_flag("--strict-order", settings.strict_order,
                   "the kernel that waits for PV before QK reuses its slot");
  command.add_flag("--explore", options->explore,
                   "instead, every interleaving of the kernel within small bounds");
  integer_option(command, "--case", options->explored_case, 1,
                 "beside --explore, one case as a violation names it");
  command.add_flag("--timing", options->timing, "instead, simulated cycles of a KV block or tile");
  command.footer(kExplanation);
  command.callback([options, &command, &action] {
    note_given(command, *options);
    action = [options] { return check(*options); };
  });
}

}  // namespace deuce::cli
