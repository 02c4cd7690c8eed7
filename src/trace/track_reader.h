// SPDX-License-Identifier: Apache-2.0
// The records of one slice as ranges, instants and samples of a track. Used by timeline.cpp.
#pragma once

#include "trace/timeline.h"

namespace deuce::trace {

/// Fills `track`, whose name stands in the sentence of a refusal; times are those of the slice's
/// clock. INVALID_ARGUMENT when ranges do not nest or a parity contradicts the count of its phases.
Status read_track(const Slice& slice, int score_slots, Track& track);

}  // namespace deuce::trace
