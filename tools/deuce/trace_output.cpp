// SPDX-License-Identifier: Apache-2.0
// Files of a trace; see trace_output.h.
#include "trace_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "output_file.h"
#include "trace/figures.h"
#include "trace/page.h"
#include "trace/perfetto.h"
#include "trace/summary.h"

namespace deuce::cli {
namespace {

/// All names but those of records.
constexpr std::array<std::string_view, 10> kFixedNames{
    "trace.pftrace", "trace.json",   "summary.txt",           "timeline.html", "timeline.svg",
    "residency.svg", "schedule.svg", "schedule_to_scale.svg", "edges.svg",     "phases.svg"};

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
    std::string text;
    if (wants("summary")) put("summary.txt", text = summary(runs));
    if (Status bad = save_all(options_.out, files_); !bad.ok()) return bad;
    fmt::print("{}\nwritten to {}: {}\n", text, options_.out, names_of(files_));
    const std::vector<OutputFile> others = others_there();
    if (!others.empty()) fmt::print("not of this run: {}\n", names_of(others));
    return {};
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

  void put(const std::string& name, std::string bytes) {
    files_.push_back({name, std::move(bytes)});
  }

  static std::string names_of(const std::vector<OutputFile>& files) {
    std::string names;
    for (const OutputFile& file : files) names += (names.empty() ? "" : " ") + file.name;
    return names;
  }

  /// What another run may have left in the folder. It stays: records cannot be had again, and
  /// several commands may write into one folder on purpose.
  std::vector<OutputFile> others_there() const {
    std::vector<OutputFile> others;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(options_.out, error)) {
      const std::string name = entry.path().filename().string();
      const auto is_it = [&name](const auto& file) { return name_of(file) == name; };
      const bool known = entry.path().extension() == ".deucetrace" ||
                         std::any_of(kFixedNames.begin(), kFixedNames.end(), is_it);
      if (known && std::none_of(files_.begin(), files_.end(), is_it)) others.push_back({name, {}});
    }
    std::sort(others.begin(), others.end(),
              [](const OutputFile& a, const OutputFile& b) { return a.name < b.name; });
    return others;
  }
  static std::string_view name_of(const OutputFile& file) { return file.name; }
  static std::string_view name_of(std::string_view name) { return name; }

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
  std::vector<OutputFile> files_;
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
