// SPDX-License-Identifier: Apache-2.0
// Strict reading of the length file: a case that is not what it should be stops the benchmark.
#include "lengths.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "io/safetensors.h"

namespace deuce::cli {
namespace {

using Json = nlohmann::json;

Result<LengthCase> read_case(const std::string& path, std::size_t index, const Json& json) {
  const auto refuse = [&](const std::string& what) {
    return invalid("lengths", "{}: case {}: {}", path, index, what);
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

}  // namespace

Result<std::vector<LengthCase>> read_length_cases(const std::string& path) {
  std::ifstream file(path);
  if (!file) return invalid("lengths", "{}: cannot be opened", path);
  const Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return invalid("lengths", "{}: is not valid JSON", path);
  if (!json.is_object() || !json.contains("cases") || !json["cases"].is_array()) {
    return invalid("lengths", "{}: has no list of cases", path);
  }
  std::vector<LengthCase> cases;
  for (const Json& entry : json["cases"]) {
    Result<LengthCase> one = read_case(path, cases.size(), entry);
    if (!one.ok()) return one.status();
    cases.push_back(std::move(one.value()));
  }
  return cases;
}

Result<LengthCase> find_case(const std::string& path, const std::vector<LengthCase>& cases,
                             const std::string& name, int32_t divisor) {
  const auto found = std::find_if(cases.begin(), cases.end(),
                                  [&name](const LengthCase& one) { return one.name == name; });
  if (found == cases.end()) {
    return invalid("case", "{}: has no case {} (deuce bench --list shows them)", path,
                   io::quoted_name(name));
  }
  LengthCase result = *found;
  for (int32_t& length : result.kv_lens) length = std::max(1, length / divisor);
  if (divisor > 1) result.name += fmt::format("/{}", divisor);
  return result;
}

}  // namespace deuce::cli
