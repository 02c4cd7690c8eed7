// SPDX-License-Identifier: Apache-2.0
// Machine and build as JSON: the same keys in `deuce info` and in every benchmark result.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "machine_facts.h"

namespace deuce::cli {

inline nlohmann::ordered_json gpu_json(const GpuFacts& gpu) {
  return {{"name", gpu.name},
          {"compute_capability", fmt::format("{}.{}", gpu.major, gpu.minor)},
          {"multiprocessors", gpu.multiprocessors},
          {"l2_bytes", gpu.l2_bytes},
          {"driver", gpu.driver},
          {"cuda_driver", gpu.cuda_driver},
          {"cuda_runtime", gpu.cuda_runtime},
          {"empty_kernel_s", gpu.empty_kernel_s}};
}

inline nlohmann::ordered_json machine_json(const MachineFacts& facts) {
  nlohmann::ordered_json json{{"cpu", facts.cpu},
                              {"threads", facts.threads},
                              {"simd", facts.simd},
                              {"last_level_cache_bytes", facts.cache_bytes},
                              {"system", facts.system}};
  if (facts.gpu) json["gpu"] = gpu_json(*facts.gpu);
  return json;
}

inline nlohmann::ordered_json build_json(const MachineFacts& facts) {
  return {{"commit", facts.commit}, {"compiler", facts.compiler}, {"type", facts.build_type}};
}

}  // namespace deuce::cli
