// SPDX-License-Identifier: Apache-2.0
// What `deuce trace` writes: files of viewers, pictures, a page and a summary.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/status.h"
#include "record_trace.h"
#include "trace/timeline.h"

namespace deuce::cli {

struct OutputOptions {
  std::string out = "deuce-trace";  // folder
  std::vector<std::string> write;   // kinds of files; empty = all
  std::string time = "ns";          // unit of trace.pftrace, or cycles
  bool subtracts_self_cost = false;
};

/// For --write, in the order of the help.
const std::vector<std::string>& kinds_of_files();

/// Refuses figures of S/P slots in tensor memory, which only the Blackwell kernel has.
Status refuse_tensor_memory(const OutputOptions& options);

/// Kinds that are drawn from a recorded run; the others need its kernel, or nothing at all.
bool is_of_a_run(std::string_view kind);

/// `recorded`: the new runs that `runs` show, or none where those come from files. Writes the
/// files; prints the summary, where it is wanted, and what was written.
Status write_trace(const OutputOptions& options, const std::vector<Recorded>& recorded,
                   const std::vector<trace::Timeline>& runs);

}  // namespace deuce::cli
