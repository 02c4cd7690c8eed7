// SPDX-License-Identifier: Apache-2.0
// Warp collectives, named barriers and registers of an emulated CTA; see block.h.
#include <fmt/format.h>

#include <algorithm>

#include "emulator/grid.h"

namespace deuce::emulator {
namespace {

constexpr std::size_t kBlockBarrier = 16;  // its index among the named ones

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
    if (edge != nullptr) {
      EdgeUse& use = named_uses_[static_cast<std::size_t>(edge - kernel_.edges.data())];
      const auto waits = static_cast<uint64_t>(
          __builtin_popcount(barrier.blocked_warps & ~bit));  // the last one comes in time
      use.add({1, waits, use.laps + 1});
    }
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
