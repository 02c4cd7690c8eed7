// SPDX-License-Identifier: Apache-2.0
// Lanes, groups and dispatch of an emulated CTA; see block.h.
#include "emulator/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "emulator/grid.h"
#include "emulator/machine.h"

namespace deuce::emulator {
namespace {

constexpr uint32_t kAllLanes = 0xffffffffu;
constexpr std::size_t kSharedAlignment = 1024;

void lane_entry(void* argument) {
  auto* lane = static_cast<Lane*>(argument);
  Machine machine(*lane);
  lane->block->launch().entry(machine);
  lane->done = true;
  lane->fiber.finish();
}

bool same_call(const Op& a, const Op& b) {
  return a.kind == b.kind && a.site == b.site && a.barrier == b.barrier && a.index == b.index;
}

}  // namespace

void Lane::submit(Op& op) {
  OpFilter* filter = block->options().filter;
  if (filter != nullptr && !filter->pass(op, block->context(*this))) return;
  pending = &op;
  fiber.suspend();
}

Block::Block(Grid& grid, const Launch& launch, const Options& options, int index)
    : grid_(grid),
      launch_(launch),
      kernel_(*launch.kernel),
      options_(options),
      index_(index),
      shared_(launch.kernel->shared_bytes + kSharedAlignment, std::byte{0xff}),
      tensor_(std::size_t{128} * 512, 0xffffffffu),
      barrier_at_(launch.kernel->shared_bytes / 8 + 1, -1),
      shadow_(launch.kernel->shared_bytes, options.values),
      panel_a_(std::make_unique<Panel>()),
      panel_b_(std::make_unique<Panel>()) {
  const auto base = reinterpret_cast<uintptr_t>(shared_.data());
  shared_skip_ = (kSharedAlignment - base % kSharedAlignment) % kSharedAlignment;
  const int threads = kernel_.threads;
  registers_free_ = 65536 - kernel_.launch_registers * threads;
  warps_.resize(static_cast<std::size_t>(threads / 32));
  barriers_.reserve(kMaxBarriers);
  for (const NamedRange& range : kernel_.shared_ranges) {
    if (range.size == 4) shadow_.watch_words(range.first, 4 * static_cast<uint32_t>(range.slots));
  }
  named_uses_.resize(kernel_.edges.size());
  for (int i = 0; i < threads; ++i) {
    auto lane = std::make_unique<Lane>();
    lane->block = this;
    lane->thread = i;
    lanes_.push_back(std::move(lane));
  }
}

Block::~Block() = default;

void Block::start() {
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    Warp& warp = warps_[w];
    warp.index = static_cast<int>(w);
    warp.role = role_of(warp.index, kernel_.roles);
    const auto& uniform = kernel_.uniform_roles;
    const bool one_lane =
        !options_.values && std::find(uniform.begin(), uniform.end(), warp.role) != uniform.end();
    warp.lanes = one_lane ? 1u : kAllLanes;
    warp.live = warp.runnable = warp.lanes;
    warp.registers = kernel_.launch_registers;
    if (options_.recorder != nullptr) {
      warp.slice = &options_.recorder->slice(static_cast<uint32_t>(index_), trace::Agent::warp,
                                             warp.index, static_cast<int>(warp.role));
    }
    each_lane(warp.lanes, [&](int l) {
      Lane& lane = *lanes_[w * 32 + static_cast<std::size_t>(l)];
      lane.fiber.start(lane_entry, &lane);
    });
    ++live_warps_;
    wake(warp, 0);
  }
}

OpContext Block::context(const Lane& lane) const {
  const int w = lane.thread / 32;
  const Warp& warp = warps_[static_cast<std::size_t>(w)];
  return {index_, w, lane.thread % 32, warp.role, warp.kv_block, shared_.data() + shared_skip_};
}

Op& Block::op(const Warp& warp, int lane) const {
  return *lanes_[static_cast<std::size_t>(warp.index * 32 + lane)]->pending;
}

