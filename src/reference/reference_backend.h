// SPDX-License-Identifier: Apache-2.0
// The reference backend: attention in double precision, three loops, every feature of the API.
// It judges all other backends, so it shares no arithmetic, masking or scheduling code with them.
#pragma once

#include "plan/backend.h"

namespace deuce {

const BackendEntry& reference_backend();

}  // namespace deuce
