// SPDX-License-Identifier: Apache-2.0
// Pictures of a trace, as self-contained SVG: the timelines side by side, and the figures by which
// the S/P ping-pong is explained. All are drawn from recorded runs or from the kernel's own tables.
#pragma once

#include <string>
#include <vector>

#include "trace/timeline.h"

namespace deuce::trace {

/// The class of an event's colour, and its name inside a small cell.
std::string_view color_of(Event event);
std::string_view short_name(Event event);
/// "simulated: B200 (model), 1.845 GHz, head dim 64, ..."
std::string caption_of(const Facts& facts);

/// The stretch of a run that pictures show first.
struct Window {
  double begin = 0, length = 0;
};
/// Four KV blocks in the middle of the run; all of it where there are few.
Window steady_window(const Timeline& run);

/// Four steady KV blocks of every run on one axis, each run aligned at the start of a block.
std::string timeline_svg(const std::vector<Timeline>& runs);
/// What lies in each S/P slot, operation by operation of the tensor pipe.
std::string residency_svg(const std::vector<Timeline>& runs);
/// Tensor pipe and softmax in the order of issue, not to scale.
std::string schedule_svg(const std::vector<Timeline>& runs);
/// The same two rows to the scale of the recorded time.
std::string schedule_to_scale_svg(const std::vector<Timeline>& runs);
/// Roles, and the barriers between them.
std::string edges_svg(const std::vector<Edge>& edges, const std::vector<WarpRange>& roles,
                      const std::string& kernel);
/// Slot and phase of the first PVs.
std::string phases_svg();

}  // namespace deuce::trace