void Block::wake(Warp& warp, double cost) {
  if (warp.queued) return;
  warp.queued = true;
  grid_.queue_warp(index_, warp.index, grid_.now() + cost);
}

void Block::resume_lanes(Warp& warp) {
  each_lane(warp.runnable, [&](int l) {
    Lane& lane = *lanes_[static_cast<std::size_t>(warp.index * 32 + l)];
    lane.pending = nullptr;
    lane.fiber.resume();
    const uint32_t bit = 1u << l;
    if (lane.done) {
      warp.live &= ~bit;
    } else {
      warp.waiting |= bit;
    }
  });
  warp.runnable = 0;
}

void Block::finish_lanes(Warp& warp, uint32_t mask) {
  warp.waiting &= ~mask;
  warp.blocked &= ~mask;
  warp.runnable |= mask;
}

// Among the calls at which lanes stand, that of the fewest lanes, then the one that comes first in
// the source: an elected lane catches up with the others, and the warp comes together again.
Group Block::choose(Warp& warp) {
  const uint32_t candidates = warp.waiting & ~warp.blocked;
  Group best;
  uint32_t rest = candidates;
  while (rest != 0) {
    const int leader = __builtin_ctz(rest);
    Group group{0, &op(warp, leader)};
    each_lane(rest, [&](int l) {
      if (same_call(op(warp, l), *group.first)) group.mask |= 1u << l;
    });
    rest &= ~group.mask;
    if (is_collective(group.first->kind) && group.mask != warp.lanes) continue;
    const int more = __builtin_popcount(group.mask) - __builtin_popcount(best.mask);
    const bool earlier = best.first == nullptr || more < 0 ||
                         (more == 0 && best.first->site.file == group.first->site.file &&
                          group.first->site.line < best.first->site.line);
    if (earlier) best = group;
  }
  return best;
}

void Block::stuck(const Warp& warp) {
  const int l = __builtin_ctz(warp.waiting & ~warp.blocked);
  const Op& first = op(warp, l);
  uint32_t here = 0;
  each_lane(warp.waiting, [&](int i) { here |= same_call(op(warp, i), first) ? 1u << i : 0; });
  fault("H17", &warp, &first,
        fmt::format("a collective of all 32 lanes is reached by lanes {:#010x} only; {}", here,
                    warp.live == warp.lanes ? "the others stand at another call"
                                            : "the others have left the kernel"));
}

void Block::step(int index) {
  Warp& warp = warps_[static_cast<std::size_t>(index)];
  warp.queued = false;
  if (still_works(warp)) return;
  resume_lanes(warp);
  if (warp.live == 0) {
    registers_free_ += 32 * warp.registers;
    --live_warps_;
    for (Warp& other : warps_) {  // waiting for registers
      if ((other.blocked & other.waiting) != 0 &&
          op(other, __builtin_ctz(other.waiting)).kind == OpKind::registers) {
        other.blocked = 0;
        wake(other, 0);
      }
    }
    return;
  }
  const Group group = choose(warp);
  if (group.mask == 0) {
    if ((warp.waiting & ~warp.blocked) != 0 && warp.blocked == 0) stuck(warp);
    return;
  }
  ++warp.sequence;
  const auto self = static_cast<std::size_t>(warp_component(index));
  warp.clock.k[self] = warp.sequence;
  warp.clock.c[self] = warp.sequence;
  double cost = wait_for_values(warp, group.first->kind) + take_work(warp, group.mask) +
                code_between(warp, *group.first);
  const bool works = grid_.schedule().timed() && warp.works_until > 0;
  if (group.first->kind != OpKind::trace) {
    cost += execute(warp, group);
  } else if (!works) {  // else once more, when the work before it is done
    record(warp, group, cost);
  }
  if (grid_.stopped()) return;
  const double rest = cost - (std::exchange(warp.works_until, 0) - grid_.now());
  if (warp.runnable != 0 || (warp.waiting & ~warp.blocked) != 0) {
    if (works && !warp.queued) warp.behind_work = std::max(0.0, rest);
    wake(warp, grid_.schedule().step(index, warp.role, cost));
  }
}

