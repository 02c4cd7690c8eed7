// SPDX-License-Identifier: Apache-2.0
// `deuce trace`: records a decode problem and writes what people look at: files for trace viewers,
// pictures, a page and a summary. Everything simulated says so.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "command.h"
#include "emulator/blackwell.h"
#include "emulator/hopper.h"
#include "options.h"
#include "output_file.h"
#include "plan/hopper_shapes.h"
#include "record_trace.h"
#include "trace/figures.h"
#include "trace/page.h"
#include "trace/perfetto.h"
#include "trace/summary.h"

namespace deuce::cli {
namespace {

struct TraceOptions {
  TraceSettings settings;
  std::string backend = "emulator", kernel = "blackwell", type = "bf16", level = "edges";
  std::string compare, time = "ns", keep = "first", out = "deuce-trace";
  std::vector<std::string> write;
  int64_t kv_len = 2048, seed = 1;
  int32_t rows = 16, batch = 1, q_len = 1, ctas = 4;
  bool slots_given = false, subtracts_self_cost = false;
};

constexpr const char* kExplanation =
    "Files in DIR (--write names some of them; default all):\n"
    "  records    LABEL.deucetrace, what the tracer wrote\n"
    "  perfetto   trace.pftrace, for ui.perfetto.dev\n"
    "  json       trace.json, for chrome://tracing\n"
    "  summary    summary.txt\n"
    "  html       timeline.html, a page with zoom and hover that needs no network\n"
    "  svg        timeline.svg, four steady KV blocks of every run on one axis\n"
    "  residency, schedule, edges, phases   the figures of docs/tracing.md\n"
    "docs/tracing.md tells how to read them. Times of the emulator are simulated and say so.";

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

/// Figures of S/P slots, which only the Blackwell kernel has.
bool is_of_tensor_memory(const std::string& figure) {
  return figure == "residency" || figure == "schedule" || figure == "phases";
}

class Output {
 public:
  explicit Output(const TraceOptions& options) : options_(options) {}

  bool wants(const std::string& kind) const {
    const bool hopper = options_.backend == "hopper" || options_.kernel == "hopper";
    if (hopper && is_of_tensor_memory(kind)) return false;
    return options_.write.empty() ||
           std::find(options_.write.begin(), options_.write.end(), kind) != options_.write.end();
  }

  Status write(const std::vector<trace::TraceFile>& files,
               const std::vector<trace::Timeline>& runs) {
    if (wants("records")) {
      for (const trace::TraceFile& file : files) {
        put(file.facts.label + ".deucetrace", trace::encode(file));
      }
    }
    if (wants("perfetto")) {
      put("trace.pftrace",
          trace::perfetto_trace(
              runs, options_.time == "cycles" ? trace::TimeUnit::cycles : trace::TimeUnit::ns));
    }
    if (wants("json")) put("trace.json", trace::chrome_trace(runs));
    draw(runs);
    const std::string text = summary(runs);
    if (wants("summary")) {
      put("summary.txt", text);
      fmt::print("{}", text);
    }
    if (status_.ok()) fmt::print("\nwritten to {}: {}\n", options_.out, names_);
    return status_;
  }

 private:
  void draw(const std::vector<trace::Timeline>& runs) {
    if (wants("html")) put("timeline.html", trace::timeline_page(runs));
    if (wants("svg")) put("timeline.svg", trace::timeline_svg(runs));
    if (wants("residency")) put("residency.svg", trace::residency_svg(runs));
    if (wants("schedule")) {
      put("schedule.svg", trace::schedule_svg(runs));
      put("schedule_to_scale.svg", trace::schedule_to_scale_svg(runs));
    }
    if (wants("edges")) {
      const emulator::KernelSpec* kernel = kernel_of(runs.back().facts);
      if (kernel != nullptr) {
        put("edges.svg", trace::edges_svg(kernel->edges, kernel->roles, kernel->name));
      }
    }
    if (wants("phases")) put("phases.svg", trace::phases_svg());
  }

  const emulator::KernelSpec* kernel_of(const trace::Facts& facts) const {
    if (facts.kernel == "hopper") {
      const hopper::Element element = options_.type == "e4m3"  ? hopper::Element::e4m3
                                      : options_.type == "f16" ? hopper::Element::half
                                                               : hopper::Element::bf16;
      return &emulator::hopper_spec(hopper::select_shape(facts.head_dim, element, facts.rows,
                                                         options_.settings.spec.num_splits > 0));
    }
    return emulator::blackwell_spec({.head_dim = facts.head_dim,
                                     .score_slots = facts.score_slots,
                                     .bf16 = options_.type == "bf16",
                                     .row_replicas = facts.row_replicas});
  }

  void put(const std::string& name, const std::string& bytes) {
    if (!status_.ok()) return;
    status_ = save_in(options_.out, name, bytes);
    names_ += (names_.empty() ? "" : " ") + name;
  }

