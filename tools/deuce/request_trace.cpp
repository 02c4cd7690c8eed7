// SPDX-License-Identifier: Apache-2.0
// Strict readers of the two formats, and the closed loop.
#include "request_trace.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "numbers.h"

namespace deuce::cli {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kAzureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens";
// As many as --kv-len takes; the closed loop is played out step by step.
constexpr int64_t kMostTokens = 1 << 26;

std::string_view take_line(std::string_view& text) {
  const auto end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

Result<int64_t> token_count(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) return invalid("trace", "it has no {}", name);
  const Result<int64_t> count = parse_integer(found->dump(), 0, kMostTokens);
  if (!count.ok()) return invalid("trace", "{}: {}", name, count.status().sentence());
  return count;
}

Result<TraceRequest> mooncake_line(std::string_view line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return invalid("trace", "it is not a JSON object");
  const auto input = token_count(json, "input_length");
  if (!input.ok()) return input.status();
  const auto output = token_count(json, "output_length");
  if (!output.ok()) return output.status();
  return TraceRequest{input.value(), output.value()};
}

Result<TraceRequest> azure_line(std::string_view line) {
  const auto columns = 1 + std::count(line.begin(), line.end(), ',');
  if (columns != 3)
    return invalid("trace", "it has {} columns, not those of {}", columns, kAzureHeader);
  const auto middle = line.find(','), last = line.rfind(',');
  const auto input = parse_integer(line.substr(middle + 1, last - middle - 1), 0, kMostTokens);
  if (!input.ok()) return invalid("trace", "ContextTokens: {}", input.status().sentence());
  const auto output = parse_integer(line.substr(last + 1), 0, kMostTokens);
  if (!output.ok()) return invalid("trace", "GeneratedTokens: {}", output.status().sentence());
  return TraceRequest{input.value(), output.value()};
}

/// The batch between two steps.
class ClosedLoop {
 public:
  ClosedLoop(const std::vector<TraceRequest>& requests, int batch) : requests_(requests) {
    for (int slot = 0; slot < batch; ++slot) slots_.push_back({next_++, 1});
  }

  int64_t step() const { return step_; }
  bool first_fill_has_left() const {
    return std::all_of(slots_.begin(), slots_.end(),
                       [&](const Slot& slot) { return slot.request >= slots_.size(); });
  }
  std::vector<int32_t> lengths() const {
    std::vector<int32_t> result;
    for (const Slot& slot : slots_)
      result.push_back(static_cast<int32_t>(requests_[slot.request].input + slot.decoded));
    return result;
  }
  /// False when a slot cannot be filled any more: the step that has just run was the last one.
  bool advance() {
    for (Slot& slot : slots_) {
      if (++slot.decoded < requests_[slot.request].output) continue;
      if (next_ == requests_.size()) return false;
      slot = {next_++, 1};
    }
    ++step_;
    return true;
  }

 private:
  struct Slot {
    std::size_t request;
    int64_t decoded;  // tokens, the present one included
  };
  const std::vector<TraceRequest>& requests_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;
  int64_t step_ = 1;
};

}  // namespace

bool is_request_trace(std::string_view text) {
  const std::string_view first = take_line(text);
  if (first == kAzureHeader) return true;
  const Json json = Json::parse(first, nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.contains("input_length");
}

Result<std::vector<TraceRequest>> parse_request_trace(const std::string& path,
                                                      std::string_view text) {
  std::vector<TraceRequest> requests;
  const bool azure = text.starts_with(kAzureHeader);
  int64_t number = 0;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    ++number;
    if (line.empty() || (azure && number == 1)) continue;
    const Result<TraceRequest> request = azure ? azure_line(line) : mooncake_line(line);
    if (!request.ok())
      return invalid("trace", "{}: line {}: {}", path, number, request.status().sentence());
    requests.push_back(request.value());
  }
  return requests;
}

Result<std::vector<LengthCase>> decode_batches(const std::string& path,
                                               const std::vector<TraceRequest>& requests,
                                               int batch) {
  std::vector<TraceRequest> decoding;
  std::copy_if(
      requests.begin(), requests.end(), std::back_inserter(decoding),
      [](const TraceRequest& request) { return request.input >= 1 && request.output >= 2; });
  const auto too_few = [&](const std::string& why) {
    return invalid("trace",
                   "{}: too few requests for --batch {} ({} of 2 or more output tokens): {}", path,
                   batch, decoding.size(), why);
  };
  if (decoding.size() < static_cast<std::size_t>(batch)) return too_few("it is never full");
  int64_t begin = -1, end = 0;
  ClosedLoop scout(decoding, batch);
  do {
    if (begin < 0 && scout.first_fill_has_left()) begin = scout.step();
    end = scout.step();
  } while (scout.advance());
  if (begin < 0) return too_few(fmt::format("the first {} never leave", batch));
  if (end - begin < 6)
    return too_few(fmt::format("fewer than 7 steps follow when the first {} have left", batch));
  std::vector<LengthCase> cases;
  ClosedLoop loop(decoding, batch);
  const std::string name = std::filesystem::path(path).stem().string();
  for (const int sixth : {1, 3, 5}) {
    const int64_t step = begin + (end - begin) * sixth / 6;
    while (loop.step() < step && loop.advance()) {
    }
    cases.push_back({fmt::format("{}/b{}/s{}", name, batch, step), loop.lengths()});
  }
  return cases;
}

}  // namespace deuce::cli
