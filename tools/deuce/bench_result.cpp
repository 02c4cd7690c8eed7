// SPDX-License-Identifier: Apache-2.0
// Reads schema 1 of `deuce bench --json`.
#include "bench_result.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace deuce::cli {
namespace {

using Json = nlohmann::json;

constexpr int kSchema = 1;

/// Throws nlohmann's exceptions, which name the key.
ResultPoint read_point(const Json& json) {
  ResultPoint point;
  point.preset = json.at("preset");
  point.lengths = json.at("lengths");
  point.dtype = json.at("dtype");
  point.layout = json.at("layout");
  point.backend = json.at("backend");
  point.mode = json.value("mode", "rotated");
  point.kv_lens = json.at("kv_lens").get<std::vector<int64_t>>();
  point.q_len = json.at("q_len");
  point.q_heads = json.at("q_heads");
  point.kv_heads = json.at("kv_heads");
  point.head_dim = json.at("head_dim");
  point.page_size = json.at("page_size");
  point.window_left = json.at("window_left");
  point.sinks = json.at("sinks");
  point.softcap = json.at("softcap");
  point.kv_bytes = json.at("kv_bytes");
  const auto time = json.find("time_s");
  if (time == json.end()) return point;
  point.median_s = time->at("median");
  point.roof_bytes_per_s = json.value("roof_bytes_per_s", 0.0);
  const auto interval = time->find("interval_95");
  if (interval != time->end()) {
    point.interval = {interval->at(0), interval->at(1)};
  } else {
    // Older results hold the standard error alone.
    const double half = 1.96 * time->at("noise").get<double>();
    point.interval = {point.median_s * (1 - half), point.median_s * (1 + half)};
  }
  return point;
}

}  // namespace

bool ResultPoint::even() const {
  return std::all_of(kv_lens.begin(), kv_lens.end(),
                     [this](int64_t length) { return length == kv_lens.front(); });
}

std::string ResultPoint::key() const {
  std::string lens;
  for (const int64_t length : kv_lens) lens += fmt::format("{},", length);
  return fmt::format("{}:{} {} {} {} {} q{} w{} s{} c{} {} {}", q_heads, kv_heads, head_dim, dtype,
                     page_size, layout, q_len, window_left, sinks, softcap, mode, lens);
}

std::string ResultPoint::title() const {
  std::string text = fmt::format("{}:{} x {}, ", q_heads, kv_heads, head_dim);
  text += lengths.empty() ? fmt::format("{} x {}", kv_lens.size(), kv_lens.front()) : lengths;
  if (q_len > 1) text += fmt::format(", q_len {}", q_len);
  text +=
      ", " + dtype + (page_size == 0 ? ", contiguous" : fmt::format(", pages of {}", page_size));
  if (layout != "NHD") text += " " + layout;
  if (window_left >= 0) text += fmt::format(", window {}", window_left);
  if (sinks) text += ", sinks";
  if (softcap > 0) text += fmt::format(", softcap {}", softcap);
  return text + (mode == "hot" ? ", hot" : "");
}

Result<ResultFile> read_result(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return invalid("file", "{}: cannot be opened", path);
  const Json json = Json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return invalid("file", "{}: is not a JSON object", path);
  if (!json.contains("schema") || json["schema"] != kSchema || !json.contains("points") ||
      !json["points"].is_array()) {
    return invalid("file", "{}: is no result of deuce bench --json, schema {}", path, kSchema);
  }
  ResultFile file;
  file.path = path;
  file.label = std::filesystem::path(path).stem().string();
  std::size_t index = 0;
  try {
    const Json& machine = json.at("machine");
    file.device = machine.contains("gpu") ? machine["gpu"].at("name") : machine.at("cpu");
    file.commit = json.at("build").at("commit");
    for (const Json& one : json["points"]) {
      ResultPoint point = read_point(one);
      if (point.kv_lens.empty()) return invalid("file", "{}: point {}: no kv_lens", path, index);
      ++index;
      if (point.median_s > 0) file.points.push_back(std::move(point));
    }
  } catch (const Json::exception& error) {
    return invalid("file", "{}: point {}: {}", path, index, error.what());
  }
  return file;
}

}  // namespace deuce::cli
