// SPDX-License-Identifier: Apache-2.0
// Compares what a backend wrote with the exact result, element by element, within tolerance.h.
// Used by the property tests and by `deuce run --check`. Infinities and NaN must match exactly.
#pragma once

#include <cstdint>
#include <string>

#include "plan/problem.h"
#include "reference/tolerance.h"

namespace deuce::reference {

struct Verdict {
  bool ok = true;
  int64_t checked = 0;          // elements of output and LSE
  double worst_ratio = 0;       // largest error / bound
  double max_output_error = 0;  // absolute
  double max_lse_error = 0;     // absolute, in the LSE's own base
  std::string first_failure;    // names tensor, request, row, head, column and both values
};

/// Judges call.out, and call.lse unless null. The other fields are the inputs as they were run.
/// Allocates; costs about twice a run of the reference backend.
Verdict judge(const Problem& problem, const Call& call, const Precision& precision);

}  // namespace deuce::reference
