// SPDX-License-Identifier: Apache-2.0
// Options of `deuce trace`; see trace_options.h.
#include "trace_options.h"

#include "options.h"

namespace deuce::cli {
namespace {

/// The default problem is one that a person can follow: one request, of a few blocks, on one CTA.
DecodeOptions followed_by_eye() {
  DecodeOptions options;
  options.kv_len = {2048};
  options.batch = options.spec.row_replicas = 1;
  return options;
}

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

/// Beside the problem: where it runs, and how often.
void add_run_options(CLI::App& command, TraceOptions& options) {
  command
      .add_option("--backend", options.backend,
                  "emulator (simulated) or hopper (measured); default emulator")
      ->check(CLI::IsMember({"emulator", "hopper"}))
      ->type_name("NAME");
  command
      .add_option("--compare", options.compare,
                  "several runs side by side: base,pingpong (also 3slots)")
      ->type_name("LIST");
  integer_option(command, "--blocks", options.settings.blocks, 1,
                 "CTAs of the grid; default 1; of the emulator", 64);
  integer_option(command, "--ctas", options.ctas, 1, "that are kept of the run; default 4",
                 1 << 16);
  command.add_flag("--cold", options.settings.cold, "the cache is never in the L2; backend hopper");
  command.add_flag("--growing", options.spec.growing, "scores that grow: every block rescales O");
}

/// What is drawn, and where to.
void add_output_options(CLI::App& command, TraceOptions& options) {
  command
      .add_option("--from", options.from,
                  "draw recorded files side by side instead of running anything")
      ->type_name("FILE..");
  command.add_flag("--subtract-self-cost", options.output.subtracts_self_cost,
                   "from the summary, what records cost; backend hopper");
  command
      .add_option("--time", options.output.time, "unit of trace.pftrace, ns or cycles; default ns")
      ->check(CLI::IsMember({"ns", "cycles"}))
      ->type_name("UNIT");
  command
      .add_option("--write", options.output.write, "which files, separated by commas; default all")
      ->delimiter(',')
      ->check(CLI::IsMember(kinds_of_files()))
      ->type_name("LIST");
  command.add_option("--out", options.output.out, "folder, made if missing; default deuce-trace")
      ->type_name("DIR");
}

/// What is recorded.
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
  text_option(command, "--hang-timeout", "SECONDS",
              "a launch that takes longer is reported, warp by warp; backend hopper",
              [&options](const std::string& text) {
                constexpr double kLongest = 1e6;
                const Result<double> seconds = parse_number(text);
                if (!seconds.ok()) return seconds.status();
                if (seconds.value() <= 0 || seconds.value() > kLongest) {
                  return invalid("", "'{}' is not above 0 and at most {}", text, kLongest);
                }
                options.settings.hang_seconds = seconds.value();
                return Status{};
              });
}

}  // namespace

TraceOptions::TraceOptions() : DecodeOptions(followed_by_eye()) {}

void add_trace_options(CLI::App& command, TraceOptions& options) {
  add_decode_options(command, options);
  add_run_options(command, options);
  add_record_options(command, options);
  add_output_options(command, options);
  command.footer(kExplanation);
}

}  // namespace deuce::cli
