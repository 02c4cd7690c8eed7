// SPDX-License-Identifier: Apache-2.0
// The least a call must read: K and V of the keys that at least one row sees, once per KV head.
// Every GB/s that the tool prints is this over the measured time.
#pragma once

#include <cstdint>

#include "deuce/deuce.h"

namespace deuce::cli {

struct Traffic {
  int64_t keys = 0;      // visible keys, summed over requests
  int64_t longest = 0;   // of one request
  int64_t kv_bytes = 0;  // K, V and their per-token scales
};

/// Reads lengths, so the args must point to host memory and have been accepted by a run.
Traffic traffic_of(const deuce_decode_config& config, const deuce_decode_args& args);

}  // namespace deuce::cli
