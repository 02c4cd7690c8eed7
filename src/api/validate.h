// SPDX-License-Identifier: Apache-2.0
// What every backend asks of a config and of a call, checked on the host before anything runs.
// The first fault is reported with field, value and rule; what is backend-specific is not here.
#pragma once

#include "plan/problem.h"
#include "plan/status.h"

namespace deuce {

/// Resolves every default but the backend: an automatic choice stays `automatic` in the result.
Result<Problem> validate_config(const deuce_decode_config& config);

/// Checks one step's arguments against the plan and resolves their defaults in place.
/// Reads no memory behind a pointer.
Status validate_args(const Problem& problem, deuce_decode_args& args);

/// The part of validate_args about k, v, page tables and lengths.
Status validate_cache(const Problem& problem, const deuce_decode_args& args);

}  // namespace deuce
