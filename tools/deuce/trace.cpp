// SPDX-License-Identifier: Apache-2.0
// `deuce trace`: records a decode problem and writes what people look at: files for trace viewers,
// pictures, a page and a summary. Everything simulated says so.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "command.h"
#include "interrupt.h"
#include "trace_files.h"
#include "trace_options.h"

namespace deuce::cli {
namespace {

/// "base" and "pingpong" of --compare, and other counts of slots as "3slots".
Result<std::vector<int>> compared_slots(const std::string& list) {
  std::vector<int> slots;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string name = list.substr(begin, end - begin);
    if (name == "base") {
      slots.push_back(1);
    } else if (name == "pingpong") {
      slots.push_back(2);
    } else if (name == "3slots") {
      slots.push_back(3);
    } else {
      return invalid("compare", "--compare: '{}' is not one of base, pingpong, 3slots", name);
    }
    if (std::count(slots.begin(), slots.end(), slots.back()) > 1) {
      return invalid("compare", "--compare: '{}' is named twice, its files would be the same",
                     name);
    }
    begin = end + 1;
  }
  if (slots.size() < 2) return invalid("compare", "--compare needs two runs or more");
  return slots;
}

std::string label_of(int slots) {
  return slots == 1 ? "base" : slots == 2 ? "ping-pong" : fmt::format("{}-slots", slots);
}

/// A picture of 132 CTAs helps nobody.
void keep_blocks(trace::TraceFile& file, int count) {
  const std::size_t all = file.slices.size();
  std::erase_if(file.slices, [&](const trace::Slice& slice) {
    return slice.header.cta >= static_cast<uint32_t>(count);
  });
  if (file.slices.size() < all) {
    file.facts.problem += fmt::format("; the first {} CTAs shown", count);
  }
}

/// What only a GPU does, asked of the emulator.
Status refuse_on_emulator(const TraceOptions& options) {
  if (options.settings.cold) {
    return unsupported("cold", "--cold: the emulator has no L2, its copies are always from DRAM");
  }
  if (options.settings.hang_seconds > 0) {
    return unsupported("hang_timeout",
                       "--hang-timeout: of --backend hopper; the emulator reports a deadlock by "
                       "itself");
  }
  if (options.keep == "newest") {
    return unsupported("keep", "--keep newest: of --backend hopper; raise --records instead");
  }
  if (options.output.subtracts_self_cost) {
    return unsupported("subtract_self_cost",
                       "--subtract-self-cost: records cost the emulator no virtual time");
  }
  return {};
}

/// What only the emulator does, asked of a GPU.
Status refuse_on_gpu(const TraceOptions& options) {
  if (options.has("--kernel") && !options.on_hopper()) {
    return unsupported("kernel", "--backend hopper runs the hopper kernel, and --kernel is {}",
                       options.kernel);
  }
  if (options.has("--blocks")) {
    return unsupported("blocks",
                       "--blocks: of the emulator; --backend hopper has a CTA for each SM");
  }
  if (options.has("--costs")) {
    return unsupported("costs", "--costs: of the emulator; --backend hopper is measured");
  }
  return {};
}

Status refuse(const TraceOptions& options) {
  Status bad = options.on_gpu() ? refuse_on_gpu(options) : refuse_on_emulator(options);
  if (bad.ok() && (options.on_gpu() || options.on_hopper())) {
    bad = refuse_tensor_memory(options.output);
  }
  if (!bad.ok()) return bad;
  if (!options.compare.empty() && options.has("--score-slots")) {
    return invalid("compare", "--compare and --score-slots exclude each other");
  }
  return {};
}

/// The options as a run takes them.
Result<TraceSettings> settings_of(const TraceOptions& options) {
  DecodeOptions problem = options;
  if (options.on_gpu()) problem.kernel = "hopper";
  const Result<emulator::CaseSpec> spec = spec_of(problem);
  if (!spec.ok()) return spec.status();
  TraceSettings settings = options.settings;
  settings.spec = spec.value();
  settings.level = options.level == "full" ? trace::Level::full : trace::Level::edges;
  settings.keeps_newest = options.keep == "newest";
  return settings;
}

/// One after the other; all of them are refused or none.
Result<std::vector<Recorded>> record(const TraceOptions& options, const TraceSettings& settings,
                                     const std::vector<int>& slots) {
  std::vector<TraceSettings> runs;
  for (const int count : slots) {
    TraceSettings& one = runs.emplace_back(settings);
    one.spec.score_slots = count;
    const bool plain_hopper = options.compare.empty() && one.spec.kernel == Backend::hopper;
    one.label = plain_hopper ? "hopper" : label_of(count);
    if (Status bad = check_traced(one); !bad.ok()) return bad;
  }
  std::vector<Recorded> recorded;
  for (const TraceSettings& one : runs) {
    Result<Recorded> run = options.on_gpu() ? trace_on_hopper(one) : trace_on_emulator(one);
    if (!run.ok()) return run.status();
    keep_blocks(run.value().file, options.ctas);
    recorded.push_back(std::move(run.value()));
  }
  return recorded;
}

/// Recorded runs are drawn as new ones are.
Result<ExitCode> draw_again(const TraceOptions& options) {
  if (Status bad = refuse_beside_files(options.given, options.output); !bad.ok()) return bad;
  const Result<std::vector<trace::Timeline>> runs = timelines_of(options.from);
  if (!runs.ok()) return runs.status();
  const Status status = write_trace(options.output, {}, runs.value());
  if (!status.ok()) return status;
  return ExitCode::ok;
}

Result<ExitCode> trace(const TraceOptions& options) {
  end_at_interrupt("deuce trace: stopped by Ctrl-C; nothing was written\n");
  if (!options.from.empty()) return draw_again(options);
  if (Status bad = refuse(options); !bad.ok()) return bad;
  const Result<TraceSettings> settings = settings_of(options);
  if (!settings.ok()) return settings.status();
  std::vector<int> slots{settings.value().spec.score_slots};
  if (!options.compare.empty()) {
    const Result<std::vector<int>> compared = compared_slots(options.compare);
    if (!compared.ok()) return compared.status();
    slots = compared.value();
  }
  const Result<std::vector<Recorded>> recorded = record(options, settings.value(), slots);
  if (!recorded.ok()) return recorded.status();
  std::vector<trace::Timeline> runs;
  for (const Recorded& one : recorded.value()) {
    Result<trace::Timeline> run = trace::make_timeline(one.file);
    if (!run.ok()) return run.status();
    runs.push_back(std::move(run.value()));
  }
  const Status status = write_trace(options.output, recorded.value(), runs);
  if (!status.ok()) return status;
  return ExitCode::ok;
}

}  // namespace

void add_trace(CLI::App& app, Action& action) {
  CLI::App& command =
      *app.add_subcommand("trace", "Record a kernel's timeline and write pictures of it");
  auto options = std::make_shared<TraceOptions>();
  add_trace_options(command, *options);
  command.callback([options, &command, &action] {
    note_given(command, *options);
    action = [options] { return trace(*options); };
  });
}

}  // namespace deuce::cli
