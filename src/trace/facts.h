// SPDX-License-Identifier: Apache-2.0
// What a trace file says about its run, beside the records: what a reader of its pictures must
// know. In the file it is JSON text; a fact that cannot be true is refused by its name.
#pragma once

#include <string>
#include <string_view>

#include "plan/status.h"
#include "trace/event.h"

namespace deuce::trace {

struct Facts {
  std::string label = "run";  // "base", "ping-pong": one word, in file names too
  std::string kernel, problem, chip;
  bool simulated = true;
  double clock_hz = 0;
  Level level = Level::edges;
  int head_dim = 0, rows = 0, score_slots = 0, row_replicas = 1;
  int kv_block = 128;     // keys of a KV block
  int element_bytes = 2;  // of K and V
  uint64_t seed = 0;
  std::string costs;           // simulated: column of the timing model
  double cycles = 0;           // of the traced run
  double untraced_cycles = 0;  // of the same run without the tracer; 0 = not known
  double self_cost = 0;        // cycles of one record; never subtracted here
  double timer_step_ns = 0;    // of the device timer
  // Empty = not known.
  std::string commit, driver;
  std::string recorded;  // measured: the day, 2026-11-30
};

/// Of the facts alone; slices have a version of their own.
inline constexpr int kFactsFormat = 2;

/// No run takes longer: days of the fastest clock.
inline constexpr double kMostCycles = 1e15;

std::string encode_facts(const Facts& facts);
/// The sentence begins with `name`, and names the fact that is missing, unknown or impossible.
Result<Facts> decode_facts(std::string_view text, const std::string& name);

/// "simulated" or "measured": stands on every picture.
inline const char* origin(const Facts& facts) { return facts.simulated ? "simulated" : "measured"; }

/// What the tracer added to the cycles of the run, in %; untraced_cycles are known.
inline double overhead(const Facts& facts) {
  return 100 * (facts.cycles / facts.untraced_cycles - 1);
}

}  // namespace deuce::trace
