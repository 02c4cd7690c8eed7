// SPDX-License-Identifier: Apache-2.0
// Backend `hopper`: the sm_90a kernel behind the C API. See docs/hopper.md.
#pragma once

#include "plan/backend.h"

namespace deuce {

const BackendEntry& hopper_backend();

}  // namespace deuce