/// The warp was to go on now, but others have come to its pipe since: it is queued again.
bool Block::still_works(Warp& warp) {
  if (warp.behind_work < 0) return false;
  SharedPipe& pipe = pipes_[static_cast<std::size_t>(warp.index % 4)];
  const double end = pipe.end_of(warp.index, grid_.now()) + warp.behind_work;
  constexpr double kRounding = 1e-6;
  if (end <= grid_.now() + kRounding) {
    warp.behind_work = -1;
    return false;
  }
  wake(warp, end - grid_.now());
  return true;
}

// Loads and matrix instructions are in flight together; who needs their registers waits for them.
// Waits, barriers and copies do not: queries are on their way while a warp waits for its first
// tile.
double Block::wait_for_values(Warp& warp, OpKind next) {
  switch (next) {
    case OpKind::load_shared:
    case OpKind::load_global:
    case OpKind::load_constant:
    case OpKind::wait:
    case OpKind::sync_named:
    case OpKind::sync_block:
    case OpKind::sync_warp:
    case OpKind::prefetch:
    case OpKind::prefetch_map:
    case OpKind::load_matrices:
    case OpKind::trace: return 0;
    case OpKind::mma_sync:
      if (warp.in_matrices) return 0;
      break;
    default: break;
  }
  const double wait = std::max(0.0, warp.values_at - grid_.now());
  warp.values_at = 0;
  warp.in_matrices = false;
  return wait;
}

/// What stands in front of an operation beside the charged arithmetic: plain code, and its fetch
/// when the first warp of a CTA comes to it.
double Block::code_between(Warp& warp, const Op& call) {
  if (kernel_.plain_code.empty() || call.kind == OpKind::trace) return 0;
  const auto [site, cold] = sites_.try_emplace({call.site.file, call.site.line}, nullptr);
  if (cold) {
    for (const PlainCode& plain : kernel_.plain_code) {
      const bool is_here =
          call.kind == plain.kind && std::string_view(call.site.file).ends_with(plain.file);
      if (is_here) site->second = &plain;
    }
  }
  const PlainCode* before = std::exchange(warp.plain, site->second);
  const double fetch = cold ? grid_.timing()(cost::kColdCode) : 0;
  if (warp.plain == nullptr || (warp.plain->of_run && warp.plain == before)) return fetch;
  return fetch + grid_.timing()(*warp.plain->cost);
}

// Arithmetic charged since the last operation: the busiest pipe of the warp's sub-partition, which
// the other warps of that sub-partition share, and chains that keep no pipe busy.
double Block::take_work(Warp& warp, uint32_t mask) {
  Lane& lane = *lanes_[static_cast<std::size_t>(warp.index * 32 + __builtin_ctz(mask))];
  const Timing& timing = grid_.timing();
  const auto slots = [&](Work kind, const Cost& cost) {
    return lane.work[static_cast<std::size_t>(kind)] * timing(cost);
  };
  const double alu = slots(Work::alu, cost::kAlu) + slots(Work::convert, cost::kConvert) +
                     lane.work[kWorkFromE4m3] * timing(cost::kFromE4m3);
  const double exp2 = slots(Work::exp2, cost::kExp2) + slots(Work::exp2, cost::kBesideExp2);
  const double need = std::max({slots(Work::fma, cost::kFma), alu, exp2});
  const double chain = slots(Work::dependent, cost::kDependent);
  each_lane(mask,
            [&](int l) { lanes_[static_cast<std::size_t>(warp.index * 32 + l)]->work.fill(0); });
  if (need == 0) return chain;
  SharedPipe& pipe = pipes_[static_cast<std::size_t>(warp.index % 4)];
  warp.works_until = pipe.add(warp.index, need, grid_.now());
  return warp.works_until - grid_.now() + chain;
}

