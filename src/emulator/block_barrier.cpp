// SPDX-License-Identifier: Apache-2.0
// Mbarriers of an emulated CTA: initialisation, arrivals, phases and waits; see block.h.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulator/grid.h"

namespace deuce::emulator {
namespace {

constexpr uint64_t kCanary = 0x8badf00ddeadbeefu;

bool contains(const auto& roles, Role role) {
  return role != Role::idle && std::find(roles.begin(), roles.end(), role) != roles.end();
}

}  // namespace

int Block::barrier_index(const void* address, const Op& call, const Warp& warp) {
  const uint32_t offset = shared_offset(address, sizeof(Barrier), call, warp);
  if (grid_.stopped()) return -1;
  const int index = barrier_at_[offset / 8];
  if (index < 0) {
    fault("H9", &warp, &call, fmt::format("no barrier was initialised at shared {:#x}", offset));
    return -1;
  }
  BarrierState& barrier = barriers_[static_cast<std::size_t>(index)];
  uint64_t canary;
  std::memcpy(&canary, shared() + offset, sizeof canary);
  if (canary != kCanary) {
    fault("H9", &warp, &call,
          fmt::format("the bytes of {} have been overwritten", barrier_name(barrier)));
    return -1;
  }
  const auto maker = static_cast<std::size_t>(warp_component(barrier.init_warp));
  if (warp.clock.k[maker] < barrier.init_sequence) {
    fault(
        "H9", &warp, &call,
        fmt::format("{} is used before its initialisation is visible here", barrier_name(barrier)));
    return -1;
  }
  return index;
}

double Block::init_barrier(Warp& warp, const Group& group) {
  each_lane(group.mask, [&](int l) {
    if (grid_.stopped()) return;
    const Op& call = op(warp, l);
    const uint32_t offset = shared_offset(call.barrier, sizeof(Barrier), call, warp);
    if (grid_.stopped()) return;
    if (barrier_at_[offset / 8] >= 0 || barriers_.size() == kMaxBarriers) {
      fault("H9", &warp, &call,
            barrier_at_[offset / 8] >= 0
                ? fmt::format("the barrier at shared {:#x} is initialised twice", offset)
                : fmt::format("more than {} barriers in a block", kMaxBarriers));
      return;
    }
    barrier_at_[offset / 8] = static_cast<int16_t>(barriers_.size());
    BarrierState& barrier = barriers_.emplace_back();
    barrier.alive = true;
    barrier.offset = offset;
    barrier.expected = barrier.pending = static_cast<int>(call.value);
    barrier.observed.fill(-2);
    barrier.init_warp = warp.index;
    barrier.init_sequence = warp.sequence;
    std::memcpy(shared() + offset, &kCanary, sizeof kCanary);
    for (std::size_t e = 0; e < kernel_.edges.size(); ++e) {
      const Edge& edge = kernel_.edges[e];
      if (edge.kind != EdgeKind::barrier || offset < edge.offset) continue;
      if (offset >= edge.offset + 8 * static_cast<std::size_t>(edge.slots)) continue;
      barrier.edge = static_cast<int>(e);
      barrier.slot = static_cast<int>((offset - edge.offset) / 8);
      if (options_.table_counts && arrivals(edge, kernel_.roles) != barrier.expected) {
        fault("H10", &warp, &call,
              fmt::format("{} is initialised for {} arrivals, the edge table says {}",
                          barrier_name(barrier), barrier.expected, arrivals(edge, kernel_.roles)),
              Severity::error, std::string(edge.name));
      }
    }
  });
  finish_lanes(warp, group.mask);
  return grid_.timing()(cost::kIssue);
}

bool Block::role_arrives(const Edge& edge, Role role) const {
  return std::any_of(edge.arrives.begin(), edge.arrives.end(), [&](const Arrival& arrival) {
    return arrival.by != By::nobody && arrival.role == role;
  });
}

bool Block::role_waits(const Edge& edge, Role role) const {
  return edge.waits == role || contains(edge.waits_too, role);
}

/// Arrivals of the lanes in `mask`. A lane that stands for its warp arrives for all of it where the
/// edge table says that each thread does.
int Block::arrivals_of(const Warp& warp, uint32_t mask, const BarrierState& barrier) const {
  const int lanes = __builtin_popcount(mask);
  if (warp.lanes == mask && lanes == 1 && barrier.edge >= 0) {
    for (const Arrival& arrival : kernel_.edges[static_cast<std::size_t>(barrier.edge)].arrives) {
      if (arrival.role == warp.role && arrival.by == By::each_thread) return 32;
    }
  }
  return lanes;
}

double Block::arrive(Warp& warp, const Group& group) {
  const Op& call = *group.first;
  const int index = barrier_index(call.barrier, call, warp);
  if (index < 0) return 0;
  BarrierState& barrier = barriers_[static_cast<std::size_t>(index)];
  if (barrier.edge >= 0) {
    const Edge& edge = kernel_.edges[static_cast<std::size_t>(barrier.edge)];
    if (!role_arrives(edge, warp.role)) {
      fault("H10", &warp, &call,
            fmt::format("{} arrives on {}, which the edge table does not list", name_of(warp.role),
                        barrier_name(barrier)),
            Severity::error, std::string(edge.name));
      return 0;
    }
  }
  if (call.kind == OpKind::arrive_expect) {
    each_lane(group.mask, [&](int l) { barrier.bytes += op(warp, l).bytes; });
  }
  arrive_on(index, record_of(warp, call), arrivals_of(warp, group.mask, barrier),
            released(warp, group.mask), false);
  finish_lanes(warp, group.mask);
  return grid_.timing()(cost::kArriveIssue);
}

std::string Block::edge_name(const BarrierState& barrier) const {
  if (barrier.edge < 0) return "";
  return std::string(kernel_.edges[static_cast<std::size_t>(barrier.edge)].name);
}

void Block::arrive_on(int index, const AccessRecord& by, int arrivals, const Clock& clock,
                      bool order_only) {
  BarrierState& barrier = barriers_[static_cast<std::size_t>(index)];
  if (order_only) {
    barrier.gathering.join_order(clock);
  } else {
    barrier.gathering.join(clock);
  }
  if (arrivals > barrier.pending) {
    fault("H9", by,
          fmt::format("{} gets {} arrivals too many in phase {}", barrier_name(barrier),
                      arrivals - barrier.pending, barrier.phase),
          Severity::error, edge_name(barrier));
    return;
  }
  barrier.pending -= arrivals;
  barrier.arrived_warps |= 1u << by.warp;
  maybe_complete(index, by);
}

void Block::complete_bytes(int index, const AccessRecord& by, uint32_t bytes) {
  BarrierState& barrier = barriers_[static_cast<std::size_t>(index)];
  barrier.bytes -= bytes;
  if (barrier.bytes < -(int64_t{1} << 20)) {
    fault("H9", by,
          fmt::format("{} has received 2^20 bytes more than announced", barrier_name(barrier)),
          Severity::error, edge_name(barrier));
    return;
  }
  maybe_complete(index, by);
}

// H7: a phase may only complete when everybody who waits on this barrier has seen the one before.
void Block::check_waiters(BarrierState& barrier, const AccessRecord& by) {
  if (barrier.phase == 0) return;
  const Phase before = barrier.phase - 1;
  for (const Warp& warp : warps_) {
    const auto w = static_cast<std::size_t>(warp.index);
    bool declared = barrier.observed[w] >= -1;
    if (barrier.edge >= 0 && warp.live != 0) {
      declared =
          declared || kernel_.edges[static_cast<std::size_t>(barrier.edge)].waits == warp.role;
    }
    if (!declared) continue;
    const bool seen = barrier.observed[w] >= before;
    if (seen && barrier.gathering.k[w] >= barrier.observed_at[w]) continue;
    std::string text = fmt::format(
        "{} completes phase {}, but {} {} phase {}\n  a waiter by parity would take "
        "one phase for the other",
        barrier_name(barrier), barrier.phase, warp_name(warp.index),
        seen ? "is not known to have seen" : "has not seen", before);
    if (warp.waiting != 0) {
      const Op& stands = op(warp, __builtin_ctz(warp.waiting));
      text += fmt::format("\n{}", describe(record_of(warp, stands), "waiter"));
    }
    fault("H7", by, text, Severity::error, edge_name(barrier));
    return;
  }
}

void Block::maybe_complete(int index, const AccessRecord& by) {
  BarrierState& barrier = barriers_[static_cast<std::size_t>(index)];
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  check_waiters(barrier, by);
  if (grid_.stopped()) return;
  if (barrier.copy_begin >= 0) trace_copies_done(barrier);
  ++barrier.phase;
  barrier.completed_by = by;
  barrier.pending = barrier.expected;
  barrier.arrived_warps = 0;
  barrier.gathering.k[static_cast<std::size_t>(phases_component(index))] =
      static_cast<uint32_t>(barrier.phase);
  std::swap(barrier.completed, barrier.gathering);
  barrier.gathering = Clock{};
  const double delay = grid_.timing()(cost::kWake);
  each_lane(barrier.waiters, [&](int w) {
    Warp& waiter = warps_[static_cast<std::size_t>(w)];
    waiter.woken |= waiter.blocked;
    waiter.blocked = 0;  // they try again
    wake(waiter, grid_.schedule().delay(Delay::wake, delay));
  });
  barrier.waiters = 0;
}

/// H6 and H7: parity tells a waiter apart only the phases before and behind the one it waits for.
bool Block::phase_is_certain(const Warp& warp, const Op& call, int index) {
  const BarrierState& barrier = barriers_[static_cast<std::size_t>(index)];
  const Phase phase = call.index;
  const auto known =
      static_cast<Phase>(warp.clock.k[static_cast<std::size_t>(phases_component(index))]);
  const bool late = barrier.phase > phase + 1, unsure = phase >= 1 && known < phase;
  if (!late && !unsure) return true;
  const std::string completer =
      barrier.phase > 0 ? fmt::format("\n{}", describe(barrier.completed_by, "ended by")) : "";
  if (unsure) {
    fault("H6", record_of(warp, call),
          fmt::format("wait for phase {} of {} by a waiter that knows only {} phases to be "
                      "complete: its parity also passes on phase {}{}",
                      phase, barrier_name(barrier), known, phase - 2, completer),
          Severity::error, edge_name(barrier));
    return false;
  }
  fault("H7", record_of(warp, call),
        fmt::format("wait for phase {} of {}, which has completed {} phases: the waiter was "
                    "overtaken{}",
                    phase, barrier_name(barrier), barrier.phase, completer),
        Severity::error, edge_name(barrier));
  return false;
}

double Block::wait(Warp& warp, const Group& group) {
  const Op& call = *group.first;
  const int index = barrier_index(call.barrier, call, warp);
  if (index < 0) return 0;
  BarrierState& barrier = barriers_[static_cast<std::size_t>(index)];
  const Edge* edge =
      barrier.edge < 0 ? nullptr : &kernel_.edges[static_cast<std::size_t>(barrier.edge)];
  const Phase phase = call.index;
  const auto w = static_cast<std::size_t>(warp.index);
  if (edge != nullptr && !role_waits(*edge, warp.role)) {
    fault("H10", &warp, &call,
          fmt::format("{} waits on {}, which the edge table does not list", name_of(warp.role),
                      barrier_name(barrier)),
          Severity::error, edge_name(barrier));
    return 0;
  }
  if (!phase_is_certain(warp, call, index)) return 0;
  const bool passes = barrier.phase == phase + 1;
  const bool is_test = call.kind == OpKind::test;
  const bool refuses = passes && is_test && grid_.schedule().spurious_failure();
  each_lane(group.mask, [&](int l) { op(warp, l).flag = passes && !refuses; });
  if (passes && !refuses) {
    warp.clock.join(barrier.completed);
    if (phase >= 0) {
      barrier.observed[w] = phase;
      barrier.observed_at[w] = warp.sequence;
    } else if (barrier.observed[w] < -1) {
      barrier.observed[w] = -1;
    }
  }
  const bool woken = (warp.woken & group.mask) == group.mask;
  warp.woken &= ~group.mask;
  if (!passes && !is_test) {
    if (!woken && phase >= 0) ++barrier.waits;
    warp.blocked |= group.mask;
    barrier.waiters |= 1u << warp.index;
    return 0;
  }
  finish_lanes(warp, group.mask);
  return woken ? 0 : grid_.timing()(cost::kWaitPassed);
}

}  // namespace deuce::emulator
