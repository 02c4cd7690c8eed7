// SPDX-License-Identifier: Apache-2.0
// What `deuce check` does: one decode problem under many schedules, and a verdict.
// Every run must be free of findings and equal to the first one bit for bit, and the first one must
// agree with double precision. Whatever was not executed makes the verdict incomplete, never clean.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emulator/decode_case.h"
#include "emulator/launch.h"
#include "plan/status.h"

namespace deuce::emulator {

struct CheckSettings {
  CaseSpec spec;
  int blocks = 2;      // of the emulated grid
  int schedules = 20;  // one timed, eager and lazy, one adversarial per role, the others random
  uint64_t seed = 1;
  std::optional<RunName> replay;  // this schedule alone
  bool strict = false;            // ptx-strict
  bool strict_order = false;      // the kernel that waits instead of relying on the tensor pipe
  OpFilter* filter = nullptr;     // a mutant
};

struct EdgeCount {
  std::string name;
  uint64_t phases = 0;  // completed, all runs together
};

struct CheckResult {
  Verdict verdict = Verdict::clean;
  Report report;
  int row_replicas = 1;          // that were taken: the spec's, or what a plan chooses for 0
  std::vector<RunName> runs;     // that ended
  std::vector<EdgeCount> edges;  // without implied ones
  uint64_t rescales = 0;         // of O by a warp, all runs together
  std::string difference;        // from double precision, empty = none
  std::string unequal;           // first run whose results differ from the first run's
  double cycles = 0;             // of the timed run on plain content
  int total_edges() const { return static_cast<int>(edges.size()); }
  int exercised_edges() const;
};

/// Called after each run with runs done and runs in all; false stops, which leaves it incomplete.
using CheckProgress = std::function<bool(int, int)>;

/// UNSUPPORTED or INVALID_ARGUMENT when the kernel does not take the problem.
Result<CheckResult> check(const CheckSettings& settings, const CheckProgress& progress = {});

}  // namespace deuce::emulator
