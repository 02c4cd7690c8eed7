// SPDX-License-Identifier: Apache-2.0
// Warp collectives, named barriers and mbarriers of an emulated CTA; see block.h.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulator/grid.h"

namespace deuce::emulator {
namespace {

constexpr std::size_t kBlockBarrier = 16;  // its index among the named ones
constexpr uint64_t kCanary = 0x8badf00ddeadbeefu;

bool contains(const auto& roles, Role role) {
  return role != Role::idle && std::find(roles.begin(), roles.end(), role) != roles.end();
}

}  // namespace

// A release covers everything of the lanes in `mask`, and what the warp's other lanes did up to the
// last sync_warp.
const Clock& Block::released(const Warp& warp, uint32_t mask) {
  const uint32_t others = warp.unsynced & ~mask & warp.live;
  if (others == 0) return warp.clock;
  uint32_t covered = warp.sequence;
  each_lane(others, [&](int l) {
    covered = std::min(covered, warp.first_unsynced[static_cast<std::size_t>(l)] - 1);
  });
  scratch_ = warp.clock;
  const int w = warp.index;
  const auto limit = [](uint32_t& value, uint32_t most) { value = std::min(value, most); };
  limit(scratch_.k[static_cast<std::size_t>(warp_component(w))], covered);
  limit(scratch_.c[static_cast<std::size_t>(w)], covered);
  limit(scratch_.f[static_cast<std::size_t>(w)], covered);
  limit(scratch_.k[static_cast<std::size_t>(loads_component(w))], warp.synced_loads);
  limit(scratch_.k[static_cast<std::size_t>(stores_component(w))], warp.synced_stores);
  limit(scratch_.t[tensor_index(loads_component(w))], warp.synced_loads);
  limit(scratch_.t[tensor_index(stores_component(w))], warp.synced_stores);
  return scratch_;
}

void Block::synchronised(Warp& warp) {
  warp.unsynced = 0;
  warp.synced_loads = warp.clock.k[static_cast<std::size_t>(loads_component(warp.index))];
  warp.synced_stores = warp.clock.k[static_cast<std::size_t>(stores_component(warp.index))];
}

double Block::shuffle(Warp& warp, const Group& group) {
  std::array<uint32_t, 32> values{};
  uint32_t votes = 0;
  each_lane(group.mask, [&](int l) {
    values[static_cast<std::size_t>(l)] = op(warp, l).value;
    votes |= op(warp, l).flag ? 1u << l : 0;
  });
  each_lane(group.mask, [&](int l) {
    Op& mine = op(warp, l);
    const int argument = static_cast<int>(mine.bytes);
    int source = l;
    if (mine.kind == OpKind::shuffle_index) source = argument & 31;
    if (mine.kind == OpKind::shuffle_xor) source = l ^ (argument & 31);
    if (mine.kind == OpKind::shuffle_up) source = l >= argument ? l - argument : l;
    mine.value = mine.kind == OpKind::ballot ? votes : values[static_cast<std::size_t>(source)];
  });
  finish_lanes(warp, group.mask);
  return grid_.timing()(cost::kShuffle);
}

double Block::sync_block(Warp& warp, const Group& group) {
  group.first->index = static_cast<int32_t>(kBlockBarrier);
  group.first->bytes = static_cast<uint32_t>(kernel_.threads);
  return named(warp, group);
}

const Edge* Block::named_edge(int id) const {
  const auto found = std::find_if(kernel_.edges.begin(), kernel_.edges.end(), [&](const Edge& row) {
    return row.kind == EdgeKind::named && id >= row.first_id && id < row.first_id + row.slots;
  });
  return found == kernel_.edges.end() ? nullptr : &*found;
}

double Block::named(Warp& warp, const Group& group) {
  const Op& call = *group.first;
  const int id = call.index;
  const Edge* edge = named_edge(id);
  if (id < 0 || id > static_cast<int>(kBlockBarrier) || call.bytes == 0 || call.bytes % 32 != 0) {
    fault("H17", &warp, &call,
          fmt::format("named barrier {} of {} threads: ids are 0 to 15, counts multiples of 32", id,
                      call.bytes));
    return 0;
  }
  NamedState& barrier = named_[static_cast<std::size_t>(id)];
  const uint32_t bit = 1u << warp.index;
  if (barrier.arrived == 0) barrier.threads = static_cast<int>(call.bytes);
  if (barrier.threads != static_cast<int>(call.bytes) || (barrier.arrived_warps & bit) != 0) {
    fault("H17", &warp, &call,
          fmt::format("named barrier {}: {}", id,
                      (barrier.arrived_warps & bit) != 0
                          ? "this warp arrives again before the phase is complete"
                          : fmt::format("{} threads here, {} at another participant", call.bytes,
                                        barrier.threads)),
          Severity::error, edge == nullptr ? "" : std::string(edge->name));
    return 0;
  }
  const bool arrives_only = call.kind == OpKind::arrive_named;
  if (edge != nullptr && !role_arrives(*edge, warp.role) && !role_waits(*edge, warp.role)) {
    fault("H10", &warp, &call,
          fmt::format("{} takes part in {}, which the edge table does not list", name_of(warp.role),
                      edge->name),
          Severity::error, std::string(edge->name));
    return 0;
  }
  synchronised(warp);
  barrier.gathering.join(warp.clock);
  barrier.arrived += 32;
  barrier.arrived_warps |= bit;
  if (arrives_only) {
    finish_lanes(warp, group.mask);
  } else {
    warp.blocked |= group.mask;
    barrier.blocked_warps |= bit;
  }
  const Timing& timing = grid_.timing();
  if (barrier.arrived == barrier.threads) {
    if (edge != nullptr) ++named_phases_[static_cast<std::size_t>(edge - kernel_.edges.data())];
    const double delay =
        timing(id == static_cast<int>(kBlockBarrier) ? cost::kBlockBarrier : cost::kNamedBarrier);
    each_lane(barrier.blocked_warps, [&](int w) {
      Warp& waiter = warps_[static_cast<std::size_t>(w)];
      waiter.clock.join(barrier.gathering);
      finish_lanes(waiter, waiter.blocked);
      if (w != warp.index) wake(waiter, grid_.schedule().delay(Delay::wake, delay));
    });
    barrier = NamedState{};
  }
  return timing(arrives_only ? cost::kIssue : cost::kNamedBarrier);
}

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
      if (arrivals(edge, kernel_.roles) != barrier.expected) {
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
  // Softmax of a block: from the wait for S to the arrival for the last quarter of P.
  if (options_.timeline != nullptr && warp.index == 0 && warp.role == Role::softmax &&
      barrier.edge >= 0 &&
      kernel_.edges[static_cast<std::size_t>(barrier.edge)].name == "p_tail_ready") {
    note_time(TimelineEvent::Kind::softmax, warp.kv_block, grid_.now(), grid_.now());
  }
  arrive_on(index, arrivals_of(warp, group.mask, barrier), released(warp, group.mask), false);
  finish_lanes(warp, group.mask);
  return grid_.timing()(cost::kArriveIssue);
}

void Block::arrive_on(int index, int arrivals, const Clock& clock, bool order_only) {
  BarrierState& barrier = barriers_[static_cast<std::size_t>(index)];
  if (order_only) {
    barrier.gathering.join_order(clock);
  } else {
    barrier.gathering.join(clock);
  }
  if (arrivals > barrier.pending) {
    fault("H9", nullptr, nullptr,
          fmt::format("{} gets {} arrivals too many in phase {}", barrier_name(barrier),
                      arrivals - barrier.pending, barrier.phase),
          Severity::error,
          barrier.edge < 0
              ? ""
              : std::string(kernel_.edges[static_cast<std::size_t>(barrier.edge)].name));
    return;
  }
  barrier.pending -= arrivals;
  maybe_complete(index);
}

void Block::complete_bytes(int index, uint32_t bytes) {
  BarrierState& barrier = barriers_[static_cast<std::size_t>(index)];
  barrier.bytes -= bytes;
  if (barrier.bytes < -(int64_t{1} << 20)) {
    fault("H9", nullptr, nullptr,
          fmt::format("{} has received 2^20 bytes more than announced", barrier_name(barrier)));
    return;
  }
  maybe_complete(index);
}

// H7: a phase may only complete when everybody who waits on this barrier has seen the one before.
void Block::check_waiters(BarrierState& barrier) {
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
    fault("H7", &warp, nullptr,
          fmt::format("{} completes phase {}, but {} {} phase {}\n  a waiter by parity would take "
                      "one phase for the other",
                      barrier_name(barrier), barrier.phase, warp_name(warp.index),
                      seen ? "is not known to have seen" : "has not seen", before),
          Severity::error,
          barrier.edge < 0
              ? ""
              : std::string(kernel_.edges[static_cast<std::size_t>(barrier.edge)].name));
    return;
  }
}

