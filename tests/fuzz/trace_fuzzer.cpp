// SPDX-License-Identifier: Apache-2.0
// Any bytes as a trace file: refused with a sentence, or everything can be drawn of it, and written
// again it reads as before.
#include <cstdlib>

#include "fuzz/fuzz_target.h"
#include "support/trace_drawings.h"
#include "support/trace_facts.h"
#include "trace/timeline.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  deuce::trace::TraceFile measured = deuce::test::plausible_trace();
  measured.facts.simulated = false;
  measured.facts.costs.clear();
  measured.facts.self_cost = 24;
  for (deuce::trace::Slice& slice : measured.slices) {
    slice.header.policy = deuce::trace::Policy::keep_newest;
  }
  return {encode(deuce::test::plausible_trace()), encode(measured)};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t bytes) {
  const std::string text(reinterpret_cast<const char*>(data), bytes);
  const deuce::Result<deuce::trace::TraceFile> file = deuce::trace::decode_trace(text, "t");
  if (!file.ok()) {
    require(!file.status().sentence().empty());
    return 0;
  }
  const std::string again = encode(file.value());
  const deuce::Result<deuce::trace::TraceFile> copy = deuce::trace::decode_trace(again, "t");
  require(copy.ok() && encode(copy.value()) == again);
  const deuce::Result<deuce::trace::Timeline> run = deuce::trace::make_timeline(file.value());
  if (run.ok()) require(!deuce::test::all_drawings({run.value()}).empty());
  return 0;
}
