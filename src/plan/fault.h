// SPDX-License-Identifier: Apache-2.0
// Words for device faults and status codes. One place, so that a GPU, the emulator and the C face
// tell the same story about the same record.
#pragma once

#include "plan/status.h"

namespace deuce {

/// DEUCE_DEVICE_FAULT with the sentence for a fault record.
Status describe_fault(const deuce_fault& fault);

/// "invalid argument" for DEUCE_INVALID_ARGUMENT; never null.
const char* status_word(deuce_status status);

}  // namespace deuce