void Block::maybe_complete(int index) {
  BarrierState& barrier = barriers_[static_cast<std::size_t>(index)];
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  check_waiters(barrier);
  if (grid_.stopped()) return;
  if (barrier.copy_begin >= 0) trace_copies_done(barrier);
  ++barrier.phase;
  barrier.pending = barrier.expected;
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

double Block::wait(Warp& warp, const Group& group) {
  const Op& call = *group.first;
  const int index = barrier_index(call.barrier, call, warp);
  if (index < 0) return 0;
  BarrierState& barrier = barriers_[static_cast<std::size_t>(index)];
  const Edge* edge =
      barrier.edge < 0 ? nullptr : &kernel_.edges[static_cast<std::size_t>(barrier.edge)];
  const std::string edge_name = edge == nullptr ? "" : std::string(edge->name);
  const Phase phase = call.index;
  const auto w = static_cast<std::size_t>(warp.index);
  if (edge != nullptr && !role_waits(*edge, warp.role)) {
    fault("H10", &warp, &call,
          fmt::format("{} waits on {}, which the edge table does not list", name_of(warp.role),
                      barrier_name(barrier)),
          Severity::error, edge_name);
    return 0;
  }
  const auto known =
      static_cast<Phase>(warp.clock.k[static_cast<std::size_t>(phases_component(index))]);
  if (phase >= 1 && known < phase) {
    fault("H6", &warp, &call,
          fmt::format("wait for phase {} of {} by a waiter that knows only {} phases to be "
                      "complete: its parity also passes on phase {}",
                      phase, barrier_name(barrier), known, phase - 2),
          Severity::error, edge_name);
    return 0;
  }
  if (barrier.phase > phase + 1) {
    fault("H7", &warp, &call,
          fmt::format("wait for phase {} of {}, which has completed {} phases: the waiter was "
                      "overtaken",
                      phase, barrier_name(barrier), barrier.phase),
          Severity::error, edge_name);
    return 0;
  }
  const bool passes = barrier.phase == phase + 1;
  const bool is_test = call.kind == OpKind::test;
  const bool refuses = passes && is_test && grid_.schedule().spurious_failure();
  each_lane(group.mask, [&](int l) { op(warp, l).flag = passes && !refuses; });
  if (passes && !refuses) {
    warp.clock.join(barrier.completed);
    if (options_.timeline != nullptr && warp.index == 0 && edge_name == "s_ready") {
      note_time(TimelineEvent::Kind::softmax, warp.kv_block, grid_.now(), grid_.now());
    }
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
    warp.blocked |= group.mask;
    barrier.waiters |= 1u << warp.index;
    return 0;
  }
  finish_lanes(warp, group.mask);
  return woken ? 0 : grid_.timing()(cost::kWaitPassed);
}

double Block::registers(Warp& warp, const Group& group) {
  const Op& call = *group.first;
  const int wanted = call.index;
  const bool grow = call.flag;
  if (wanted < 24 || wanted > 256 || wanted % 8 != 0 ||
      (grow ? wanted < warp.registers : wanted > warp.registers)) {
    fault("H18", &warp, &call,
          fmt::format("{} registers from {} by {}", wanted, warp.registers,
                      grow ? "grow_registers" : "shrink_registers"));
    return 0;
  }
  const int more = 32 * (wanted - warp.registers);
  if (more > registers_free_) {  // tried again when a warp gives some back
    warp.blocked |= group.mask;
    return 0;
  }
  registers_free_ -= more;
  warp.registers = wanted;
  finish_lanes(warp, group.mask);
  if (more < 0) {
    for (Warp& other : warps_) {
      if ((other.waiting & other.blocked) == 0) continue;
      if (op(other, __builtin_ctz(other.waiting)).kind != OpKind::registers) continue;
      other.blocked = 0;
      wake(other, 0);
    }
  }
  return grid_.timing()(cost::kRegisters);
}

}  // namespace deuce::emulator
