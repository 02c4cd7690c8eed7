// SPDX-License-Identifier: Apache-2.0
// What `deuce run` tells: one fact per line, in the order a reader asks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "capture.h"
#include "reference/judge.h"

namespace deuce::cli {

struct RunReport {
  RunReport(const Capture& source, Backend used) : capture(source), backend(used) {}

  const Capture& capture;
  Backend backend;
  std::vector<double> seconds;  // of each repeat
  bool repeats_agree = true;
  std::optional<reference::Verdict> verdict;
  std::optional<double> roof;  // read roof of the device, bytes per second
  std::string written;         // file name, or empty

  bool failed() const { return !repeats_agree || (verdict && !verdict->ok); }
};

/// What --check found.
std::string check_line(const reference::Verdict& verdict);

void print(const RunReport& report);

}  // namespace deuce::cli
