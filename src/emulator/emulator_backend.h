// SPDX-License-Identifier: Apache-2.0
// The emulator backend: serves the public API on host pointers by running a GPU kernel's source.
// For tests and for looking inside; a hazard found on the way is a failed call, never a warning.
#pragma once

#include "plan/backend.h"

namespace deuce {

const BackendEntry& emulator_backend();

}  // namespace deuce
