// SPDX-License-Identifier: Apache-2.0
// Test-only choice of the worker count, so that one machine can try the work cutting of many.
// Read by every backend that deals work out, when a plan is made; it must not change a result
// beyond rounding, nor any bit under split_kv_len.
#pragma once

#include <atomic>
#include <cstdint>

namespace deuce {

/// Workers that plans made from now on deal their work to; 0 = as many as the device offers. With
/// fewer threads or blocks than workers, each plays several workers in turn.
inline std::atomic<int32_t>& forced_workers() {
  static std::atomic<int32_t> workers{0};
  return workers;
}

}  // namespace deuce
