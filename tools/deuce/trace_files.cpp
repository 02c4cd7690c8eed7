// SPDX-License-Identifier: Apache-2.0
// Recorded runs from files; see trace_files.h.
#include "trace_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "text_file.h"

namespace deuce::cli {
namespace {

/// What is asked of pictures and summary, not of the run.
constexpr std::array<std::string_view, 5> kOfTheOutput{"--from", "--out", "--write", "--time",
                                                       "--subtract-self-cost"};

/// The last `parts` of a path, without the ending of trace files.
std::string end_of(const std::filesystem::path& path, int parts) {
  std::filesystem::path end = path.extension() == ".deucetrace" ? path.stem() : path.filename();
  std::filesystem::path rest = path.parent_path();
  for (; parts > 1 && rest.has_relative_path(); --parts, rest = rest.parent_path()) {
    end = rest.filename() / end;
  }
  return end.generic_string();
}

/// As viewers and pictures take it.
bool is_text(const std::string& name) {
  using Json = nlohmann::json;
  const Json json = name;
  return json.dump(-1, ' ', false, Json::error_handler_t::ignore) ==
             json.dump(-1, ' ', false, Json::error_handler_t::replace) &&
         std::none_of(name.begin(), name.end(),
                      [](char c) { return static_cast<unsigned char>(c) < ' '; });
}

/// Positions of labels that others have too.
std::vector<std::size_t> shared_among(const std::vector<std::string>& labels) {
  std::vector<std::size_t> shared;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (std::count(labels.begin(), labels.end(), labels[i]) > 1) shared.push_back(i);
  }
  return shared;
}

/// One for each file, all different.
Result<std::vector<std::string>> labels_of(const std::vector<std::string>& paths,
                                           std::vector<std::string> labels) {
  std::error_code error;
  std::vector<std::filesystem::path> whole;
  for (const std::string& path : paths) {
    whole.push_back(std::filesystem::weakly_canonical(path, error));
    if (std::count(whole.begin(), whole.end(), whole.back()) > 1) {
      return invalid("from", "--from: {} is named twice", path);
    }
  }
  const std::vector<std::size_t> shared = shared_among(labels);
  for (int parts = 1; !shared_among(labels).empty(); ++parts) {
    for (const std::size_t i : shared) labels[i] = end_of(whole[i], parts);
    constexpr int kDeepest = 100;  // base.deucetrace beside base
    if (parts > kDeepest) return invalid("from", "--from: two files have one name");
  }
  for (const std::size_t i : shared) {
    if (is_text(labels[i])) continue;
    return invalid("from",
                   "{}: its label is another run's too, and its path, which would tell them apart, "
                   "is not text in UTF-8",
                   paths[i]);
  }
  return labels;
}

}  // namespace

Status refuse_beside_files(const std::vector<std::string>& given, const OutputOptions& output) {
  for (const std::string& name : given) {
    if (std::find(kOfTheOutput.begin(), kOfTheOutput.end(), name) != kOfTheOutput.end()) continue;
    return invalid("from", "{}: of a new run; --from draws runs as they were recorded", name);
  }
  for (const std::string& kind : output.write) {
    if (kind == "records") {
      return invalid("write", "--write records: they are what --from names");
    }
    if (!is_of_a_run(kind)) {
      return invalid("write", "--write {}: of the kernel, not of a run; leave out --from", kind);
    }
  }
  return {};
}

Result<std::vector<trace::Timeline>> timelines_of(const std::vector<std::string>& paths) {
  std::vector<trace::TraceFile> files;
  std::vector<std::string> labels;
  for (const std::string& path : paths) {
    std::error_code error;
    const std::filesystem::file_type type = std::filesystem::status(path, error).type();
    if (type == std::filesystem::file_type::character || type == std::filesystem::file_type::fifo) {
      return invalid("from", "{}: is not a file", path);  // and may have no end
    }
    const Result<std::string> bytes = read_bytes("from", path);
    if (!bytes.ok()) return bytes.status();
    Result<trace::TraceFile> file = trace::decode_trace(bytes.value(), path);
    if (!file.ok()) return file.status();
    labels.push_back(file.value().facts.label);
    files.push_back(std::move(file.value()));
  }
  const Result<std::vector<std::string>> names = labels_of(paths, std::move(labels));
  if (!names.ok()) return names.status();
  std::vector<trace::Timeline> runs;
  for (std::size_t i = 0; i < files.size(); ++i) {
    files[i].facts.label = names.value()[i];
    Result<trace::Timeline> run = trace::make_timeline(files[i]);
    if (!run.ok()) return invalid("from", "{}: {}", paths[i], run.status().sentence());
    if (run.value().length <= 0) return invalid("from", "{}: it shows no time", paths[i]);
    runs.push_back(std::move(run.value()));
  }
  return runs;
}

}  // namespace deuce::cli
