// SPDX-License-Identifier: Apache-2.0
// A recorded run as a file: 8 bytes of magic, the facts of the run as JSON text, then each slice as
// its 64-byte header and the records it kept. Little endian. The reader refuses what it does not
// know.
#pragma once

#include <string>
#include <vector>

#include "plan/status.h"
#include "trace/facts.h"
#include "trace/recorder.h"

namespace deuce::trace {

struct TraceFile {
  Facts facts;
  std::vector<Slice> slices;
};

std::string encode(const TraceFile& trace);
/// `name` appears in the sentence of a refusal.
Result<TraceFile> decode_trace(const std::string& bytes, const std::string& name);

}  // namespace deuce::trace
