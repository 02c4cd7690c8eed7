// SPDX-License-Identifier: Apache-2.0
// `deuce trace --from`: recorded runs as they come from their files, instead of a new run.
#pragma once

#include <string>
#include <vector>

#include "plan/status.h"
#include "trace/timeline.h"
#include "trace_output.h"

namespace deuce::cli {

/// Refuses by name what only a new run can answer; `given`: the names of all options given.
Status refuse_beside_files(const std::vector<std::string>& given, const OutputOptions& output);

/// The runs of the files, in their order. Runs of one label are told apart by as much of their
/// paths as that needs.
Result<std::vector<trace::Timeline>> timelines_of(const std::vector<std::string>& paths);

}  // namespace deuce::cli
