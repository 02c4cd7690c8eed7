// SPDX-License-Identifier: Apache-2.0
// Timelines as files of the trace viewers: Perfetto's TrackEvent protobuf (ui.perfetto.dev) and the
// JSON of Chrome's tracing. Several runs go into one file, each a tree of its own on one time axis.
#pragma once

#include <string>
#include <vector>

#include "trace/timeline.h"

namespace deuce::trace {

/// Unit of the time axis: nanoseconds, or one unit for each cycle (viewers then show "ns").
enum class TimeUnit { ns, cycles };

std::string perfetto_trace(const std::vector<Timeline>& runs, TimeUnit unit);
std::string chrome_trace(const std::vector<Timeline>& runs);

/// "base: simulated, B200 (model) at 1.845 GHz"
std::string run_title(const Facts& facts);
/// What a track shows and does not show; empty for most.
std::string track_note(const Track& track);

}  // namespace deuce::trace