  std::string summary(const std::vector<trace::Timeline>& runs) const {
    std::string text;
    std::vector<trace::Summary> summaries;
    for (const trace::Timeline& run : runs) {
      summaries.push_back(
          trace::summarize(run, options_.subtracts_self_cost ? run.facts.self_cost : 0));
      text += (text.empty() ? "" : "\n") + trace::text_of(run, summaries.back());
    }
    for (std::size_t i = 1; i < runs.size(); ++i) {
      text += "\n" + trace::difference(runs[0], summaries[0], runs[i], summaries[i]);
    }
    return text;
  }

  const TraceOptions& options_;
  Status status_;
  std::string names_;
};

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
  if (options.subtracts_self_cost) {
    return unsupported("subtract_self_cost",
                       "--subtract-self-cost: records cost the emulator no virtual time");
  }
  return {};
}

/// What the Hopper kernel, or its traced build, does not have.
Status refuse_for_hopper(const TraceOptions& options) {
  const bool on_hopper = options.backend == "hopper";
  const char* given = on_hopper ? "--backend" : "--kernel";
  if (!options.compare.empty() || options.slots_given) {
    return unsupported("score_slots",
                       "{} hopper: the kernel has one score slot, so --compare and --score-slots "
                       "are refused",
                       given);
  }
  if (options.level == "full") {
    return unsupported("level", "{} hopper: the kernel has events of --level edges alone", given);
  }
  for (const std::string& figure : options.write) {
    if (!is_of_tensor_memory(figure)) continue;
    return unsupported("write", "--write {}: {} hopper has no score slots in tensor memory", figure,
                       given);
  }
  if (on_hopper && options.type == "e4m3") {
    return unsupported("type", "--backend hopper: compiled are traces of bf16");
  }
  return {};
}

Status refuse(const TraceOptions& options) {
  const bool on_hopper = options.backend == "hopper";
  Status bad = on_hopper ? Status() : refuse_on_emulator(options);
  if (bad.ok() && (on_hopper || options.kernel == "hopper")) bad = refuse_for_hopper(options);
  if (!bad.ok()) return bad;
  if (!options.compare.empty() && options.slots_given) {
    return invalid("compare", "--compare and --score-slots exclude each other");
  }
  return {};
}

/// The options as a run takes them.
TraceSettings settings_of(const TraceOptions& options) {
  TraceSettings settings = options.settings;
  emulator::CaseSpec& spec = settings.spec;
  spec.bf16 = options.type != "f16";
  spec.e4m3 = options.type == "e4m3";
  if (options.backend == "hopper" || options.kernel == "hopper") {
    spec.kernel = Backend::hopper;
    spec.score_slots = spec.row_replicas = 0;
  }
  spec.kv_len.assign(static_cast<std::size_t>(options.batch), static_cast<int32_t>(options.kv_len));
  spec.group = options.rows;
  spec.q_len = options.q_len;
  spec.causal = options.q_len > 1;
  spec.seed = static_cast<uint64_t>(options.seed);
  settings.level = options.level == "full" ? trace::Level::full : trace::Level::edges;
  settings.keeps_newest = options.keep == "newest";
  return settings;
}

Result<ExitCode> trace(const TraceOptions& options) {
  if (Status bad = refuse(options); !bad.ok()) return bad;
  const bool on_hopper = options.backend == "hopper";
  const bool hopper = on_hopper || options.kernel == "hopper";
  TraceSettings settings = settings_of(options);
  emulator::CaseSpec& spec = settings.spec;
  std::vector<int> slots{spec.score_slots};
  if (!options.compare.empty()) {
    const Result<std::vector<int>> compared = compared_slots(options.compare);
    if (!compared.ok()) return compared.status();
    slots = compared.value();
  }
  std::vector<trace::TraceFile> files;
  std::vector<trace::Timeline> runs;
  for (const int count : slots) {
    spec.score_slots = count;
    Result<trace::TraceFile> file =
        on_hopper ? trace_on_hopper(settings)
                  : trace_on_emulator(settings, hopper ? std::string("hopper") : label_of(count));
    if (!file.ok()) return file.status();
    keep_blocks(file.value(), options.ctas);
    Result<trace::Timeline> run = trace::make_timeline(file.value());
    if (!run.ok()) return run.status();
    files.push_back(std::move(file.value()));
    runs.push_back(std::move(run.value()));
  }
  const Status status = Output(options).write(files, runs);
  if (!status.ok()) return status;
  return ExitCode::ok;
}

/// Which kernel runs where.
CLI::Option* add_kernel_options(CLI::App& command, TraceOptions& options) {
  emulator::CaseSpec& spec = options.settings.spec;
  command
      .add_option("--backend", options.backend,
                  "emulator (simulated) or hopper (measured); default emulator")
      ->check(CLI::IsMember({"emulator", "hopper"}))
      ->type_name("NAME");
  command
      .add_option("--kernel", options.kernel,
                  "of the emulator, blackwell or hopper; default "
                  "blackwell")
      ->check(CLI::IsMember({"blackwell", "hopper"}))
      ->type_name("NAME");
  integer_option(command, "--head-dim", spec.head_dim, 1, "64 or 128; default 64");
  command.add_option("--type", options.type, "bf16, f16, or e4m3 under bf16; default bf16")
      ->check(CLI::IsMember({"bf16", "f16", "e4m3"}))
      ->type_name("TYPE");
  CLI::Option* slots = integer_option(command, "--score-slots", spec.score_slots, 1,
                                      "S tiles in flight, 1 to 3; default 2");
  integer_option(command, "--row-replicas", spec.row_replicas, 1,
                 "copies of the rows, 1, 2 or 4; default 1", 4);
  command
      .add_option("--compare", options.compare,
                  "several runs side by side: base,pingpong (also 3slots)")
      ->type_name("LIST");
  return slots;
}

/// What it computes.
void add_problem_options(CLI::App& command, TraceOptions& options) {
  emulator::CaseSpec& spec = options.settings.spec;
  integer_option(command, "--kv-len", options.kv_len, 1, "keys of each request; default 2048",
                 1 << 20);
  integer_option(command, "--batch", options.batch, 1, "requests; default 1", 1 << 12);
  integer_option(command, "--rows", options.rows, 1, "query heads of a KV head; default 16", 128);
  integer_option(command, "--q-len", options.q_len, 1,
                 "new tokens of each request, causal; default 1", 1 << 10);
  integer_option(command, "--page-size", spec.page_size, 0,
                 "slots of a page, 0 = contiguous; default 0", 1 << 20);
  integer_option(command, "--num-splits", spec.num_splits, 0,
                 "parts of each item, 0 = as the work is cut; default 0", 256);
  integer_option(command, "--blocks", options.settings.blocks, 1, "CTAs of the grid; default 1",
                 64);
  integer_option(command, "--kv-heads", spec.kv_heads, 1, "of the cache; default 1", 1 << 10);
  integer_option(command, "--ctas", options.ctas, 1, "that are kept of the run; default 4",
                 1 << 16);
  command.add_flag("--cold", options.settings.cold, "the cache is never in the L2; backend hopper");
  command.add_flag("--growing", spec.growing, "scores that grow: every block rescales O");
  integer_option(command, "--seed", options.seed, 0, "of the content; default 1");
}

/// What is recorded and written.
void add_record_options(CLI::App& command, TraceOptions& options) {
  command
      .add_option("--level", options.level,
                  "edges (waits, issues, arrivals), full (also in softmax); default edges")
      ->check(CLI::IsMember({"edges", "full"}))
      ->type_name("NAME");
  command
      .add_option("--costs", options.settings.costs,
                  "column of the timing model: low, best or high; default best")
      ->check(CLI::IsMember({"low", "best", "high"}))
      ->type_name("NAME");
  integer_option(command, "--records", options.settings.capacity, 1,
                 "kept of each warp; default 65536", 1 << 24);
  command.add_option("--keep", options.keep, "which of them, first or newest; default first")
      ->check(CLI::IsMember({"first", "newest"}))
      ->type_name("WHICH");
  command
      .add_option("--hang-timeout", options.settings.hang_seconds,
                  "a launch that takes longer is reported, warp by warp; backend hopper")
      ->check(CLI::PositiveNumber)
      ->type_name("SECONDS");
  command.add_flag("--subtract-self-cost", options.subtracts_self_cost,
                   "from the summary, what records cost; backend hopper");
  command.add_option("--time", options.time, "unit of trace.pftrace, ns or cycles; default ns")
      ->check(CLI::IsMember({"ns", "cycles"}))
      ->type_name("UNIT");
  command.add_option("--write", options.write, "which files, separated by commas; default all")
      ->delimiter(',')
      ->check(CLI::IsMember({"records", "perfetto", "json", "summary", "html", "svg", "residency",
                             "schedule", "edges", "phases"}))
      ->type_name("LIST");
  command.add_option("--out", options.out, "folder, made if missing; default deuce-trace")
      ->type_name("DIR");
}

}  // namespace

void add_trace(CLI::App& app, Action& action) {
  CLI::App& command =
      *app.add_subcommand("trace", "Record a kernel's timeline and write pictures of it");
  auto options = std::make_shared<TraceOptions>();
  CLI::Option* slots = add_kernel_options(command, *options);
  add_problem_options(command, *options);
  add_record_options(command, *options);
  command.footer(kExplanation);
  command.callback([options, slots, &action] {
    options->slots_given = slots->count() > 0;
    action = [options] { return trace(*options); };
  });
}

}  // namespace deuce::cli
