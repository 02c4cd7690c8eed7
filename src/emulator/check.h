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
  int blocks = 4;      // CTAs of the emulated grid
  int schedules = 20;  // one timed, eager and lazy, five adversarial, the others random
  uint64_t seed = 1;
  std::optional<RunName> replay;  // this schedule alone
  bool strict = false;            // ptx-strict
  bool strict_order = false;      // the kernel that waits instead of relying on the tensor pipe
  OpFilter* filter = nullptr;     // a mutant
};

struct EdgeCount {
  std::string name;
  std::size_t row = 0;  // of the kernel's table
  bool named = false;   // a hardware barrier, which has no parity
  EdgeUse use{};        // all runs together
  /// A slot was used again (a named barrier: at all) and somebody had to block: without that a
  /// missing wait or arrival of the edge does no harm, so a clean run would not say that it is
  /// there.
  bool exercised() const { return use.laps > (named ? 0 : 1) && use.waits > 0; }
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
