// SPDX-License-Identifier: Apache-2.0
// Figures of a trace: cycles per KV block, time per role and event, waiting per barrier edge and
// who arrived last, and how much of QK runs inside softmax. As numbers for tests and as text for
// people.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "trace/timeline.h"

namespace deuce::trace {

struct EventTotal {
  Role role = Role::idle;
  Agent agent = Agent::warp;
  Event event{};
  uint64_t count = 0;
  double cycles = 0;  // all warps of the role together
};

struct EdgeWait {
  std::string edge;
  Role role = Role::idle;  // that waits
  uint64_t waits = 0;
  double mean = 0, p95 = 0;  // cycles
  double per_block = 0,
         share = 0;  // of one warp of the role: cycles per KV block, part of its life
  std::map<std::string, uint64_t> last;  // arrivers that came last: track name, phases
};

struct Summary {
  int blocks = 0;              // KV blocks, all CTAs together
  std::size_t steps = 0;       // from one block to the next of a CTA
  double median = 0, p95 = 0;  // of their cycles: between the starts of neighbouring blocks
  double first = 0, last = 0;  // of the first and of the last pair
  /// Of the time that QK of a block keeps the tensor pipe busy, the share inside sm_compute (S seen
  /// until the last quarter of P is handed over) of an earlier block; the median over the blocks,
  /// so that the first ones, whose keys are still under way, do not make a short run another
  /// kernel. Blocks that find every slot empty do not count.
  double overlap = 0;
  bool overlap_is_bound = false;  // no unit showed when QK ran: an upper bound
  uint64_t rescales = 0;
  double record_cycles = 0;  // taken off for each record inside a range
  std::vector<EventTotal> events;
  std::vector<EdgeWait> edges;
};

/// `record_cycles` are taken off the ranges for every record written inside them: the tracer's own
/// cost, by Facts::self_cost, or 0 for the times as they were.
Summary summarize(const Timeline& timeline, double record_cycles = 0);
/// The text of summary.txt for one run.
std::string text_of(const Timeline& timeline, const Summary& summary);
/// What a second run changes against a first.
std::string difference(const Timeline& first, const Summary& a, const Timeline& second,
                       const Summary& b);

}  // namespace deuce::trace
