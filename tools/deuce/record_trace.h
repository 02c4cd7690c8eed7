// SPDX-License-Identifier: Apache-2.0
// Runs a decode problem with a tracer on the machine, and once more without it for the overhead.
#pragma once

#include <string>

#include "emulator/decode_case.h"
#include "emulator/launch.h"
#include "plan/status.h"
#include "trace/trace_file.h"

namespace deuce::cli {

struct TraceSettings {
  emulator::CaseSpec spec;
  std::string label = "run";  // of the timeline, and of its files
  int blocks = 1;             // CTAs of the grid
  trace::Level level = trace::Level::edges;
  uint32_t capacity = 1 << 16;  // records of a warp
  bool keeps_newest = false;    // of a full slice; else the first records; GPU only
  double hang_seconds = 0;      // a launch that takes longer hangs; 0 = waited for; GPU only
  bool cold = false;            // no launch finds its K and V in the L2; GPU only
  std::string costs = "best";   // column of the timing model: low, best or high
  emulator::OpFilter* filter = nullptr;  // of the emulator: what a test drops
};

/// Copies of a cache of so many bytes that launches take in turn, so that none finds its own in the
/// L2; refused where even the most copies would stay there together.
Result<std::size_t> cold_copies(std::size_t cache_bytes);

/// A run, and the kernel that ran.
struct Recorded {
  trace::TraceFile file;
  const emulator::KernelSpec* kernel = nullptr;
};

/// Refuses by name what the kernel of `settings.spec`, or what is compiled of it, does not take;
/// runs nothing.
Status check_traced(const TraceSettings& settings);

/// The Hopper kernel on the first device; NO_DEVICE without one. Times are measured. A launch that
/// hangs ends the process, after it has been told where its warps are.
Result<Recorded> trace_on_hopper(const TraceSettings& settings);

/// The kernel of `settings.spec` on the emulator, in virtual time; check_traced() was ok.
Result<Recorded> trace_on_emulator(const TraceSettings& settings);

}  // namespace deuce::cli
