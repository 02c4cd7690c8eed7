// SPDX-License-Identifier: Apache-2.0
// `deuce bench`: presets times lengths, one row each. Ctrl-C keeps what was measured.
#include <algorithm>
#include <cstdio>

#include "bench_report.h"
#include "command.h"
#include "interrupt.h"
#include "lengths.h"
#include "options.h"
#include "presets.h"
#include "progress.h"
#include "units.h"

namespace deuce::cli {
namespace {

struct BenchOptions {
  std::vector<std::string> presets, cases;
  std::vector<int64_t> batches, kv_lens;
  std::string lengths = "data/decode_batches.json";
  int32_t divide = 1;
  BenchShape shape;  // what is common to all points
  bool json = false, list = false;
  BenchSettings settings;
};

constexpr int32_t kMaxBenchBatch = 1 << 16, kMaxBenchKeys = 1 << 26;

const Preset* find_preset(std::string_view name) {
  const auto found = std::find_if(kPresets.begin(), kPresets.end(),
                                  [name](const Preset& preset) { return preset.name == name; });
  return found == kPresets.end() ? nullptr : &*found;
}

/// The model side of the points: presets, or one shape of explicit flags.
Result<std::vector<BenchShape>> model_shapes(const BenchOptions& options) {
  const bool explicit_shape =
      options.shape.q_heads > 0 || options.shape.kv_heads > 0 || options.shape.head_dim > 0;
  std::vector<BenchShape> shapes;
  if (explicit_shape) {
    if (!options.presets.empty())
      return invalid("preset", "--preset and --q-heads, --kv-heads, --head-dim exclude each other");
    if (options.shape.q_heads == 0 || options.shape.kv_heads == 0 || options.shape.head_dim == 0) {
      return invalid("q-heads", "--q-heads, --kv-heads and --head-dim must be given together");
    }
    shapes.push_back(options.shape);
    shapes.back().preset = fmt::format("{}:{} x {}", options.shape.q_heads, options.shape.kv_heads,
                                       options.shape.head_dim);
    return shapes;
  }
  std::vector<std::string> names = options.presets;
  if (names.empty()) names = {"llama3-8b"};
  if (names == std::vector<std::string>{"all"}) {
    names.clear();
    for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  }
  for (const std::string& name : names) {
    const Preset* preset = find_preset(name);
    if (preset == nullptr) {
      return invalid("preset", "--preset: {} is not a preset (deuce bench --list shows them)",
                     io::quoted_name(name));
    }
    BenchShape shape = options.shape;
    shape.preset = name;
    shape.q_heads = preset->q_heads;
    shape.kv_heads = preset->kv_heads;
    shape.head_dim = preset->head_dim;
    shape.window_left = preset->window_left;
    shape.sinks = preset->sinks;
    shape.softcap = preset->softcap;
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

/// The request side: cases of the length file, or batch times length.
Result<std::vector<LengthCase>> batches(const BenchOptions& options) {
  std::vector<LengthCase> result;
  if (options.cases.empty()) {
    if (options.divide != 1) return invalid("divide", "--divide goes with --case");
    for (const int64_t batch :
         options.batches.empty() ? std::vector<int64_t>{8} : options.batches) {
      for (const int64_t keys :
           options.kv_lens.empty() ? std::vector<int64_t>{8192} : options.kv_lens) {
        result.push_back({"", std::vector<int32_t>(static_cast<std::size_t>(batch),
                                                   static_cast<int32_t>(keys))});
      }
    }
    return result;
  }
  if (!options.batches.empty() || !options.kv_lens.empty()) {
    return invalid("case", "--case and --batch, --kv-len exclude each other");
  }
  const auto all = read_length_cases(options.lengths);
  if (!all.ok()) return all.status();
  for (const std::string& name : options.cases) {
    Result<LengthCase> one = find_case(options.lengths, all.value(), name, options.divide);
    if (!one.ok()) return one.status();
    result.push_back(std::move(one.value()));
  }
  return result;
}

Result<ExitCode> list(const BenchOptions& options) {
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
  const auto cases = read_length_cases(options.lengths);
  if (!cases.ok()) return cases.status();
  fmt::print("\n{:<36}{:>8} {:>11} {:>9}\n", "case of " + options.lengths, "batch", "keys",
             "longest");
  for (const LengthCase& one : cases.value()) {
    int64_t keys = 0;
    for (const int32_t length : one.kv_lens) keys += length;
    fmt::print("{:<36}{:>8} {:>11} {:>9}\n", one.name, one.kv_lens.size(), keys,
               *std::max_element(one.kv_lens.begin(), one.kv_lens.end()));
  }
  return ExitCode::ok;
}

struct Outcome {
  std::vector<BenchPoint> points;
  bool wrong = false;
};

/// Measures all shapes; prints each row at once unless JSON is wanted.
Status measure_all(const BenchOptions& options, const std::vector<BenchShape>& shapes,
                   Device& device, Outcome& outcome) {
  Progress progress;
  for (std::size_t i = 0; i < shapes.size() && !interrupted(); ++i) {
    const auto stage = [&](std::string_view what) {
      progress.show(fmt::format("[{}/{}] {} {}: {}", i + 1, shapes.size(), shapes[i].preset,
                                shapes[i].lengths, what));
    };
    Result<BenchPoint> point = measure_point(shapes[i], options.settings, device, stage);
    progress.clear();
    if (!point.ok()) return point.status();
    if (point.value().samples.sorted_s.empty() && point.value().check.ok)
      break;  // interrupted before the first
    outcome.wrong = outcome.wrong || !point.value().check.ok;
    if (!options.json) {
      fmt::print("{}", bench_row(point.value()));
      if (!point.value().explanation.empty()) fmt::print("{}\n", point.value().explanation);
      std::fflush(stdout);
    }
    outcome.points.push_back(std::move(point.value()));
  }
  return {};
}

Result<ExitCode> bench(const BenchOptions& options) {
  if (options.list) return list(options);
  const auto models = model_shapes(options);
  if (!models.ok()) return models.status();
  const auto lens = batches(options);
  if (!lens.ok()) return lens.status();
  std::vector<BenchShape> shapes;
  for (const BenchShape& model : models.value()) {
    for (const LengthCase& one : lens.value()) {
      shapes.push_back(model);
      shapes.back().lengths = one.name;
      shapes.back().kv_lens = one.kv_lens;
    }
  }
  Result<std::unique_ptr<Device>> device = open_device(options.settings.execution.backend);
  if (!device.ok()) return device.status();
  const MachineFacts machine = machine_facts();
  catch_interrupt();
  if (!options.json) fmt::print("{}", bench_header(machine));
  Outcome outcome;
  const Status status = measure_all(options, shapes, *device.value(), outcome);
  // A later point that fails does not take back the ones before it.
  if (options.json && (status.ok() || !outcome.points.empty())) {
    fmt::print("{}", bench_json(machine, options.settings, outcome.points, interrupted()));
  }
  if (!status.ok()) return status;
  if (!options.json) fmt::print("{}", bench_legend());
  if (outcome.wrong) return ExitCode::check_failed;
  return interrupted() ? ExitCode::interrupted : ExitCode::ok;
}

/// "1,8,64": every part an integer in range.
Status read_list(std::string_view text, int64_t highest, std::vector<int64_t>& target) {
  for (;;) {
    const auto comma = text.find(',');
    const Result<int64_t> number = parse_integer(text.substr(0, comma), 1, highest);
    if (!number.ok()) return number.status();
    target.push_back(number.value());
    if (comma == std::string_view::npos) return {};
    text.remove_prefix(comma + 1);
  }
}

void add_shape_options(CLI::App& command, BenchOptions& options) {
  constexpr const char* kGroup = "What is measured (every preset with every length)";
  BenchShape& shape = options.shape;
  const auto group = [&](CLI::Option* option) { option->group(kGroup); };
  group(command
            .add_option("--preset", options.presets,
                        "shape of a model's layer; all = every one (default llama3-8b)")
            ->type_name("NAME,..")
            ->delimiter(','));
  group(text_option(command, "--batch", "N,..", "requests (default 8)",
                    [&options](const std::string& text) {
                      return read_list(text, kMaxBenchBatch, options.batches);
                    }));
  group(text_option(command, "--kv-len", "N,..", "keys of every request (default 8192)",
                    [&options](const std::string& text) {
                      return read_list(text, kMaxBenchKeys, options.kv_lens);
                    }));
  group(command.add_option("--case", options.cases, "real lengths: cases of the length file")
            ->type_name("NAME,..")
            ->delimiter(','));
  group(command
            .add_option("--lengths", options.lengths,
                        "the length file (default data/decode_batches.json)")
            ->type_name("FILE"));
  group(
      integer_option(command, "--divide", options.divide, 1, "divide the lengths of a case by N"));
  group(integer_option(command, "--q-len", shape.q_len, 1, "new tokens of each request (default 1)",
                       1024));
  group(text_option(command, "--dtype", "TYPE", "of K and V: bf16 (default), f16, f32, e4m3, e5m2",
                    [&shape](const std::string& text) {
                      const Result<DType> type = parse_dtype(text);
                      if (type.ok()) shape.dtype = type.value();
                      return type.status();
                    }));
  group(integer_option(command, "--page", shape.page_size, 0,
                       "slots of a page, ids shuffled (default 16); 0 = contiguous", 1 << 20));
  group(command.add_flag_callback(
      "--hnd", [&shape] { shape.layout = Layout::hnd; },
      "cache in head-major order (default NHD)"));
  group(integer_option(command, "--q-heads", shape.q_heads, 1, "instead of a preset", 4096));
  group(integer_option(command, "--kv-heads", shape.kv_heads, 1, "instead of a preset", 4096));
  group(integer_option(command, "--head-dim", shape.head_dim, 1, "instead of a preset", 4096));
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("bench", "Measure speed next to the machine's read roof");
  command.footer(
      "Each point is checked against double precision before it is timed. Between two reads of "
      "the\n"
      "same bytes four times the last-level cache is read. Sampling stops when the median's "
      "standard\n"
      "error is below --noise, or after --seconds. Ctrl-C prints what was measured and exits with "
      "130.");
  auto options = std::make_shared<BenchOptions>();
  command.add_flag("--json", options->json, "one JSON object instead of the table (docs/cli.md)");
  command.add_flag("--list", options->list, "show presets and cases");
  command.add_flag("--explain", options->settings.explain,
                   "print as JSON how the backend computes each point");
  text_option(command, "--seconds", "X", "longest sampling of a point (default 5)",
              [options](const std::string& text) {
                const Result<double> seconds = parse_number(text);
                if (!seconds.ok()) return seconds.status();
                if (seconds.value() <= 0)
                  return invalid("", "{} is not above 0", io::quoted_name(text));
                options->settings.limits.longest_s = seconds.value();
                options->settings.limits.shortest_s =
                    std::min(options->settings.limits.shortest_s, seconds.value());
                return Status{};
              });
  text_option(command, "--noise", "X",
              "error of the median that is good enough, percent (default 0.5)",
              [options](const std::string& text) {
                const Result<double> percent = parse_number(text);
                if (!percent.ok()) return percent.status();
                if (percent.value() < 0)
                  return invalid("", "{} is negative", io::quoted_name(text));
                options->settings.limits.noise = percent.value() / 100;
                return Status{};
              });
  integer_option(command, "--seed", options->settings.seed, 0,
                 "of tensors and page ids (default 1)", std::numeric_limits<int64_t>::max());
  add_shape_options(command, *options);
  add_execution_options(command, options->settings.execution);
  command.callback([options, &action] { action = [options] { return bench(*options); }; });
}

}  // namespace deuce::cli
