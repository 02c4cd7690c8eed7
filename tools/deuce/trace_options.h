// SPDX-License-Identifier: Apache-2.0
// The command line of `deuce trace`: what is recorded, or drawn from files, and what is written.
#pragma once

#include <string>
#include <vector>

#include "decode_options.h"
#include "record_trace.h"
#include "trace_output.h"

namespace deuce::cli {

struct TraceOptions : DecodeOptions {
  TraceOptions();

  TraceSettings settings;
  OutputOptions output;
  std::string backend = "emulator", level = "edges", compare, keep = "first";
  int32_t ctas = 4;
  std::vector<std::string> from;

  bool on_gpu() const { return backend == "hopper"; }
};

/// All options and the help behind them; `options` must live as long as `command`.
void add_trace_options(CLI::App& command, TraceOptions& options);

}  // namespace deuce::cli
