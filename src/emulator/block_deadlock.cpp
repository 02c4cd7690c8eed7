// SPDX-License-Identifier: Apache-2.0
// What blocked warps wait for, and the cycle they form; see block.h.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "emulator/grid.h"
#include "emulator/words.h"

namespace deuce::emulator {
namespace {

constexpr int kNobody = -1;
constexpr const char* kWarpgroup = "warpgroup";  // in the place of an edge's name

}  // namespace

const BarrierState& Block::barrier_of(const Op& wait) const {
  const auto offset = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(wait.barrier) -
                                               (shared_.data() + shared_skip_));
  return barriers_[static_cast<std::size_t>(barrier_at_[offset / 8])];
}

std::string Block::blocked_line(const Warp& warp) const {
  const Op& call = op(warp, __builtin_ctz(warp.waiting));
  std::string line = fmt::format("  CTA {} {:<20} ", index_, warp_name(warp.index));
  if (call.kind == OpKind::wait) {
    const BarrierState& barrier = barrier_of(call);
    line += fmt::format("waits {} phase {} ({} complete): {} of {} arrivals and {} bytes missing",
                        barrier_name(barrier), call.index, barrier.phase, barrier.pending,
                        barrier.expected, barrier.bytes);
    if (barrier.edge >= 0) {
      line += "  ->";
      for (const Arrival& arrival : kernel_.edges[static_cast<std::size_t>(barrier.edge)].arrives) {
        if (arrival.by != By::nobody) line += fmt::format(" {}", name_of(arrival.role));
      }
    }
  } else if (call.kind == OpKind::registers) {
    line += fmt::format("wants {} registers a thread, {} are free in the block", call.index,
                        registers_free_);
  } else {
    line += fmt::format("at a {} {}", mnemonic(call.kind), call.index);
    const Edge* edge = call.kind == OpKind::sync_named ? named_edge(call.index) : nullptr;
    if (edge != nullptr) line += fmt::format(", {}", edge->name);
  }
  line += fmt::format("  {}:{}", file_name(call.site.file), call.site.line);
  if (warp.kv_block >= 0) line += fmt::format(", KV block {}", warp.kv_block);
  return line + "\n";
}

// Warps whose arrival completes the phase that a blocked warp waits for; none where the edge table
// does not say whose that is.
Block::Missing Block::missing(const Warp& warp) const {
  Missing found;
  if (warp.live == 0 || warp.waiting == 0) return found;
  const Op& call = op(warp, __builtin_ctz(warp.waiting));
  if (call.kind == OpKind::sync_named) {
    found.edge = named_edge(call.index);
    if (found.edge != nullptr) missing_on_named(call.index, found);
  } else if (call.kind == OpKind::wait) {
    const BarrierState& barrier = barrier_of(call);
    if (barrier.edge < 0) return found;
    found.edge = &kernel_.edges[static_cast<std::size_t>(barrier.edge)];
    for (const Arrival& arrival : found.edge->arrives) missing_of(arrival, barrier, found);
  } else if (call.kind == OpKind::wgmma_wait) {
    missing_of_warpgroup(warp, found);
  }
  return found;
}

// Warps that have not issued the MMA which the others of their warpgroup wait for.
void Block::missing_of_warpgroup(const Warp& warp, Missing& found) const {
  const GroupMmas& all = group_mmas_[static_cast<std::size_t>(warp.index / 4)];
  if (all.running.empty()) return;
  for (int quarter = 0; quarter < 4; ++quarter) {
    if ((all.running.front().warps >> quarter & 1u) == 0) {
      found.warps.push_back(warp.index / 4 * 4 + quarter);
    }
  }
}

void Block::missing_on_named(int id, Missing& found) const {
  const Edge& edge = *found.edge;
  for (const WarpRange& range : kernel_.roles) {
    if (!role_arrives(edge, range.role) && !role_waits(edge, range.role)) continue;
    const bool one_a_slot = edge.slots > 1 && edge.slots == range.warps;
    for (int w = range.first_warp; w < range.first_warp + range.warps; ++w) {
      if (one_a_slot && w - range.first_warp != id - edge.first_id) continue;
      if ((named_[static_cast<std::size_t>(id)].arrived_warps >> w & 1u) == 0) {
        found.warps.push_back(w);
      }
    }
  }
}

