// SPDX-License-Identifier: Apache-2.0
// Traced launches of the Hopper kernel: the rows of kShapes that are also compiled with a tracer,
// and one launch with its records. For tools, not for serving: it allocates and waits.
#pragma once

#include <string>
#include <vector>

#include "plan/problem.h"
#include "plan/status.h"
#include "trace/recorder.h"

namespace deuce::hopper {

struct TracedRun {
  std::vector<trace::Slice> slices;
  double traced_seconds = 0, untraced_seconds = 0;  // medians of several launches
  double clock_hz = 0;
  double timer_step_ns = 0;
  std::string device;
};

/// `call`: its pointers are memory of the current device. UNSUPPORTED for a shape without a traced
/// kernel, NO_DEVICE without a Hopper GPU.
Result<TracedRun> run_traced(const Problem& problem, const Call& call, uint32_t capacity);

}  // namespace deuce::hopper
