// SPDX-License-Identifier: Apache-2.0
// Figures of a trace; see summary.h.
#include "trace/summary.h"

#include <fmt/format.h>

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
    for (const Range& range : track.ranges) {
      if (range.event == Event::sm_compute) first.try_emplace(range.block, range);
    }
  }
  std::vector<Range> blocks;
  for (const auto& [block, range] : first) blocks.push_back(range);
  std::sort(blocks.begin(), blocks.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  return blocks;
}

void count_blocks(const Timeline& timeline, Summary& summary) {
  std::vector<double> steps;
  for (uint32_t cta = 0; cta < ctas(timeline); ++cta) {
    const std::vector<Range> blocks = softmax_blocks(timeline, cta);
    summary.blocks += static_cast<int>(blocks.size());
    for (std::size_t i = 1; i < blocks.size(); ++i) {
      steps.push_back(blocks[i].begin - blocks[i - 1].begin);
    }
    if (cta == 0 && blocks.size() > 1) {
      summary.first = steps.front();
      summary.last = steps.back();
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
  double inside = 0, all = 0;
  for (uint32_t cta = 0; cta < ctas(timeline); ++cta) {
    const std::vector<Range> softmax = softmax_blocks(timeline, cta);
    for (const auto& [block, parts] : scores_of(timeline, cta, summary.overlap_is_bound)) {
      if (block < timeline.facts.score_slots) continue;  // there is nothing yet to hide under
      for (const Range& qk : parts) {
        all += qk.end - qk.begin;
        for (const Range& range : softmax) {
          if (range.block < block) inside += overlap_of(qk, range);
        }
      }
    }
  }
  summary.overlap = all > 0 ? inside / all : 0;
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
    if (per_cta > 0) {
      edge.per_block = edge.mean * static_cast<double>(edge.waits) / warps[edge.role] / per_cta;
    }
  }
  std::sort(summary.edges.begin(), summary.edges.end(),
            [](const EdgeWait& a, const EdgeWait& b) { return a.per_block > b.per_block; });
}

/// "softmax warp 1 (61 %), correction warp 0 (17 %)": the most frequent three.
std::string arrivers(const std::map<std::string, uint64_t>& last) {
  std::vector<std::pair<uint64_t, std::string>> order;
  uint64_t all = 0;
  for (const auto& [name, count] : last) {
    order.emplace_back(count, name);
    all += count;
  }
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, order.size()); ++i) {
    text += fmt::format("{}{} ({:.0f} %)", i > 0 ? ", " : "", order[i].second,
                        100.0 * static_cast<double>(order[i].first) / static_cast<double>(all));
  }
  return text;
}

std::string shown(Event event) {
  const EventInfo& row = info(event);
  return row.argument.empty() ? std::string(row.name)
                              : fmt::format("{} {}", row.name, row.argument);
}

std::string head_of(const Facts& facts) {
  return fmt::format(
      "run         {} ({}): {}, {} score slot{}\n"
      "problem     {}\n"
      "machine     {} at {:.3f} GHz{}\n",
      facts.label, origin(facts), facts.kernel, facts.score_slots,
      facts.score_slots == 1 ? "" : "s", facts.problem, facts.chip, facts.clock_hz * 1e-9,
      facts.simulated
          ? fmt::format("; {} costs of the timing model, seed {}", facts.costs, facts.seed)
          : "");
}

/// Blocks that follow each other in a CTA; without such there is no time from one to the next.
std::string blocks_of(const Facts& facts, const Summary& summary) {
  std::string out =
      fmt::format("blocks      {} KV blocks of {} keys; ", summary.blocks, facts.kv_block);
  if (summary.steps == 0) {
    return out +
           fmt::format("too few for cycles per block\nmemory      {} rescales of O by a warp\n",
                       summary.rescales);
  }
  const double bytes = 2.0 * 2 * facts.kv_block * facts.head_dim;
  return out + fmt::format(
                   "cycles per block: median {:.0f}, p95 {:.0f}, first {:.0f}, last {:.0f}\n"
                   "memory      {:.1f} bytes of K and V per cycle and CTA; {} rescales of O by a "
                   "warp\n",
                   summary.median, summary.p95, summary.first, summary.last, bytes / summary.median,
                   summary.rescales);
}

