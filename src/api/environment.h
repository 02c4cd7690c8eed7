// SPDX-License-Identifier: Apache-2.0
// The three environment variables that choose among legal ways at plan creation.
// Each fills a config field that the caller left at zero; none changes what a call means.
#pragma once

#include <string>
#include <vector>

#include "deuce/deuce.h"
#include "plan/status.h"

namespace deuce {

/// A config field that a variable has filled, as explain reports it.
struct EnvironmentChange {
  std::string variable, value, field;
};

/// Fills the fields of `config` that are zero; a value that cannot be read is refused.
Result<std::vector<EnvironmentChange>> apply_environment(deuce_decode_config& config);

}  // namespace deuce
