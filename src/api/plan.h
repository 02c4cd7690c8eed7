// SPDX-License-Identifier: Apache-2.0
// What a deuce_decode_plan handle points to. Immutable after creation, so any number of threads
// may run it at once.
#pragma once

#include <memory>

#include "api/select.h"
#include "plan/backend.h"

struct deuce_decode_plan_st {
  deuce::Selection selection;
  std::unique_ptr<deuce::BackendPlan> backend;
  deuce::WorkspaceNeed need;
};
