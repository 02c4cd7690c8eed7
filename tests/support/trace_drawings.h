// SPDX-License-Identifier: Apache-2.0
// Everything that can be drawn of runs, for tests that only ask whether it can be.
#pragma once

#include <string>
#include <vector>

#include "trace/figures.h"
#include "trace/page.h"
#include "trace/perfetto.h"
#include "trace/summary.h"

namespace deuce::test {

inline std::string all_drawings(const std::vector<trace::Timeline>& runs) {
  std::string all = trace::perfetto_trace(runs, trace::TimeUnit::ns) +
                    trace::perfetto_trace(runs, trace::TimeUnit::cycles) +
                    trace::chrome_trace(runs) + trace::timeline_page(runs) +
                    trace::timeline_svg(runs) + trace::schedule_to_scale_svg(runs) +
                    trace::residency_svg(runs) + trace::schedule_svg(runs);
  std::vector<trace::Summary> summaries;
  for (const trace::Timeline& run : runs) {
    summaries.push_back(trace::summarize(run, run.facts.self_cost));
    all += trace::text_of(run, summaries.back());
  }
  return all + trace::difference(runs.front(), summaries.front(), runs.back(), summaries.back());
}

}  // namespace deuce::test
