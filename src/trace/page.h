// SPDX-License-Identifier: Apache-2.0
// A timeline as one HTML page that needs nothing else: zoom, hover, arrows, runs side by side on
// one axis. The data are inside as JSON, the drawing is a canvas.
#pragma once

#include <string>
#include <vector>

#include "trace/timeline.h"

namespace deuce::trace {

std::string timeline_page(const std::vector<Timeline>& runs);

}  // namespace deuce::trace
