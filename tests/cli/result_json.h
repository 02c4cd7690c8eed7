// SPDX-License-Identifier: Apache-2.0
// A point of a benchmark result as `deuce bench --json` writes it, with what the tests of results
// vary.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace deuce::cli {

using Json = nlohmann::ordered_json;

struct PointSpec {
  int64_t kv_len = 1024;
  double median = 1e-3, half = 0.01;  // relative half of the 95 % interval
  int batch = 1, q_len = 1, q_heads = 16, kv_heads = 1, head_dim = 64;
  double roof = 1e9;
  std::vector<int64_t> kv_lens = {};
};

inline Json point_json(const PointSpec& spec) {
  std::vector<int64_t> lens = spec.kv_lens;
  if (lens.empty()) lens.assign(static_cast<std::size_t>(spec.batch), spec.kv_len);
  int64_t keys = 0;
  for (const int64_t length : lens) keys += length;
  return {{"preset", "p"},
          {"lengths", spec.kv_lens.empty() ? "" : "uneven"},
          {"batch", lens.size()},
          {"kv_lens", lens},
          {"q_len", spec.q_len},
          {"q_heads", spec.q_heads},
          {"kv_heads", spec.kv_heads},
          {"head_dim", spec.head_dim},
          {"dtype", "bf16"},
          {"page_size", 0},
          {"layout", "NHD"},
          {"window_left", -1},
          {"sinks", false},
          {"softcap", 0.0},
          {"backend", "hopper"},
          {"kv_bytes", keys * spec.kv_heads * spec.head_dim * 4},
          {"mode", "rotated"},
          {"time_s",
           {{"median", spec.median},
            {"interval_95", {spec.median * (1 - spec.half), spec.median * (1 + spec.half)}},
            {"noise", spec.half / 1.96}}},
          {"roof_bytes_per_s", spec.roof}};
}

}  // namespace deuce::cli
