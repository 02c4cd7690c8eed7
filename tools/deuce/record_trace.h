// SPDX-License-Identifier: Apache-2.0
// Runs a decode problem with a tracer on the machine, and once more without it for the overhead.
#pragma once

#include <string>

#include "emulator/decode_case.h"
#include "plan/status.h"
#include "trace/trace_file.h"

namespace deuce::cli {

struct TraceSettings {
  emulator::CaseSpec spec;
  int blocks = 1;  // CTAs of the grid
  trace::Level level = trace::Level::edges;
  uint32_t capacity = 1 << 16;  // records of a warp
  std::string costs = "best";   // column of the timing model: low, best or high
};

/// The Hopper kernel on the first device; NO_DEVICE without one. Times are measured.
Result<trace::TraceFile> trace_on_hopper(const TraceSettings& settings);

/// The kernel of `settings.spec` on the emulator, in virtual time.
Result<trace::TraceFile> trace_on_emulator(const TraceSettings& settings, const std::string& label);

}  // namespace deuce::cli
