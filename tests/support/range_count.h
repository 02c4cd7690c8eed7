// SPDX-License-Identifier: Apache-2.0
// How many ranges of an event a timeline has, all tracks together. Used by the tests of traces.
#pragma once

#include "trace/timeline.h"

namespace deuce::test {

inline int range_count(const trace::Timeline& timeline, trace::Event event) {
  std::size_t found = 0;
  for (const trace::Track& track : timeline.tracks) found += ranges_of(track, event).size();
  return static_cast<int>(found);
}

}  // namespace deuce::test
