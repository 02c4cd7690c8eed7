// SPDX-License-Identifier: Apache-2.0
// Reads schema 1 of `deuce bench --json`.
#include "bench_result.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "text_file.h"

namespace deuce::cli {
namespace {

using Json = nlohmann::json;

constexpr int kSchema = 1;

/// Reads the fields of one object; the first that is missing or of another type is kept as fault,
/// and what is read then is not used.
class Fields {
 public:
  Fields(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  void text(const char* name, std::string& target) {
    read(name, "a text", target, [](const Json& json) { return json.is_string(); });
  }
  void integer(const char* name, int64_t& target) { read(name, "an integer", target, is_integer); }
  void number(const char* name, double& target) {
    read(name, "a number", target, [](const Json& json) { return json.is_number(); });
  }
  void flag(const char* name, bool& target) {
    read(name, "true or false", target, [](const Json& json) { return json.is_boolean(); });
  }
  void lengths(const char* name, std::vector<int64_t>& target) {
    read(name, "a list of integers", target, [](const Json& json) {
      return json.is_array() && !json.empty() && std::all_of(json.begin(), json.end(), is_integer);
    });
  }
  void pair(const char* name, Interval& target) {
    std::vector<double> both;
    read(name, "two numbers", both, [](const Json& json) {
      return json.is_array() && json.size() == 2 && json[0].is_number() && json[1].is_number();
    });
    if (both.size() == 2) target = {both[0], both[1]};
  }
  bool has(const char* name) const { return json_.is_object() && json_.contains(name); }
  /// An object in this one.
  Fields inside(const char* name) {
    Json none;
    read(name, "an object", none, [](const Json& json) { return json.is_object(); });
    Fields fields(fault_.empty() ? json_.at(name) : json_, where_ + name + ".");
    fields.fault_ = fault_;
    return fields;
  }
  const std::string& fault() const { return fault_; }
  void take_fault(const Fields& other) { fault_ = other.fault_; }

 private:
  static bool is_integer(const Json& json) { return json.is_number_integer(); }

  template <class T, class Right>
  void read(const char* name, const char* kind, T& target, Right right) {
    if (!fault_.empty()) return;
    if (!has(name)) {
      fault_ = where_ + name + " is missing";
    } else if (const Json& value = json_.at(name); right(value)) {
      value.get_to(target);
    } else {
      fault_ = fmt::format("{}{} is {}, not {}", where_, name, short_text(value), kind);
    }
  }
  static std::string short_text(const Json& value) {
    constexpr std::size_t kMost = 40;
    const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    return text.size() > kMost ? text.substr(0, kMost) + ".." : text;
  }

  const Json& json_;
  std::string where_, fault_;
};

void read_time(Fields& fields, ResultPoint& point) {
  Fields time = fields.inside("time_s");
  time.number("median", point.median_s);
  if (time.has("interval_95")) {
    time.pair("interval_95", point.interval);
  } else {
    // Older results hold the standard error alone.
    double noise = 0;
    time.number("noise", noise);
    const double half = 1.96 * noise;
    point.interval = {point.median_s * (1 - half), point.median_s * (1 + half)};
  }
  fields.take_fault(time);
  if (fields.has("roof_bytes_per_s")) fields.number("roof_bytes_per_s", point.roof_bytes_per_s);
}

/// A result outside the tolerance has no time worth anything, whatever stands in the file.
void read_check(Fields& fields, ResultPoint& point) {
  if (!fields.has("check")) return;  // older results
  Fields check = fields.inside("check");
  bool ok = true;
  check.flag("ok", ok);
  if (!ok) {
    std::string failure;
    if (check.has("first_failure")) check.text("first_failure", failure);
    point.fault = "check failed" + (failure.empty() ? "" : ": " + failure);
  }
  fields.take_fault(check);
}

ResultPoint read_point(Fields& fields) {
  ResultPoint point;
  fields.text("preset", point.preset);
  fields.text("lengths", point.lengths);
  fields.text("dtype", point.dtype);
  fields.text("layout", point.layout);
  fields.text("backend", point.backend);
  point.mode = "rotated";
  if (fields.has("mode")) fields.text("mode", point.mode);
  fields.lengths("kv_lens", point.kv_lens);
  fields.integer("q_len", point.q_len);
  fields.integer("q_heads", point.q_heads);
  fields.integer("kv_heads", point.kv_heads);
  fields.integer("head_dim", point.head_dim);
  fields.integer("page_size", point.page_size);
  fields.integer("window_left", point.window_left);
  fields.flag("sinks", point.sinks);
  fields.number("softcap", point.softcap);
  fields.number("kv_bytes", point.kv_bytes);
  if (fields.has("time_s")) read_time(fields, point);
  read_check(fields, point);
  if (point.fault.empty() && !(point.median_s > 0)) point.fault = "not timed";
  return point;
}

std::string read_machine(const Json& json, ResultFile& file) {
  Fields fields(json, "");
  Fields machine = fields.inside("machine");
  if (machine.has("gpu")) {
    Fields gpu = machine.inside("gpu");
    gpu.text("name", file.device);
    machine.take_fault(gpu);
  } else {
    machine.text("cpu", file.device);
  }
  fields.take_fault(machine);
  Fields build = fields.inside("build");
  build.text("commit", file.commit);
  return build.fault();
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
  const auto text = read_text("file", path);
  if (!text.ok()) return text.status();
  const Json json = Json::parse(text.value(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return invalid("file", "{}: is not a JSON object", path);
  if (!json.contains("schema") || json["schema"] != kSchema || !json.contains("points") ||
      !json["points"].is_array()) {
    return invalid("file", "{}: is no result of deuce bench --json, schema {}", path, kSchema);
  }
  ResultFile file;
  file.path = path;
  file.label = std::filesystem::path(path).stem().string();
  if (const std::string fault = read_machine(json, file); !fault.empty())
    return invalid("file", "{}: {}", path, fault);
  std::size_t index = 0;
  for (const Json& one : json["points"]) {
    Fields fields(one, fmt::format("point {}: ", index++));
    ResultPoint point = read_point(fields);
    if (!fields.fault().empty()) return invalid("file", "{}: {}", path, fields.fault());
    (point.fault.empty() ? file.points : file.no_result).push_back(std::move(point));
  }
  return file;
}

}  // namespace deuce::cli
