// SPDX-License-Identifier: Apache-2.0
// Strict readers of the two formats, and the closed loop.
#include "request_trace.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "numbers.h"

namespace deuce::cli {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kAzureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens";
constexpr int64_t kMostTokens = std::numeric_limits<int32_t>::max() / 2;

std::string_view take_line(std::string_view& text) {
  const auto end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::optional<TraceRequest> mooncake_line(std::string_view line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto tokens = [&json](const char* name) -> int64_t {
    const auto found = json.find(name);
    return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : -1;
  };
  return TraceRequest{tokens("input_length"), tokens("output_length")};
}

std::optional<TraceRequest> azure_line(std::string_view line) {
  const auto last = line.rfind(',');
  if (last == std::string_view::npos || last == 0) return std::nullopt;
  const auto middle = line.rfind(',', last - 1);
  if (middle == std::string_view::npos) return std::nullopt;
  const auto input = parse_integer(line.substr(middle + 1, last - middle - 1), 0, kMostTokens);
  const auto output = parse_integer(line.substr(last + 1), 0, kMostTokens);
  if (!input.ok() || !output.ok()) return std::nullopt;
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
    const std::optional<TraceRequest> request = azure ? azure_line(line) : mooncake_line(line);
    if (!request || request->input < 0 || request->output < 0 || request->input > kMostTokens ||
        request->output > kMostTokens) {
      return invalid("trace", "{}: line {}: {}", path, number,
                     azure ? "it is not TIMESTAMP,ContextTokens,GeneratedTokens"
                           : "it has no whole numbers input_length and output_length");
    }
    requests.push_back(*request);
  }
  return requests;
}

Result<std::vector<LengthCase>> decode_batches(const std::string& name,
                                               const std::vector<TraceRequest>& requests,
                                               int batch) {
  std::vector<TraceRequest> decoding;
  std::copy_if(requests.begin(), requests.end(), std::back_inserter(decoding),
               [](const TraceRequest& request) { return request.output >= 2; });
  const Status too_short =
      invalid("trace", "{}: too few requests for a batch of {}: the first {} never leave", name,
              batch, batch);
  if (decoding.size() < static_cast<std::size_t>(batch)) return too_short;
  int64_t begin = -1, end = 0;
  ClosedLoop scout(decoding, batch);
  do {
    if (begin < 0 && scout.first_fill_has_left()) begin = scout.step();
    end = scout.step();
  } while (scout.advance());
  if (begin < 0 || end - begin < 6) return too_short;
  std::vector<LengthCase> cases;
  ClosedLoop loop(decoding, batch);
  for (const int sixth : {1, 3, 5}) {
    const int64_t step = begin + (end - begin) * sixth / 6;
    while (loop.step() < step && loop.advance()) {
    }
    cases.push_back({fmt::format("{}/b{}/s{}", name, batch, step), loop.lengths()});
  }
  return cases;
}

}  // namespace deuce::cli
