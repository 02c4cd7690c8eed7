// SPDX-License-Identifier: Apache-2.0
// Strict reading of the length file: a case that is not what it should be stops the benchmark.
#include "lengths.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "io/safetensors.h"
#include "request_trace.h"
#include "text_file.h"

namespace deuce::cli {
namespace {

using Json = nlohmann::json;

Result<LengthCase> read_case(const std::string& path, std::size_t index, const Json& json) {
  const auto refuse = [&](const std::string& what) {
    return invalid("trace", "{}: case {}: {}", path, index, what);
  };
  if (!json.is_object()) return refuse("it is not an object");
  const auto name = json.find("name");
  if (name == json.end() || !name->is_string()) return refuse("it has no name");
  const auto lens = json.find("kv_lens");
  if (lens == json.end() || !lens->is_array() || lens->empty()) return refuse("it has no kv_lens");
  LengthCase result{*name, {}};
  for (const Json& length : *lens) {
    if (!length.is_number_integer() || length < 1 || length > std::numeric_limits<int32_t>::max()) {
      return refuse(fmt::format("kv_lens holds {}, not an integer of 1 or more", length.dump()));
    }
    result.kv_lens.push_back(length);
  }
  const auto batch = json.find("batch");
  if (batch != json.end() && *batch != result.kv_lens.size()) {
    return refuse(fmt::format("batch is {}, but kv_lens has {} lengths", batch->dump(),
                              result.kv_lens.size()));
  }
  return result;
}

Result<std::vector<LengthCase>> parse_cases(const std::string& path, const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return invalid("trace", "{}: is neither JSON of decode batches, nor {} (docs/cli.md)", path,
                   kRequestForms);
  }
  if (!json.is_object() || !json.contains("cases") || !json["cases"].is_array()) {
    return invalid("trace", "{}: has no list of cases", path);
  }
  std::vector<LengthCase> cases;
  for (const Json& entry : json["cases"]) {
    Result<LengthCase> one = read_case(path, cases.size(), entry);
    if (!one.ok()) return one.status();
    cases.push_back(std::move(one.value()));
  }
  return cases;
}

/// Public traces hold such rows, of requests that were given up; that they are no part of what is
/// measured must be seen. On stderr, for stdout may be JSON.
void say_what_is_empty(const std::string& path, const std::vector<TraceRequest>& requests) {
  const auto empty = std::count_if(
      requests.begin(), requests.end(),
      [](const TraceRequest& request) { return request.input == 0 || request.output == 0; });
  if (empty > 0)
    fmt::print(stderr, "deuce bench: {}: left out {} of {} requests, with 0 tokens\n", path, empty,
               requests.size());
}

/// Batches formed of requests, each under the file's name.
Result<std::vector<LengthCase>> form_cases(const std::string& path, const std::string& text,
                                           const std::vector<int64_t>& batches) {
  const auto requests = parse_request_trace(path, text);
  if (!requests.ok()) return requests.status();
  say_what_is_empty(path, requests.value());
  std::vector<LengthCase> all;
  for (const int64_t batch : batches.empty() ? std::vector<int64_t>{8} : batches) {
    const auto cases = decode_batches(path, requests.value(), static_cast<int>(batch));
    if (!cases.ok()) return cases.status();
    all.insert(all.end(), cases.value().begin(), cases.value().end());
  }
  return all;
}

/// Those that were asked for, in the order of `names`.
Result<std::vector<LengthCase>> choose(const std::string& path,
                                       const std::vector<LengthCase>& cases,
                                       const std::vector<std::string>& names) {
  if (names.empty()) return cases;
  std::vector<LengthCase> chosen;
  for (const std::string& name : names) {
    const auto found = std::find_if(cases.begin(), cases.end(),
                                    [&name](const LengthCase& one) { return one.name == name; });
    if (found == cases.end()) {
      return invalid("case", "{}: has no case {} (deuce bench --list shows them)", path,
                     io::quoted_name(name));
    }
    chosen.push_back(*found);
  }
  return chosen;
}

}  // namespace

Result<std::vector<LengthCase>> read_length_cases(const std::string& path) {
  const auto text = read_text("trace", path);
  if (!text.ok()) return text.status();
  return parse_cases(path, text.value());
}

Result<std::vector<LengthCase>> read_trace(const std::string& path,
                                           const std::vector<std::string>& names,
                                           const std::vector<int64_t>& batches, int32_t divisor) {
  const auto text = read_text("trace", path);
  if (!text.ok()) return text.status();
  const bool requests = is_request_trace(text.value());
  const auto all =
      requests ? form_cases(path, text.value(), batches) : parse_cases(path, text.value());
  if (!all.ok()) return all.status();
  auto chosen = choose(path, all.value(), names);
  if (!chosen.ok()) return chosen.status();
  std::vector<LengthCase> cases;
  for (LengthCase& one : chosen.value()) {
    const auto size = static_cast<int64_t>(one.kv_lens.size());
    if (!batches.empty() && std::find(batches.begin(), batches.end(), size) == batches.end())
      continue;
    for (int32_t& length : one.kv_lens) length = std::max(1, length / divisor);
    if (divisor > 1) one.name += fmt::format("/{}", divisor);
    cases.push_back(std::move(one));
  }
  if (cases.empty()) return invalid("batch", "{}: no case has such a batch", path);
  return cases;
}

}  // namespace deuce::cli
