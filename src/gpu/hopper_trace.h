// SPDX-License-Identifier: Apache-2.0
// Traced launches of the Hopper kernel: every row of kShapes is also compiled with a tracer, once
// for each level. For tools, not for serving: it allocates and waits.
#pragma once

#include <string>
#include <vector>

#include "plan/problem.h"
#include "plan/status.h"
#include "trace/recorder.h"
#include "trace/slice_extra.h"

namespace deuce::hopper {

struct TraceLimits {
  uint32_t capacity = 1 << 16;  // records that a warp keeps; it counts up to 2^29
  trace::Policy policy = trace::Policy::keep_first;
  trace::Level level = trace::Level::edges;
  double hang_seconds = 0;  // a launch that takes longer hangs; 0 = wait for ever
};

struct TracedRun {
  std::vector<trace::Slice> slices;
  double traced_seconds = 0, untraced_seconds = 0;  // medians of several launches
  double clock_hz = 0;
  double record_cycles = 0;  // what one record costs the warp that writes it; 0 = not measured
  std::string device;
  bool hangs = false;  // the kernel still runs: slices hold what its warps have recorded until then
  Status unread;       // of a hang: why its slices could not be read
};

/// `calls`: what the launches take in turn, one or more; their pointers are memory of the current
/// device. NO_DEVICE without a Hopper GPU. After a hang nothing of the device can be freed: freeing
/// waits for the kernel.
Result<TracedRun> run_traced(const Problem& problem, const std::vector<Call>& calls,
                             const TraceLimits& limits);

}  // namespace deuce::hopper