void Block::missing_of(const Arrival& arrival, const BarrierState& barrier, Missing& found) const {
  if (arrival.by == By::nobody) return;
  const bool every_warp = arrival.by == By::each_thread || arrival.by == By::one_lane_per_warp;
  std::vector<int> open;
  int warps = 0;
  for (const Warp& warp : warps_) {
    if (warp.role != arrival.role) continue;
    ++warps;
    if ((barrier.arrived_warps >> warp.index & 1u) == 0) open.push_back(warp.index);
  }
  const bool bytes_missing = arrival.by == By::bytes && barrier.bytes != 0;
  if (!every_warp && static_cast<int>(open.size()) < warps && !bytes_missing) return;
  if (bytes_missing) {
    open.clear();
    for (const Warp& warp : warps_) {
      if (warp.role == arrival.role) open.push_back(warp.index);
    }
  }
  found.warps.insert(found.warps.end(), open.begin(), open.end());
}

// Depth first along missing arrivals. A warp met again while its own wait is being followed closes
// a cycle; where there is none, somebody waits for a warp that has left the kernel.
void Block::follow(int warp, Path& path) const {
  path.visited |= 1u << warp;
  path.warps.push_back(warp);
  const Missing found = missing(warps_[static_cast<std::size_t>(warp)]);
  // All arrivals of the table have come, and the phase expects more.
  if (found.edge != nullptr && found.warps.empty()) path.starved.emplace_back(warp, kNobody);
  for (const int next : found.warps) {
    const auto again = std::find(path.warps.begin(), path.warps.end(), next);
    if (again != path.warps.end()) {
      path.cycle.assign(again, path.warps.end());
      return;
    }
    if (warps_[static_cast<std::size_t>(next)].live == 0) {
      path.starved.emplace_back(warp, next);
    } else if ((path.visited >> next & 1u) == 0) {
      follow(next, path);
      if (!path.cycle.empty()) return;
    }
  }
  path.warps.pop_back();
}

WaitCycle Block::wait_cycle() const {
  Path path;
  for (const Warp& warp : warps_) {
    if (path.cycle.empty() && (path.visited >> warp.index & 1u) == 0) {
      path.warps.clear();
      follow(warp.index, path);
    }
  }
  const auto role = [&](int warp) { return name_of(warps_[static_cast<std::size_t>(warp)].role); };
  const auto edge = [&](int warp) {
    const Edge* found = missing(warps_[static_cast<std::size_t>(warp)]).edge;
    return std::string(found == nullptr ? kWarpgroup : found->name);
  };
  WaitCycle result;
  if (!path.cycle.empty()) {
    std::string text;
    for (const int warp : path.cycle) {
      result.edges.insert(edge(warp));
      text += fmt::format("{} -> ", role(warp));
    }
    result.text = fmt::format("  CTA {} cycle: {}{}, by {}\n", index_, text,
                              role(path.cycle.front()), fmt::join(result.edges, ", "));
    return result;
  }
  for (const auto& [waiting, gone] : path.starved) {
    if (!result.edges.insert(edge(waiting)).second) continue;
    result.text +=
        fmt::format("  CTA {} starved: {} waits {}, {}\n", index_, role(waiting), edge(waiting),
                    gone == kNobody ? "which expects more arrivals than the edge table lists"
                                    : fmt::format("and {} has left the kernel", role(gone)));
  }
  return result;
}

/// Who has left the kernel: roles, or warps of a role of which others stay.
std::string Block::gone_line() const {
  std::vector<std::string> names;
  for (const WarpRange& range : kernel_.roles) {
    if (range.role == Role::idle) continue;
    std::vector<int> gone;
    for (int w = range.first_warp; w < range.first_warp + range.warps; ++w) {
      if (warps_[static_cast<std::size_t>(w)].live == 0) gone.push_back(w);
    }
    if (gone.empty()) continue;
    const bool all = static_cast<int>(gone.size()) == range.warps;
    names.push_back(all ? std::string(name_of(range.role))
                        : fmt::format("{} warp {}", name_of(range.role), fmt::join(gone, ", ")));
  }
  if (names.empty()) return "";
  return fmt::format("  CTA {} has left the kernel: {}\n", index_, fmt::join(names, "; "));
}

std::string Block::wait_for_graph(std::set<std::string>& edges) const {
  std::string out;
  for (const Warp& warp : warps_) {
    if (warp.live != 0 && warp.waiting != 0) out += blocked_line(warp);
  }
  out += gone_line();
  const WaitCycle cycle = wait_cycle();
  edges.insert(cycle.edges.begin(), cycle.edges.end());
  return out + cycle.text;
}

}  // namespace deuce::emulator
