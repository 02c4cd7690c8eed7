// SPDX-License-Identifier: Apache-2.0
// Is what was timed right? Judges as many requests of a batch as a time budget allows, the longest
// always among them.
#pragma once

#include "plan/problem.h"
#include "plan/status.h"

namespace deuce::cli {

struct BenchCheck {
  int32_t requests = 0, of = 0;  // judged, in the batch
  double worst_ratio = 0;        // error / tolerance
  bool ok = true;
  std::string first_failure;
};

/// `args` has host pointers only; out and lse hold what `used` computed.
Result<BenchCheck> check_requests(const deuce_decode_config& config, const deuce_decode_args& args,
                                  Backend used);

}  // namespace deuce::cli
