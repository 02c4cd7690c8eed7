// SPDX-License-Identifier: Apache-2.0
// A recorded run as a file: 8 bytes of magic, the facts of the run as JSON text, then each slice as
// its 64-byte header and the records it kept. Little endian. The reader refuses what it does not
// know.
#pragma once

#include <string>
#include <vector>

#include "plan/status.h"
#include "trace/recorder.h"

namespace deuce::trace {

/// What a reader of the picture must know about the run.
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
};

struct TraceFile {
  Facts facts;
  std::vector<Slice> slices;
};

std::string encode(const TraceFile& trace);
/// `name` appears in the sentence of a refusal.
Result<TraceFile> decode_trace(const std::string& bytes, const std::string& name);

/// "simulated" or "measured": stands on every picture.
inline const char* origin(const Facts& facts) { return facts.simulated ? "simulated" : "measured"; }

}  // namespace deuce::trace
