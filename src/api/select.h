// SPDX-License-Identifier: Apache-2.0
// From a caller's config to one backend that supports it: the single path behind check,
// workspace_size and plan_create, so that they cannot tell different stories.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/environment.h"
#include "plan/backend.h"

namespace deuce {

struct Selection {
  Problem problem;  // problem.backend is the one taken
  const BackendEntry* entry = nullptr;
  bool automatic = false;    // the caller and the environment left the choice to us
  bool cuda_memory = false;  // device_type, given or implied
  std::vector<EnvironmentChange> environment;
};

/// Reads, validates and chooses; the refusal of the backend when it does not support the config.
Result<Selection> select_backend(const deuce_decode_config* config);

/// For every backend that was not taken: its name and why.
std::vector<std::pair<std::string, std::string>> reasons_not_taken(const Selection& selection);

/// "cpu, reference": the backends in this library.
std::string backend_list();

}  // namespace deuce
