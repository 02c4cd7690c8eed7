// SPDX-License-Identifier: Apache-2.0
// Values of a benchmark axis as users write them: "1,8", "1k:128k:x2", "0:64:+16", "1..8".
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plan/status.h"

namespace deuce::cli {

/// Comma-separated numbers and ranges, all within the bounds. A number may end in k (1024) or m
/// (1024 k); a:b:xM multiplies, a:b:+S adds, a..b counts. A range ends at the last value up to b.
Result<std::vector<int64_t>> parse_axis(std::string_view text, int64_t lowest, int64_t highest);

/// Query heads and KV heads of a layer.
struct Heads {
  int q = 0, kv = 0;
};

/// "16:1,16:2": query heads, a multiple of the KV heads behind the colon.
Result<std::vector<Heads>> parse_heads(std::string_view text);

}  // namespace deuce::cli