std::string records_of(const Timeline& timeline, const Summary& summary) {
  const Facts& facts = timeline.facts;
  std::string out = fmt::format("records     level {}, {} dropped, {}\n",
                                facts.level == Level::full ? "full" : "edges", timeline.dropped,
                                facts.untraced_cycles > 0
                                    ? fmt::format("{:+.1f} % cycles against the run without tracer",
                                                  100 * (facts.cycles / facts.untraced_cycles - 1))
                                    : "overhead not measured");
  if (facts.self_cost <= 0) return out;
  return out + fmt::format("self-cost   {:.1f} cycles a record, {} the times below\n",
                           facts.self_cost,
                           summary.record_cycles > 0 ? "taken off" : "contained in");
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

std::string text_of(const Timeline& timeline, const Summary& summary) {
  const Facts& facts = timeline.facts;
  std::string out = head_of(facts) + blocks_of(facts, summary);
  if (facts.kernel == "blackwell") {
    out += fmt::format("overlap     {:.0f} % of QK runs inside sm_compute of an earlier block{}\n",
                       100 * summary.overlap,
                       summary.overlap_is_bound ? " (an upper bound: issue to S seen)" : "");
  }
  out += records_of(timeline, summary);
  out += fmt::format("\n{:<14}{:<13}{:>7}{:>8}{:>8}{:>14}{:>8}  {}\n", "edge", "waiting role",
                     "waits", "mean", "p95", "cycles/block", "share", "last arriver");
  for (const EdgeWait& edge : summary.edges) {
    out += fmt::format("{:<14}{:<13}{:>7}{:>8.0f}{:>8.0f}{:>14.0f}{:>6.0f} %  {}\n", edge.edge,
                       name_of(edge.role), edge.waits, edge.mean, edge.p95, edge.per_block,
                       100 * edge.share, arrivers(edge.last));
  }
  out += fmt::format("\n{:<13}{:<24}{:>8}{:>14}{:>9}\n", "who", "event", "count", "cycles", "mean");
  for (const EventTotal& total : summary.events) {
    const std::string_view who = total.agent == Agent::warp          ? name_of(total.role)
                                 : total.agent == Agent::tensor_pipe ? "tensor pipe"
                                                                     : "TMA";
    out += fmt::format("{:<13}{:<24}{:>8}{:>14.0f}{:>9.0f}\n", who, shown(total.event), total.count,
                       total.cycles, total.cycles / static_cast<double>(total.count));
  }
  return out;
}

std::string difference(const Timeline& first, const Summary& a, const Timeline& second,
                       const Summary& b) {
  std::string out = fmt::format("{} against {} ({})\n", second.facts.label, first.facts.label,
                                origin(second.facts));
  out += fmt::format("cycles per block   {:.0f} -> {:.0f}, {:+.1f} % blocks per second\n", a.median,
                     b.median, 100 * (a.median / b.median - 1));
  out += fmt::format("overlap of QK      {:.0f} % -> {:.0f} %\n", 100 * a.overlap, 100 * b.overlap);
  out += "waiting, cycles per block\n";
  for (const EdgeWait& edge : a.edges) {
    const auto other = std::find_if(b.edges.begin(), b.edges.end(), [&](const EdgeWait& row) {
      return row.edge == edge.edge && row.role == edge.role;
    });
    if (other == b.edges.end() || std::max(edge.per_block, other->per_block) < 10) continue;
    out += fmt::format("  {:<14}{:<12}{:>6.0f} -> {:.0f}\n", edge.edge, name_of(edge.role),
                       edge.per_block, other->per_block);
  }
  return out;
}

}  // namespace deuce::trace
