// SPDX-License-Identifier: Apache-2.0
// DEUCE_BACKEND, DEUCE_SCORE_SLOTS and DEUCE_SPLIT_KV_LEN, read at plan creation and never later.
// For engines that pass no configuration through; a field set by the caller always wins.
#include "api/environment.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "plan/names.h"

namespace deuce {
namespace {

// An empty variable counts as unset, as a shell's `VAR= command` means it.
std::string_view variable(const char* name) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read only
  return text != nullptr ? text : "";
}

Result<int32_t> integer_variable(const char* name, std::string_view text) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) {
    return invalid(name, "environment variable {} is '{}': it takes a whole number from 0 on", name,
                   text);
  }
  return value;
}

}  // namespace

Result<std::vector<EnvironmentChange>> apply_environment(deuce_decode_config& config) {
  std::vector<EnvironmentChange> changes;
  if (const auto text = variable("DEUCE_BACKEND");
      !text.empty() && config.backend == DEUCE_BACKEND_AUTO) {
    const auto backend = backend_named(text);
    if (!backend) {
      return invalid("DEUCE_BACKEND",
                     "environment variable DEUCE_BACKEND is '{}': it takes auto, cpu, hopper, "
                     "blackwell, emulator or reference",
                     text);
    }
    config.backend = static_cast<int32_t>(*backend);
    changes.push_back({"DEUCE_BACKEND", std::string(text), "backend"});
  }
  if (const auto text = variable("DEUCE_SCORE_SLOTS"); !text.empty() && config.score_slots == 0) {
    Result<int32_t> value = integer_variable("DEUCE_SCORE_SLOTS", text);
    if (!value.ok()) return value.status();
    config.score_slots = value.value();
    changes.push_back({"DEUCE_SCORE_SLOTS", std::string(text), "score_slots"});
  }
  if (const auto text = variable("DEUCE_SPLIT_KV_LEN");
      !text.empty() && config.split_kv_len == 0 && config.num_splits == 0) {
    Result<int32_t> value = integer_variable("DEUCE_SPLIT_KV_LEN", text);
    if (!value.ok()) return value.status();
    config.split_kv_len = value.value();
    changes.push_back({"DEUCE_SPLIT_KV_LEN", std::string(text), "split_kv_len"});
  }
  return changes;
}

}  // namespace deuce
