// SPDX-License-Identifier: Apache-2.0
// Figures that explain the S/P ping-pong; see figures.h.
#include "trace/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "kernel/ring.h"
#include "trace/svg.h"

namespace deuce::trace {
namespace {

constexpr double kLeft = 120, kCell = 62, kHeight = 28;
constexpr std::size_t kOperations = 12, kScheduled = 10;

/// The first operations of the tensor pipe, in order; the parts of a PV count once.
std::vector<Range> operations(const Timeline& run) {
  std::vector<Range> order;
  const Track* pipe = find_agent(run, Agent::tensor_pipe);
  const Track* track = pipe != nullptr ? pipe : find_warp(run, Role::mma);
  if (track == nullptr) return order;
  for (const Range& range : track->ranges) {
    const bool is_qk = range.event == Event::pipe_QK || range.event == Event::mma_issue_QK;
    const bool is_pv = range.event == Event::pipe_PV || range.event == Event::mma_issue_PV;
    if (!is_qk && !is_pv) continue;
    if (!order.empty() && order.back().event == range.event && order.back().block == range.block) {
      continue;
    }
    order.push_back(range);
    if (order.size() == kOperations) break;
  }
  return order;
}

bool is_scores(const Range& range) {
  return range.event == Event::pipe_QK || range.event == Event::mma_issue_QK;
}

std::string operation_name(const Range& range) {
  return fmt::format("{} {}", is_scores(range) ? "QK" : "PV", range.block);
}

void residency_of(Svg& svg, const Timeline& run, double& y) {
  const std::vector<Range> order = operations(run);
  svg.text(kLeft, y + 12, run.facts.label, "b");
  svg.text(kLeft + 90, y + 12,
           fmt::format("{} score slot{}; order from the {} run", run.facts.score_slots,
                       run.facts.score_slots == 1 ? "" : "s", origin(run.facts)),
           "n");
  y += 22;
  svg.text(kLeft - 8, y + 14, "tensor pipe", "e");
  for (std::size_t i = 0; i < order.size(); ++i) {
    svg.text(kLeft + kCell * (static_cast<double>(i) + 0.5), y + 14, operation_name(order[i]), "m");
  }
  y += 22;
  struct Content {
    std::string words;
    std::string_view kind = "empty";
  };
  std::vector<Content> slots(static_cast<std::size_t>(run.facts.score_slots));
  for (std::size_t s = 0; s < slots.size(); ++s) {
    svg.text(kLeft - 8, y + kHeight * static_cast<double>(s) + 19, fmt::format("slot {}", s), "e");
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Range& now = order[i];
    Content& mine = slots[static_cast<std::size_t>(now.block) % slots.size()];
    mine = is_scores(now) ? Content{fmt::format("S {}", now.block), "S"}
                          : Content{fmt::format("P {}", now.block), "P"};
    for (std::size_t s = 0; s < slots.size(); ++s) {
      svg.cell(kLeft + kCell * static_cast<double>(i) + 1, y + kHeight * static_cast<double>(s) + 1,
               kCell - 2, kHeight - 2, slots[s].kind, slots[s].words);
    }
    if (!is_scores(now)) mine = {};
  }
  y += kHeight * static_cast<double>(slots.size()) + 18;
}

double entry(Svg& svg, double x, double y, std::string_view kind, std::string_view words) {
  svg.rect(x, y, 14, 14, kind);
  svg.text(x + 19, y + 11, words, "s");
  return x + 36 + text_width(words);
}

// --- schedule ---

struct Step {
  double begin, end;
};

/// Earliest times when QK and PV take one step and a softmax takes `softmax`, in the recorded
/// order.
void schedule_of(Svg& svg, const Timeline& run, double& y) {
  constexpr double kStep = 40, kSoftmax = 3;
  std::vector<Range> order = operations(run);
  order.resize(std::min(order.size(), kScheduled));
  svg.text(kLeft, y + 12, run.facts.label, "b");
  y += 20;
  const double mma = y, softmax = y + kHeight + 6;
  svg.text(kLeft - 8, mma + 19, "MMA", "e");
  svg.text(kLeft - 8, softmax + 19, "softmax", "e");
  std::map<int, Step> computed;
  double pipe = 0, warps = 0;
  for (const Range& now : order) {
    const double begin = is_scores(now) ? pipe : std::max(pipe, computed[now.block].end);
    pipe = begin + 1;
    svg.cell(kLeft + kStep * begin + 1, mma, kStep - 2, kHeight, is_scores(now) ? "qk" : "pv",
             operation_name(now));
    if (!is_scores(now)) continue;
    const Step step{std::max(pipe, warps), std::max(pipe, warps) + kSoftmax};
    warps = step.end;
    computed[now.block] = step;
    svg.cell(kLeft + kStep * step.begin + 1, softmax, kStep * kSoftmax - 2, kHeight, "sm",
             fmt::format("softmax {}", now.block));
  }
  y += 2 * kHeight + 26;
}

// --- barrier graph ---

/// From the one who cuts the work to the one who stores it.
std::vector<WarpRange> in_order_of_work(std::vector<WarpRange> roles) {
  const auto rank = [](const WarpRange& range) {
    return range.role == Role::schedule ? -1 : static_cast<int>(range.role);
  };
  std::sort(roles.begin(), roles.end(),
            [&](const WarpRange& a, const WarpRange& b) { return rank(a) < rank(b); });
  return roles;
}

std::string roles_text(const Edge& edge) {
  std::string text;
  for (const Arrival& arrival : edge.arrives) {
    if (arrival.by == By::nobody) continue;
    const char* manner = arrival.by == By::bytes               ? "bytes"
                         : arrival.by == By::commit            ? "commit"
                         : arrival.by == By::one_lane          ? "one lane"
                         : arrival.by == By::one_lane_per_warp ? "a lane per warp"
                                                               : "each thread";
    if (text.find(manner) == std::string::npos)
      text += (text.empty() ? "" : ", ") + std::string(manner);
  }
  return text;
}

std::string count_text(const Edge& edge, const std::vector<WarpRange>& roles) {
  if (edge.kind == EdgeKind::named) return fmt::format("{} threads", edge.threads);
  const int count = arrivals(edge, roles);
  return fmt::format("{} arrival{}", count, count == 1 ? "" : "s");
}

}  // namespace

std::string residency_svg(const std::vector<Timeline>& runs) {
  Svg svg(kLeft + kCell * kOperations + 24, "What lies in each S/P slot");
  svg.text(kLeft, 24, "What lies in each S/P slot of tensor memory", "h");
  double y = 40;
  for (const Timeline& run : runs) residency_of(svg, run, y);
  double x = entry(svg, kLeft, y, "S", "S: scores of a block");
  x = entry(svg, x, y, "P", "P: probabilities, read by PV");
  entry(svg, x, y, "empty", "empty");
  svg.text(kLeft, y + 34,
           "A column is one operation of the tensor pipe in issue order, not to scale.", "n");
  return svg.finish(y + 46);
}

std::string schedule_svg(const std::vector<Timeline>& runs) {
  Svg svg(kLeft + 40 * 25 + 24, "Schedules in issue order");
  svg.text(kLeft, 24, "Schedule in issue order, not to scale", "h");
  double y = 40;
  for (const Timeline& run : runs) schedule_of(svg, run, y);
  svg.text(kLeft, y + 8,
           "QK and PV take one step and a softmax three, by choice; the order of QK and PV is that "
           "of the recorded run.",
           "n");
  return svg.finish(y + 22);
}

std::string edges_svg(const std::vector<Edge>& edges, const std::vector<WarpRange>& warps,
                      const std::string& kernel) {
  const std::vector<WarpRange> roles = in_order_of_work(warps);
  constexpr double kColumn = 112, kLine = 34, kTop = 84, kName = 190;
  const auto column = [&](Role role) {
    for (std::size_t i = 0; i < roles.size(); ++i) {
      if (roles[i].role == role) return kName + kColumn * (static_cast<double>(i) + 0.5);
    }
    return -1.0;
  };
  std::vector<const Edge*> shown;
  for (const Edge& edge : edges) {
    if (edge.kind != EdgeKind::implied) shown.push_back(&edge);
  }
  const double bottom = kTop + kLine * static_cast<double>(shown.size());
  const double width = kName + kColumn * static_cast<double>(roles.size()) + 320;
  Svg svg(width, "Barrier graph");
  svg.text(16, 24, "Who signals whom: " + kernel, "h");
  for (const WarpRange& range : roles) {
    const double x = column(range.role);
    svg.line(x, kTop - 14, x, bottom, "l");
    svg.rect(x - kColumn / 2 + 4, 40, kColumn - 8, 30, "box");
    svg.text(x, 54, name_of(range.role), "m");
    svg.text(x, 66, fmt::format("{} warp{}", range.warps, range.warps == 1 ? "" : "s"), "m");
  }
  double y = kTop + 10;
  for (const Edge* edge : shown) {
    svg.text(16, y + 4, edge->name, "b");
    for (const Arrival& arrival : edge->arrives) {
      if (arrival.by == By::nobody) continue;
      for (const Role waits : {edge->waits, edge->waits_too[0], edge->waits_too[1],
                               edge->waits_too[2], edge->waits_too[3], edge->waits_too[4]}) {
        if (waits == Role::idle || waits == arrival.role) continue;
        svg.line(column(arrival.role), y, column(waits), y,
                 edge->kind == EdgeKind::named ? "ao" : "a");
      }
      svg.rect(column(arrival.role) - 3, y - 3, 6, 6, "qk");
    }
    svg.text(kName + kColumn * static_cast<double>(roles.size()) + 12, y + 4,
             fmt::format("{} ({}), {} slot{}", count_text(*edge, roles), roles_text(*edge),
                         edge->slots, edge->slots == 1 ? "" : "s"),
             "s");
    y += kLine;
  }
  svg.text(
      16, bottom + 16,
      "A square arrives, an arrow points at the role that waits; red: named barriers. Drawn from "
      "the edge table of the kernel.",
      "n");
  return svg.finish(bottom + 30);
}

namespace {

template <int kSlots>
void phase_rows(Svg& svg, double y) {
  auto ring = Ring<kSlots>::consumer();
  svg.text(kLeft - 8, y + 19, fmt::format("{} slot{}", kSlots, kSlots == 1 ? "" : "s"), "e");
  for (std::size_t i = 0; i < 10; ++i, ring.advance()) {
    const double x = kLeft + kCell * static_cast<double>(i);
    svg.cell(x + 1, y + 1, kCell - 2, kHeight - 2,
             ring.slot() == 0   ? "S"
             : ring.slot() == 1 ? "P"
                                : "sm",
             fmt::format("{} / {}", ring.slot(), ring.phase() & 1));
  }
}

}  // namespace

std::string phases_svg() {
  Svg svg(kLeft + kCell * 10 + 24, "Slot and phase bit");
  svg.text(kLeft, 24, "Slot / phase bit that the c-th PV waits for", "h");
  svg.text(kLeft - 8, 52, "PV number c", "e");
  for (int i = 0; i < 10; ++i) {
    svg.text(kLeft + kCell * (i + 0.5), 52, fmt::format("{}", i), "m");
  }
  phase_rows<1>(svg, 60);
  phase_rows<2>(svg, 60 + kHeight);
  phase_rows<3>(svg, 60 + 2 * kHeight);
  svg.text(kLeft, 60 + 3 * kHeight + 18,
           "slot = c mod n, phase bit = (c / n) mod 2, from the kernel's own ring cursor", "n");
  return svg.finish(60 + 3 * kHeight + 32);
}

}  // namespace deuce::trace