double Block::execute(Warp& warp, const Group& group) {
  switch (group.first->kind) {
    case OpKind::sync_warp:
      synchronised(warp);
      finish_lanes(warp, group.mask);
      return grid_.timing()(cost::kIssue);
    case OpKind::shuffle_index:
    case OpKind::shuffle_xor:
    case OpKind::shuffle_up:
    case OpKind::ballot: return shuffle(warp, group);
    case OpKind::sync_block: return sync_block(warp, group);
    case OpKind::arrive_named:
    case OpKind::sync_named: return named(warp, group);
    case OpKind::load_shared:
    case OpKind::store_shared: return shared_access(warp, group);
    case OpKind::load_global:
    case OpKind::load_constant:
    case OpKind::store_global: return global_access(warp, group);
    case OpKind::atomic_add:
    case OpKind::load_acquire:
    case OpKind::claim:
    case OpKind::store_release: return atomic(warp, group);
    case OpKind::init: return init_barrier(warp, group);
    case OpKind::arrive:
    case OpKind::arrive_expect: return arrive(warp, group);
    case OpKind::wait:
    case OpKind::test: return wait(warp, group);
    case OpKind::copy_tensor:
    case OpKind::copy_bulk: return copy(warp, group);
    case OpKind::registers: return registers(warp, group);
    case OpKind::tensor_alloc:
    case OpKind::tensor_relinquish:
    case OpKind::tensor_free: return tensor_allocation(warp, group);
    case OpKind::tensor_load:
    case OpKind::tensor_store: return tensor_access(warp, group);
    case OpKind::wait_loads:
    case OpKind::wait_stores: return tensor_wait(warp, group);
    case OpKind::mma_shared:
    case OpKind::mma_tensor: return mma(warp, group);
    case OpKind::commit: return commit(warp, group);
    case OpKind::fence_async:
    case OpKind::fence_barrier_init:
    case OpKind::fence_before:
    case OpKind::fence_after: return fence(warp, group);
    case OpKind::prefetch: return prefetch(warp, group);
    case OpKind::load_matrices: return load_matrices(warp, group);
    case OpKind::mma_sync: return mma_sync(warp, group);
    case OpKind::prefetch_map:
    case OpKind::trace: break;  // of traces, step() has done it
    case OpKind::wgmma: return wgmma(warp, group);
    case OpKind::wgmma_fence: warp.mmas.fenced = true; break;
    case OpKind::wgmma_commit: warp.mmas.group_ends.push_back(warp.mmas.issued); break;
    case OpKind::wgmma_wait: return wgmma_wait(warp, group);
    case OpKind::wgmma_pin: return wgmma_pin(warp, group);
  }
  finish_lanes(warp, group.mask);
  return grid_.timing()(cost::kIssue);
}

double Block::fence(Warp& warp, const Group& group) {
  finish_lanes(warp, group.mask);
  switch (group.first->kind) {
    case OpKind::fence_async: warp.clock.f = warp.clock.c; return grid_.timing()(cost::kFenceAsync);
    case OpKind::fence_barrier_init:
      for (BarrierState& barrier : barriers_) {
        if (barrier.init_warp == warp.index) barrier.init_fenced = true;
      }
      break;
    case OpKind::fence_before:  // this warp's retired loads and stores go with its next signals
      for (const Component own : {loads_component(warp.index), stores_component(warp.index)}) {
        warp.clock.t[tensor_index(own)] = warp.clock.k[static_cast<std::size_t>(own)];
      }
      break;
    default: warp.after_fence = warp.clock.t; break;  // fence_after
  }
  return grid_.timing()(cost::kIssue);
}

}  // namespace deuce::emulator
