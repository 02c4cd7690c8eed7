// SPDX-License-Identifier: Apache-2.0
// Machine and build as JSON: the same keys in `deuce info` and in every benchmark result.
#pragma once

#include <nlohmann/json.hpp>

#include "machine_facts.h"

namespace deuce::cli {

inline nlohmann::ordered_json machine_json(const MachineFacts& facts) {
  return {{"cpu", facts.cpu},
          {"threads", facts.threads},
          {"simd", facts.simd},
          {"last_level_cache_bytes", facts.cache_bytes},
          {"system", facts.system}};
}

inline nlohmann::ordered_json build_json(const MachineFacts& facts) {
  return {{"commit", facts.commit}, {"compiler", facts.compiler}, {"type", facts.build_type}};
}

}  // namespace deuce::cli
