// SPDX-License-Identifier: Apache-2.0
// The JSON object that deuce_decode_explain writes: what was chosen, why, and what it needs.
#pragma once

#include <string>

#include "api/plan.h"

namespace deuce {

/// `call` may be nullptr; with a call the backend adds splits per item and predicted bytes.
std::string explain(const deuce_decode_plan_st& plan, const Call* call);

}  // namespace deuce
