// SPDX-License-Identifier: Apache-2.0
// Figures of a trace as text; see summary.h.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "trace/summary.h"

namespace deuce::trace {
namespace {

/// Only the Blackwell kernel records when scores run, and each rescale.
bool shows_scores(const Facts& facts) { return facts.kernel == "blackwell"; }

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

/// Where a run comes from, as far as its file knows.
std::string recorded_of(const Facts& facts) {
  std::string text = facts.recorded;
  if (!facts.driver.empty()) text += (text.empty() ? "driver " : ", driver ") + facts.driver;
  if (!facts.commit.empty()) text += (text.empty() ? "commit " : ", commit ") + facts.commit;
  return text.empty() ? text : "recorded    " + text + "\n";
}

/// Blocks that follow each other in a CTA; without such there is no time from one to the next.
std::string blocks_of(const Facts& facts, const Summary& summary) {
  std::string out =
      fmt::format("blocks      {} KV blocks of {} keys; ", summary.blocks, facts.kv_block);
  if (summary.steps == 0) {
    return out + "too few for cycles per block\n";
  }
  const double bytes = 2.0 * facts.element_bytes * facts.kv_block * facts.head_dim;
  return out + fmt::format(
                   "cycles per block: median {:.0f}, p95 {:.0f}, first {:.0f}, last {:.0f}\n"
                   "memory      {:.1f} bytes of K and V per cycle and CTA\n",
                   summary.median, summary.p95, summary.first, summary.last,
                   bytes / summary.median);
}

std::string records_of(const Timeline& timeline, const Summary& summary) {
  const Facts& facts = timeline.facts;
  std::string out = fmt::format(
      "records     level {}, {} dropped, {}\n", facts.level == Level::full ? "full" : "edges",
      timeline.dropped,
      facts.untraced_cycles > 0
          ? fmt::format("{:+.1f} % cycles against the run without tracer", overhead(facts))
          : "overhead not measured");
  if (timeline.dropped > 0) {
    out +=
        "            the figures are those of the records kept, not of the whole run; --records "
        "keeps more\n";
  }
  if (facts.self_cost <= 0) return out;
  return out + fmt::format("self-cost   {:.1f} cycles a record, {} the times below\n",
                           facts.self_cost,
                           summary.record_cycles > 0 ? "taken off" : "contained in");
}

}  // namespace

std::string text_of(const Timeline& timeline, const Summary& summary) {
  const Facts& facts = timeline.facts;
  std::string out = head_of(facts) + recorded_of(facts) + blocks_of(facts, summary);
  if (shows_scores(facts)) {
    out += fmt::format(
        "rescales    {} of O by a warp\n"
        "overlap     {:.0f} % of QK runs inside sm_compute of an earlier block{}\n",
        summary.rescales, 100 * summary.overlap,
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

namespace {

/// Cycles of two runs are those of their own clocks; a block is one only where it has as many keys.
std::string blocks_text(const Facts& first, const Summary& a, const Facts& second,
                        const Summary& b) {
  if (a.steps == 0 || b.steps == 0) return "cycles per block   not known: too few blocks\n";
  std::string out = fmt::format("cycles per block   {:.0f} -> {:.0f}", a.median, b.median);
  if (first.kv_block != second.kv_block) {
    return out + fmt::format(", of {} and of {} keys\n", first.kv_block, second.kv_block);
  }
  const auto work = [](const Facts& facts) {
    return std::tuple(facts.head_dim, facts.rows, facts.element_bytes);
  };
  if (work(first) != work(second)) {
    return out + fmt::format(", of head dim {} with {} rows and of {} with {}\n", first.head_dim,
                             first.rows, second.head_dim, second.rows);
  }
  const double clocks = second.clock_hz / first.clock_hz;
  return out +
         fmt::format(", {:+.1f} % blocks per second\n", 100 * (a.median / b.median * clocks - 1));
}

}  // namespace

std::string difference(const Timeline& first, const Summary& a, const Timeline& second,
                       const Summary& b) {
  const bool one_origin = first.facts.simulated == second.facts.simulated;
  std::string out = one_origin
                        ? fmt::format("{} against {} ({})\n", second.facts.label, first.facts.label,
                                      origin(second.facts))
                        : fmt::format("{} ({}) against {} ({})\n", second.facts.label,
                                      origin(second.facts), first.facts.label, origin(first.facts));
  out += blocks_text(first.facts, a, second.facts, b);
  if (shows_scores(first.facts) && shows_scores(second.facts)) {
    out +=
        fmt::format("overlap of QK      {:.0f} % -> {:.0f} %\n", 100 * a.overlap, 100 * b.overlap);
  }
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
