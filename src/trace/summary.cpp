// SPDX-License-Identifier: Apache-2.0
// Figures of a trace; see summary.h.
#include "trace/summary.h"

#include <algorithm>
#include <tuple>

namespace deuce::trace {
namespace {

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

double overlap_of(const Range& a, const Range& b) {
  return std::max(0.0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
}

uint32_t ctas(const Timeline& timeline) {
  uint32_t count = 0;
  for (const Track& track : timeline.tracks) count = std::max(count, track.cta + 1);
  return count;
}

/// Where the softmax of each KV block starts, in the first warp of a CTA that computes it.
std::vector<Range> softmax_blocks(const Timeline& timeline, uint32_t cta) {
  std::map<int, Range> first;
  for (const Track& track : timeline.tracks) {
    if (track.cta != cta || track.agent != Agent::warp) continue;
    for (const Range& range : ranges_of(track, Event::sm_compute)) {
      first.try_emplace(range.block, range);
    }
  }
  std::vector<Range> blocks;
  for (const auto& [block, range] : first) blocks.push_back(range);
  std::sort(blocks.begin(), blocks.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  return blocks;
}

/// Cycles a block from each softmax of a list to the next. A warp of Hopper takes every n-th block,
/// which the numbers of its blocks tell: the others are done meanwhile.
void add_steps(const std::vector<Range>& softmax, std::vector<double>& steps) {
  for (std::size_t i = 1; i < softmax.size(); ++i) {
    const int blocks = std::max(1, softmax[i].block - softmax[i - 1].block);
    steps.push_back((softmax[i].begin - softmax[i - 1].begin) / blocks);
  }
}

void count_blocks(const Timeline& timeline, Summary& summary) {
  std::vector<double> steps;
  for (uint32_t cta = 0; cta < ctas(timeline); ++cta) {
    const std::vector<Range> blocks = softmax_blocks(timeline, cta);
    summary.blocks += static_cast<int>(blocks.size());
    std::vector<double> first;  // of the warp that stands for the CTA
    if (find_warp(timeline, Role::attend, 0, cta) == nullptr) {
      add_steps(blocks, first);
      steps.insert(steps.end(), first.begin(), first.end());
    }
    for (int n = 0; const Track* warp = find_warp(timeline, Role::attend, n, cta); ++n) {
      std::vector<double> own;
      add_steps(ranges_of(*warp, Event::sm_compute), own);
      if (first.empty()) first = own;
      steps.insert(steps.end(), own.begin(), own.end());
    }
    if (cta == 0 && !first.empty()) {
      summary.first = first.front();
      summary.last = first.back();
    }
  }
  summary.steps = steps.size();
  summary.median = percentile(steps, 0.5);
  summary.p95 = percentile(steps, 0.95);
}

/// QK of a block: as the tensor pipe ran it, else from its issue until somebody saw the scores.
std::map<int, std::vector<Range>> scores_of(const Timeline& timeline, uint32_t cta, bool& bound) {
  std::map<int, std::vector<Range>> scores;
  if (const Track* pipe = find_agent(timeline, Agent::tensor_pipe, cta)) {
    for (const Range& range : pipe->ranges) {
      if (range.event == Event::pipe_QK) scores[range.block].push_back(range);
    }
    return scores;
  }
  bound = true;
  const Track* mma = find_warp(timeline, Role::mma, 0, cta);
  const Track* softmax = find_warp(timeline, Role::softmax, 0, cta);
  if (mma == nullptr || softmax == nullptr) return scores;
  for (const Range& range : mma->ranges) {
    if (range.event != Event::mma_issue_QK) continue;
    const Range* seen = find_range(*softmax, Event::sm_wait_S, range.block);
    if (seen == nullptr) continue;
    Range whole = range;
    whole.end = seen->end;
    scores[range.block].push_back(whole);
  }
  return scores;
}

void measure_overlap(const Timeline& timeline, Summary& summary) {
  std::vector<double> shares;
  for (uint32_t cta = 0; cta < ctas(timeline); ++cta) {
    const std::vector<Range> softmax = softmax_blocks(timeline, cta);
    for (const auto& [block, parts] : scores_of(timeline, cta, summary.overlap_is_bound)) {
      if (block < timeline.facts.score_slots) continue;  // there is nothing yet to hide under
      double inside = 0, all = 0;
      for (const Range& qk : parts) {
        all += qk.end - qk.begin;
        for (const Range& range : softmax) {
          if (range.block < block) inside += overlap_of(qk, range);
        }
      }
      if (all > 0) shares.push_back(inside / all);
    }
  }
  summary.overlap = percentile(shares, 0.5);
}

/// Length of a range without the records written in it.
double net(const Range& range, double record_cycles) {
  return std::max(0.0, range.end - range.begin - range.records * record_cycles);
}

void total_events(const Timeline& timeline, Summary& summary) {
  std::map<std::tuple<Agent, Role, Event>, EventTotal> totals;
  for (const Track& track : timeline.tracks) {
    for (const Range& range : track.ranges) {
      EventTotal& total = totals[{track.agent, track.role, range.event}];
      total.agent = track.agent;
      total.role = track.role;
      total.event = range.event;
      ++total.count;
      total.cycles += net(range, summary.record_cycles);
      if (range.event == Event::correction_rescale) ++summary.rescales;
    }
  }
  for (const auto& [key, total] : totals) summary.events.push_back(total);
}

void count_waits(const Timeline& timeline, Summary& summary) {
  struct Waits {
    std::vector<double> cycles;
    std::map<std::string, uint64_t> last;
  };
  std::map<std::pair<std::string_view, Role>, Waits> edges;
  std::map<Role, double> life;
  for (const Track& track : timeline.tracks) {
    for (const Range& range : track.ranges) {
      if (range.event == Event::warp_lifetime) life[track.role] += range.end - range.begin;
      const EventInfo& row = info(range.event);
      if (row.flow == Flow::wait)
        edges[{row.edge, track.role}].cycles.push_back(net(range, summary.record_cycles));
    }
  }
  for (const Arrow& arrow : timeline.arrows) {
    ++edges[{arrow.edge, timeline.tracks[arrow.to_track].role}]
          .last[timeline.tracks[arrow.from_track].name];
  }
  for (auto& [key, waits] : edges) {
    EdgeWait edge;
    edge.edge = key.first;
    edge.role = key.second;
    edge.waits = waits.cycles.size();
    double sum = 0;
    for (const double cycles : waits.cycles) sum += cycles;
    edge.mean = edge.waits > 0 ? sum / static_cast<double>(edge.waits) : 0;
    edge.p95 = percentile(waits.cycles, 0.95);
    edge.share = life[key.second] > 0 ? sum / life[key.second] : 0;
    edge.last = std::move(waits.last);
    summary.edges.push_back(std::move(edge));
  }
}

void per_block(const Timeline& timeline, Summary& summary) {
  std::map<Role, int> warps;
  for (const Track& track : timeline.tracks)
    warps[track.role] += track.agent == Agent::warp ? 1 : 0;
  const double per_cta = static_cast<double>(summary.blocks) / std::max(1u, ctas(timeline));
  for (EdgeWait& edge : summary.edges) {
    if (per_cta > 0 && warps[edge.role] > 0) {
      edge.per_block = edge.mean * static_cast<double>(edge.waits) / warps[edge.role] / per_cta;
    }
  }
  std::sort(summary.edges.begin(), summary.edges.end(),
            [](const EdgeWait& a, const EdgeWait& b) { return a.per_block > b.per_block; });
}

}  // namespace

Summary summarize(const Timeline& timeline, double record_cycles) {
  Summary summary;
  summary.record_cycles = record_cycles;
  count_blocks(timeline, summary);
  measure_overlap(timeline, summary);
  total_events(timeline, summary);
  count_waits(timeline, summary);
  per_block(timeline, summary);
  return summary;
}

}  // namespace deuce::trace
