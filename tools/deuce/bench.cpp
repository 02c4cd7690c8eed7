// SPDX-License-Identifier: Apache-2.0
// `deuce bench`: one row for each point of the axes. Ctrl-C keeps what was measured.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "bench_axes.h"
#include "bench_compare.h"
#include "bench_figures.h"
#include "bench_plot.h"
#include "bench_report.h"
#include "bench_run.h"
#include "command.h"
#include "interrupt.h"
#include "output_file.h"
#include "presets.h"

namespace deuce::cli {
namespace {

struct BenchOptions {
  BenchAxes axes;
  std::string save;  // file of the JSON object, beside the table
  bool json = false, list = false;
  BenchSettings settings;
};

Result<ExitCode> list(const BenchOptions& options) {
  const std::string file = options.axes.trace_file();
  // An installed tool does not have the repository's.
  const bool exists = !options.axes.trace.empty() || std::filesystem::exists(file);
  const auto cases = exists ? read_trace(file, {}, options.axes.batches, 1)
                            : Result<std::vector<LengthCase>>(std::vector<LengthCase>{});
  if (!cases.ok()) return cases.status();
  fmt::print("{:<21}{:>8} {:>9} {:>9}  {}\n", "preset", "q heads", "kv heads", "head dim",
             "features");
  for (const Preset& preset : kPresets) {
    std::string features;
    if (preset.window_left >= 0) features += fmt::format(" window_left {}", preset.window_left);
    if (preset.sinks) features += " sinks";
    if (preset.softcap > 0) features += fmt::format(" softcap {}", preset.softcap);
    fmt::print("{:<21}{:>8} {:>9} {:>9} {}\n", preset.name, preset.q_heads, preset.kv_heads,
               preset.head_dim, features);
  }
  if (cases.value().empty()) {
    fmt::print("\nno recorded batches here: --case looks for {}; --trace FILE names another file\n",
               file);
    return ExitCode::ok;
  }
  fmt::print("\n{:<36}{:>8} {:>11} {:>9}\n", "case of " + file, "batch", "keys", "longest");
  for (const LengthCase& one : cases.value()) {
    int64_t keys = 0;
    for (const int32_t length : one.kv_lens) keys += length;
    fmt::print("{:<36}{:>8} {:>11} {:>9}\n", one.name, one.kv_lens.size(), keys,
               *std::max_element(one.kv_lens.begin(), one.kv_lens.end()));
  }
  return ExitCode::ok;
}

Status save(const std::string& path, const std::string& json) {
  if (path.empty()) return {};
  const std::filesystem::path file(path);
  const std::string folder = file.parent_path().string();
  return save_in(folder.empty() ? "." : folder, file.filename().string(), json);
}

void print_row(const BenchPoint& point) {
  fmt::print("{}", bench_row(point));
  if (!point.explanation.empty()) fmt::print("{}\n", point.explanation);
  std::fflush(stdout);
}

Result<ExitCode> bench(const BenchOptions& options) {
  if (options.list) return list(options);
  const auto shapes = points_of(options.axes);
  if (!shapes.ok()) return shapes.status();
  if (options.settings.execution.backend == Backend::emulator) {
    return unsupported("backend",
                       "backend emulator: the time it takes is not a GPU's; deuce check --timing "
                       "and deuce bench figure9 show simulated times");
  }
  Result<std::unique_ptr<Device>> device = open_device(options.settings.execution.backend);
  if (!device.ok()) return device.status();
  MachineFacts machine = machine_facts();
  machine.gpu = device.value()->gpu();
  catch_interrupt();
  if (!options.json) fmt::print("{}", bench_header(machine));
  BenchRun run;
  const Status status = measure_all(shapes.value(), options.settings, *device.value(), run,
                                    [&](const BenchPoint& point) {
                                      if (!options.json) print_row(point);
                                    });
  // A later point that fails does not take back the ones before it.
  if (status.ok() || !run.points.empty()) {
    const std::string json = bench_json(machine, options.settings, run.points, interrupted());
    if (options.json) fmt::print("{}", json);
    if (Status saved = save(options.save, json); !saved.ok()) return saved;
  }
  if (!status.ok()) return status;
  if (!options.json) fmt::print("{}{}", bench_fits(run.points), bench_legend());
  if (run.wrong()) return ExitCode::check_failed;
  return interrupted() ? ExitCode::interrupted : ExitCode::ok;
}

/// An option that would have no effect is a misunderstanding; `why` ends the sentence.
void refuse_given(const CLI::App& command, std::initializer_list<std::string_view> allowed,
                  const std::string& why) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (option->count() > 0 && std::find(allowed.begin(), allowed.end(), name) == allowed.end())
      throw CLI::ValidationError(name, why);
  }
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("bench", "Measure speed next to the machine's read roof");
  command.footer(
      "Each point is checked against double precision before it is timed. Between two reads of the "
      "same\n"
      "bytes four times the last-level cache is read, a GPU's L2 likewise; a GPU replays a "
      "captured "
      "graph.\n"
      "Sampling stops when the median's 95 % interval is within --noise of it, or after "
      "--seconds.\n"
      "Ctrl-C prints what was measured and exits with 130.");
  auto options = std::make_shared<BenchOptions>();
  command.add_flag("--json", options->json, "one JSON object instead of the table (docs/cli.md)");
  command.add_option("--save", options->save, "also write the JSON object to FILE")
      ->type_name("FILE");
  command.add_flag("--list", options->list, "show presets and cases");
  command.add_flag("--explain", options->settings.explain,
                   "print as JSON how the backend computes each point");
  command.add_flag("--hot", options->settings.hot,
                   "read one cache again and again: small ones stay in the chip");
  add_axis_options(command, options->axes);
  add_sampling_options(command, options->settings);
  add_execution_options(command, options->settings.execution);
  add_bench_compare(command, action);
#ifdef DEUCE_HAS_EMULATOR
  add_bench_plot(command, action);
  add_bench_figures(command, action);
#endif
  command.require_subcommand(0, 1);
  command.callback([options, &command, &action] {
    if (!command.get_subcommands().empty()) {  // compare and the others act for themselves
      const std::string name = command.get_subcommands().front()->get_name();
      refuse_given(command, {}, "an option of measuring, without effect on bench " + name);
      return;
    }
    if (options->list)
      refuse_given(command, {"--list", "--trace", "--batch"}, "without effect on --list");
    action = [options] { return bench(*options); };
  });
}

}  // namespace deuce::cli
