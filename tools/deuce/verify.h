// SPDX-License-Identifier: Apache-2.0
// Judges a result against double precision, within the tolerance of src/reference/tolerance.h.
#pragma once

#include "plan/problem.h"
#include "plan/status.h"
#include "reference/judge.h"

namespace deuce::cli {

/// Every pointer of `args` is host memory; out and lse hold what `used` computed.
Result<reference::Verdict> verify(const deuce_decode_config& config, deuce_decode_args args,
                                  Backend used);

}  // namespace deuce::cli
