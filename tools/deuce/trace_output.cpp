// SPDX-License-Identifier: Apache-2.0
// Files of a trace; see trace_output.h.
#include "trace_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "output_file.h"
#include "trace/figures.h"
#include "trace/page.h"
#include "trace/perfetto.h"
#include "trace/summary.h"

namespace deuce::cli {
namespace {

/// Figures of S/P slots in tensor memory.
bool is_of_tensor_memory(std::string_view kind) {
  return kind == "residency" || kind == "schedule" || kind == "phases";
}

/// What the files are made of.
struct Shown {
  const OutputOptions& options;
  const std::vector<Recorded>& recorded;
  const std::vector<trace::Timeline>& runs;
};

std::string perfetto(const Shown& shown) {
  return trace::perfetto_trace(
      shown.runs, shown.options.time == "cycles" ? trace::TimeUnit::cycles : trace::TimeUnit::ns);
}

std::string edges(const Shown& shown) {
  const emulator::KernelSpec& kernel = *shown.recorded.back().kernel;
  return trace::edges_svg(kernel.edges, kernel.roles, kernel.name);
}

std::string summary(const Shown& shown) {
  const std::vector<trace::Timeline>& runs = shown.runs;
  std::string text;
  std::vector<trace::Summary> summaries;
  for (const trace::Timeline& run : runs) {
    summaries.push_back(
        trace::summarize(run, shown.options.subtracts_self_cost ? run.facts.self_cost : 0));
    text += (text.empty() ? "" : "\n") + trace::text_of(run, summaries.back());
  }
  for (std::size_t i = 1; i < runs.size(); ++i) {
    text += "\n" + trace::difference(runs[0], summaries[0], runs[i], summaries[i]);
  }
  return text;
}

/// A file of a fixed name; those of records have the names of their runs.
struct FixedFile {
  std::string_view kind, name;
  std::string (*bytes)(const Shown& shown);
};

constexpr FixedFile kFixedFiles[] = {
    {"perfetto", "trace.pftrace", perfetto},
    {"json", "trace.json", [](const Shown& shown) { return trace::chrome_trace(shown.runs); }},
    {"html", "timeline.html", [](const Shown& shown) { return trace::timeline_page(shown.runs); }},
    {"svg", "timeline.svg", [](const Shown& shown) { return trace::timeline_svg(shown.runs); }},
    {"residency", "residency.svg",
     [](const Shown& shown) { return trace::residency_svg(shown.runs); }},
    {"schedule", "schedule.svg",
     [](const Shown& shown) { return trace::schedule_svg(shown.runs); }},
    {"schedule", "schedule_to_scale.svg",
     [](const Shown& shown) { return trace::schedule_to_scale_svg(shown.runs); }},
    {"edges", "edges.svg", edges},
    {"phases", "phases.svg", [](const Shown&) { return trace::phases_svg(); }},
    {"summary", "summary.txt", summary},
};

class Output {
 public:
  Output(const OutputOptions& options, bool tensor_memory, bool new_runs)
      : options_(options), tensor_memory_(tensor_memory), new_runs_(new_runs) {}

  Status write(const std::vector<Recorded>& recorded, const std::vector<trace::Timeline>& runs) {
    if (wants("records")) {
      for (const Recorded& run : recorded) {
        files_.push_back({run.file.facts.label + ".deucetrace", trace::encode(run.file)});
      }
    }
    const Shown shown{options_, recorded, runs};
    std::string text;
    for (const FixedFile& file : kFixedFiles) {
      if (!wants(file.kind)) continue;
      files_.push_back({std::string(file.name), file.bytes(shown)});
      if (file.kind == "summary") text = files_.back().bytes;
    }
    if (Status bad = save_all(options_.out, files_); !bad.ok()) return bad;
    fmt::print("{}\nwritten to {}: {}\n", text, options_.out, names_of(files_));
    const std::vector<OutputFile> others = others_there();
    if (!others.empty()) fmt::print("not of this run: {}\n", names_of(others));
    return {};
  }

 private:
  bool wants(std::string_view kind) const {
    if (!tensor_memory_ && is_of_tensor_memory(kind)) return false;
    if (!new_runs_ && (kind == "records" || !is_of_a_run(kind))) return false;
    return options_.write.empty() ||
           std::find(options_.write.begin(), options_.write.end(), kind) != options_.write.end();
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
      const auto is_it = [&name](const auto& file) { return file.name == name; };
      const bool known = entry.path().extension() == ".deucetrace" ||
                         std::any_of(std::begin(kFixedFiles), std::end(kFixedFiles), is_it);
      if (known && std::none_of(files_.begin(), files_.end(), is_it)) others.push_back({name, {}});
    }
    std::sort(others.begin(), others.end(),
              [](const OutputFile& a, const OutputFile& b) { return a.name < b.name; });
    return others;
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

Status refuse_tensor_memory(const OutputOptions& options) {
  for (const std::string& kind : options.write) {
    if (!is_of_tensor_memory(kind)) continue;
    return unsupported("write", "--write {}: hopper has no score slots in tensor memory", kind);
  }
  return {};
}

bool is_of_a_run(std::string_view kind) { return kind != "edges" && kind != "phases"; }

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
  if (!tensor_memory) {
    if (Status bad = refuse_tensor_memory(options); !bad.ok()) return bad;
  }
  return Output(options, tensor_memory, !recorded.empty()).write(recorded, runs);
}

}  // namespace deuce::cli
