// SPDX-License-Identifier: Apache-2.0
// The blackwell backend: the S/P ping-pong kernel on a device of compute capability 10.
// Compiled, inspected and run in the emulator; this project has not run it on silicon.
#pragma once

#include "plan/backend.h"

namespace deuce {

const BackendEntry& blackwell_backend();

}  // namespace deuce
