// SPDX-License-Identifier: Apache-2.0
// From the C structs to the judge's own types, by the library's validation.
#include "verify.h"

#include "api/validate.h"

namespace deuce::cli {

Result<reference::Verdict> verify(const deuce_decode_config& config, deuce_decode_args args,
                                  Backend used) {
  const Result<Problem> problem = validate_config(config);
  if (!problem.ok()) return problem.status();
  if (Status status = validate_args(problem.value(), args); !status.ok()) return status;
  return reference::judge(problem.value(), args, reference::precision_of(used, problem.value()));
}

}  // namespace deuce::cli
