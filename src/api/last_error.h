// SPDX-License-Identifier: Apache-2.0
// The thread's last sentence and the field it names, as deuce_last_error() returns them.
// Success allocates nothing here; running out of memory while reporting still leaves a sentence.
#pragma once

#include "plan/status.h"

namespace deuce {

/// Keeps the sentence (or clears it) and returns the code for the C caller.
deuce_status report(const Status& status) noexcept;
deuce_status report_out_of_memory() noexcept;
const char* last_sentence() noexcept;
const char* last_field() noexcept;

}  // namespace deuce
