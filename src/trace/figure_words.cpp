// SPDX-License-Identifier: Apache-2.0
// Colours, names and captions that every picture of a trace shares; see figures.h.
#include <fmt/format.h>

#include "trace/figures.h"

namespace deuce::trace {

std::string_view color_of(Event event) {
  switch (event) {
    case Event::mma_issue_QK:
    case Event::pipe_QK: return "qk";
    case Event::mma_issue_PV:
    case Event::pipe_PV: return "pv";
    case Event::sm_compute: return "sm";
    case Event::sm_load:
    case Event::sm_max:
    case Event::sm_exp:
    case Event::sm_row_sum: return "sum";
    case Event::tma_issue_K:
    case Event::tma_issue_V:
    case Event::tma_issue_Q:
    case Event::copy_K:
    case Event::copy_V:
    case Event::copy_Q: return "load";
    case Event::correction_rescale:
    case Event::correction_final:
    case Event::epi_store: return "fix";
    case Event::mma_wait_QK:
    case Event::mma_wait_PV: return "wait";
    default: return info(event).flow == Flow::wait ? "wait" : "other";
  }
}

std::string_view short_name(Event event) {
  switch (event) {
    case Event::mma_issue_QK:
    case Event::pipe_QK: return "QK";
    case Event::mma_issue_PV:
    case Event::pipe_PV: return "PV";
    case Event::sm_compute: return "softmax";
    case Event::sm_row_sum: return "sum";
    case Event::tma_issue_K:
    case Event::copy_K: return "K";
    case Event::tma_issue_V:
    case Event::copy_V: return "V";
    case Event::tma_issue_Q:
    case Event::copy_Q: return "Q";
    case Event::correction_rescale: return "rescale";
    case Event::epi_store: return "store";
    default: return {};
  }
}

std::string caption_of(const Facts& facts) {
  std::string text = fmt::format("{}: {}, {:.3f} GHz, {}", origin(facts), facts.chip,
                                 facts.clock_hz * 1e-9, facts.problem);
  if (facts.simulated) return text + fmt::format("; {} costs, seed {}", facts.costs, facts.seed);
  // A tracer slows down what it shows.
  if (facts.untraced_cycles > 0) {
    text += fmt::format("; tracer {:+.1f} % cycles", overhead(facts));
  }
  if (!facts.recorded.empty()) text += "; " + facts.recorded;
  return text;
}

}  // namespace deuce::trace
