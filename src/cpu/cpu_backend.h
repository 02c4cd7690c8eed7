// SPDX-License-Identifier: Apache-2.0
// The CPU backend's entry in the backend table.
#pragma once

#include "plan/backend.h"

namespace deuce {

const BackendEntry& cpu_backend();

}  // namespace deuce
