// SPDX-License-Identifier: Apache-2.0
// Files of a trace; see trace_output.h.
#include "trace_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "output_file.h"
#include "trace/figures.h"
#include "trace/page.h"
#include "trace/perfetto.h"
#include "trace/summary.h"

namespace deuce::cli {
namespace {

class Output {
 public:
  Output(const OutputOptions& options, bool tensor_memory, bool new_runs)
      : options_(options), tensor_memory_(tensor_memory), new_runs_(new_runs) {}

  Status write(const std::vector<Recorded>& recorded, const std::vector<trace::Timeline>& runs) {
    if (wants("records")) {
      for (const Recorded& run : recorded) {
        put(run.file.facts.label + ".deucetrace", trace::encode(run.file));
      }
    }
    if (wants("perfetto")) {
      put("trace.pftrace",
          trace::perfetto_trace(
              runs, options_.time == "cycles" ? trace::TimeUnit::cycles : trace::TimeUnit::ns));
    }
    if (wants("json")) put("trace.json", trace::chrome_trace(runs));
    draw(runs);
    if (wants("edges")) {
      const emulator::KernelSpec& kernel = *recorded.back().kernel;
      put("edges.svg", trace::edges_svg(kernel.edges, kernel.roles, kernel.name));
    }
    if (wants("phases")) put("phases.svg", trace::phases_svg());
    if (wants("summary")) {
      const std::string text = summary(runs);
      put("summary.txt", text);
      fmt::print("{}", text);
    }
    if (status_.ok()) fmt::print("\nwritten to {}: {}\n", options_.out, names_);
    return status_;
  }

 private:
  bool wants(const std::string& kind) const {
    if (!tensor_memory_ && is_of_tensor_memory(kind)) return false;
    if (!new_runs_ && (kind == "records" || !is_of_a_run(kind))) return false;
    return options_.write.empty() ||
           std::find(options_.write.begin(), options_.write.end(), kind) != options_.write.end();
  }

  void draw(const std::vector<trace::Timeline>& runs) {
    if (wants("html")) put("timeline.html", trace::timeline_page(runs));
    if (wants("svg")) put("timeline.svg", trace::timeline_svg(runs));
    if (wants("residency")) put("residency.svg", trace::residency_svg(runs));
    if (wants("schedule")) {
      put("schedule.svg", trace::schedule_svg(runs));
      put("schedule_to_scale.svg", trace::schedule_to_scale_svg(runs));
    }
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

  const OutputOptions& options_;
  bool tensor_memory_, new_runs_;
  Status status_;
  std::string names_;
};

}  // namespace

const std::vector<std::string>& kinds_of_files() {
  static const std::vector<std::string> kinds{"records", "perfetto", "json",      "summary",
                                              "html",    "svg",      "residency", "schedule",
                                              "edges",   "phases"};
  return kinds;
}

bool is_of_tensor_memory(const std::string& kind) {
  return kind == "residency" || kind == "schedule" || kind == "phases";
}

bool is_of_a_run(const std::string& kind) { return kind != "edges" && kind != "phases"; }

Status write_trace(const OutputOptions& options, const std::vector<Recorded>& recorded,
                   const std::vector<trace::Timeline>& runs) {
  for (const trace::Timeline& run : runs) {
    if (!options.subtracts_self_cost || run.facts.self_cost > 0) continue;
    return unsupported("subtract_self_cost",
                       "--subtract-self-cost: what a record of {} cost is not known",
                       run.facts.label);
  }
  const bool tensor_memory = std::all_of(
      runs.begin(), runs.end(), [](const auto& run) { return run.facts.kernel == "blackwell"; });
  for (const std::string& kind : options.write) {
    if (tensor_memory || !is_of_tensor_memory(kind)) continue;
    return unsupported("write", "--write {}: hopper has no score slots in tensor memory", kind);
  }
  return Output(options, tensor_memory, !recorded.empty()).write(recorded, runs);
}

}  // namespace deuce::cli
