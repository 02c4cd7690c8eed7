// SPDX-License-Identifier: Apache-2.0
// Shared and global memory and the copies between them; see block.h.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "emulator/grid.h"

namespace deuce::emulator {

uint32_t Block::shared_offset(const void* address, uint32_t bytes, const Op& call,
                              const Warp& warp) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const auto base = reinterpret_cast<uintptr_t>(shared());
  if (at < base || at - base + bytes > kernel_.shared_bytes) {
    fault("H20", &warp, &call, "access outside the block's shared memory");
    return 0;
  }
  return static_cast<uint32_t>(at - base);
}

void Block::note_access(Warp& warp, uint32_t mask) {
  each_lane(mask & ~warp.unsynced,
            [&](int l) { warp.first_unsynced[static_cast<std::size_t>(l)] = warp.sequence; });
  warp.unsynced |= mask;
}

double Block::shared_access(Warp& warp, const Group& group) {
  const bool writes = group.first->kind == OpKind::store_shared;
  note_access(warp, group.mask);
  const uint32_t record = shadow_.add_record(record_of(warp, *group.first));
  const Accessor by{&warp.clock, warp_component(warp.index), warp.sequence, record, false, true};
  each_lane(group.mask, [&](int l) {
    if (grid_.stopped()) return;
    const Op& call = op(warp, l);
    const void* address = writes ? call.target : call.source;
    const uint32_t offset = shared_offset(address, call.bytes, call, warp);
    if (grid_.stopped()) return;
    if (offset % call.bytes != 0) {
      fault("H15", &warp, &call,
            fmt::format("shared {:#x} is not a multiple of {} bytes", offset, call.bytes));
      return;
    }
    if (writes) {
      Accessor writer = by;
      writer.echo =
          allows_equal_stores(offset) && std::memcmp(call.target, call.source, call.bytes) == 0;
      clash(shadow_.write_shared(offset, call.bytes, writer), record, false);
      std::memcpy(call.target, call.source, call.bytes);
    } else {
      clash(shadow_.read_shared(offset, call.bytes, by), record, false);
      std::memcpy(call.target, call.source, call.bytes);
    }
  });
  finish_lanes(warp, group.mask);
  return writes ? grid_.timing()(cost::kSharedStore)
                : load_cost(warp, grid_.timing()(cost::kShared));
}

// A load that other loads follow costs its issue alone, where the table has a figure for that.
double Block::load_cost(Warp& warp, double latency) {
  const double issue = grid_.timing()(cost::kLoadIssue);
  if (issue == 0) return latency;
  warp.values_at = std::max(warp.values_at, grid_.now() + latency);
  warp.in_matrices = false;
  return issue;
}

bool Block::allows_equal_stores(uint32_t offset) const {
  return std::any_of(kernel_.shared_ranges.begin(), kernel_.shared_ranges.end(),
                     [&](const NamedRange& range) {
                       const auto slots = static_cast<uint32_t>(range.slots);
                       return range.equal_stores && offset >= range.first &&
                              offset < range.first + range.size * slots;
                     });
}

double Block::global_access(Warp& warp, const Group& group) {
  const Op& first = *group.first;
  const bool writes = first.kind == OpKind::store_global;
  const bool constant = first.kind == OpKind::load_constant;
  double latency = grid_.timing()(constant ? cost::kConstantHit : cost::kGlobal);
  std::optional<uint32_t> record;
  each_lane(group.mask, [&](int l) {
    if (grid_.stopped()) return;
    const Op& call = op(warp, l);
    const void* address = writes ? call.target : call.source;
    const GlobalRange* range = grid_.range_of(address, call.bytes);
    if (range == nullptr || (writes && !range->writable)) {
      fault("H20", &warp, &call,
            range == nullptr
                ? fmt::format("{} bytes of global memory outside every registered "
                              "allocation",
                              call.bytes)
                : fmt::format("store to {}, which the kernel must not write", range->name));
      return;
    }
    if (reinterpret_cast<uintptr_t>(address) % call.bytes != 0) {
      fault("H15", &warp, &call,
            fmt::format(
                "{} + {} is not a multiple of {} bytes", range->name,
                static_cast<const std::byte*>(address) - static_cast<const std::byte*>(range->base),
                call.bytes));
      return;
    }
    std::memcpy(call.target, call.source, call.bytes);
    if (constant) latency = std::max(latency, line_at(*range, address) - grid_.now());
    if (!range->writable) return;
    if (!record) record = grid_.add_record(record_of(warp, call));
    check_global(warp, call, *record, *range);
  });
  // What nobody writes needs no order, so constants do not hold a release back.
  if (!constant) note_access(warp, group.mask);
  finish_lanes(warp, group.mask);
  if (writes) return grid_.timing()(cost::kGlobalStore);
  return load_cost(warp, latency);
}

// A hint: what lies outside is not read, but it is no address that a kernel should hint at.
double Block::prefetch(Warp& warp, const Group& group) {
  each_lane(group.mask, [&](int l) {
    if (grid_.stopped()) return;
    const Op& call = op(warp, l);
    if (grid_.range_of(call.source, 1) != nullptr) return;
    fault("H20", &warp, &call, "prefetch of global memory outside every registered allocation");
  });
  finish_lanes(warp, group.mask);
  return grid_.timing()(cost::kIssue);
}

/// When L1 holds the line: the block's first read of it has it brought. Lines are counted from the
/// start of the allocation, so that no run depends on addresses.
double Block::line_at(const GlobalRange& range, const void* address) {
  constexpr int kLineBytesLog2 = 7, kRangeShift = 48;
  const auto number = static_cast<uint64_t>(&range - launch_.memory.data());
  const auto offset = static_cast<uint64_t>(static_cast<const std::byte*>(address) -
                                            static_cast<const std::byte*>(range.base));
  const double fetched = grid_.now() + grid_.timing()(cost::kConstantMiss);
  return constant_lines_.try_emplace(number << kRangeShift | offset >> kLineBytesLog2, fetched)
      .first->second;
}

// Words keep their last writer and reader: neighbours in a sector may belong to other CTAs.
void Block::check_global(const Warp& warp, const Op& call, uint32_t record,
                         const GlobalRange& range) {
  const bool writes = call.kind == OpKind::store_global;
  const void* address = writes ? call.target : call.source;
  Sector& sector = grid_.sector(address);
  const auto at = reinterpret_cast<uintptr_t>(address) % 32;
  const auto ordered = [&](const Sector::Mark& mark) {
    if (mark.block < 0) return true;
    return mark.block == index_ ? warp.clock.c[static_cast<std::size_t>(mark.warp)] >= mark.sequence
                                : warp.clock.knows(mark.block, mark.warp) >= mark.sequence;
  };
  const Sector::Mark mine{static_cast<int16_t>(index_), static_cast<int16_t>(warp.index),
                          warp.sequence, record};
  for (std::size_t word = at / 4; word <= (at + call.bytes - 1) / 4; ++word) {
    const Sector::Mark write = sector.writes[word], read = sector.reads[word];
    if (!ordered(write) || (writes && !ordered(read))) {
      const Sector::Mark& other = ordered(write) ? read : write;
      const auto offset =
          static_cast<const std::byte*>(address) - static_cast<const std::byte*>(range.base);
      fault(writes ? "H2" : "H1", grid_.record(record),
            fmt::format("{} {} + {}: not ordered behind a {}\n{}", writes ? "write of" : "read of",
                        range.name, offset, ordered(write) ? "read" : "write",
                        describe(grid_.record(other.record), "against", other.block)),
            Severity::error, range.name);
      return;
    }
    (writes ? sector.writes : sector.reads)[word] = mine;
  }
}

// Device-scope acquire and release on one address: the only way by which clocks travel between
// blocks.
double Block::atomic(Warp& warp, const Group& group) {
  each_lane(group.mask, [&](int l) {
    if (grid_.stopped()) return;
    Op& call = op(warp, l);
    auto* word = static_cast<uint32_t*>(call.target);
    const GlobalRange* range = grid_.range_of(word, sizeof *word);
    if (range == nullptr || !range->writable) {
      fault("H20", &warp, &call, "atomic outside every writable allocation");
      return;
    }
    Clock& released_there = grid_.released_at(word);
    if (call.kind != OpKind::store_release) {
      for (const Foreign& seen : released_there.foreign) {
        if (seen.block != index_) warp.clock.join_foreign(seen);
      }
    }
    if (call.kind != OpKind::load_acquire) {
      const Clock& mine = released(warp, 1u << l);
      Foreign self{index_, {}};
      std::copy_n(mine.c.begin(), kMaxWarps, self.warps.begin());
      for (const Foreign& seen : mine.foreign) released_there.join_foreign(seen);
      released_there.join_foreign(self);
    }
    const uint32_t old = *word;
    if (call.kind == OpKind::atomic_add) *word = old + call.value;
    if (call.kind == OpKind::claim && old == 0) *word = call.value;
    if (call.kind == OpKind::store_release) *word = call.value;
    call.value = old;
  });
  note_access(warp, group.mask);
  finish_lanes(warp, group.mask);
  return grid_.timing()(cost::kAtomic);
}

double Block::copy(Warp& warp, const Group& group) {
  double cost = 0;
  each_lane(group.mask, [&](int l) {
    if (grid_.stopped()) return;
    issue_copy(warp, op(warp, l));
    cost += grid_.timing()(cost::kCopyIssue);
  });
  finish_lanes(warp, group.mask);
  return cost;
}

// Source, bytes and target of a copy; false when the hardware refuses it.
bool Block::describe_copy(const Warp& warp, const Op& call, AsyncOp& async) {
  const bool tensor = call.kind == OpKind::copy_tensor;
  async.kind = AsyncOp::Kind::copy;
  async.source = tensor ? nullptr : call.source;
  async.bytes = call.bytes;
  if (tensor) {
    TensorMap map;
    std::memcpy(&map, call.source, sizeof map);
    const auto spec = decode(map);
    if (!spec || spec->rank != call.rank) {
      fault("H15", &warp, &call,
            spec
                ? fmt::format("a map of rank {} is used with {} coordinates", spec->rank, call.rank)
                : "these 128 bytes are not a tensor map");
      return false;
    }
    async.map = *spec;
    async.coordinate = call.coordinate;
    async.bytes = spec->box_bytes();
  } else if (grid_.range_of(call.source, call.bytes) == nullptr) {
    fault("H20", &warp, &call, "bulk copy from outside every registered allocation");
    return false;
  }
  async.address = shared_offset(call.target, async.bytes, call, warp);
  if (grid_.stopped()) return false;
  const uint32_t alignment = tensor ? 128 : 16;
  if (async.address % alignment == 0) return true;
  fault("H15", &warp, &call,
        fmt::format("copy to shared {:#x}, not a multiple of {} bytes", async.address, alignment));
  return false;
}

void Block::issue_copy(Warp& warp, Op& call) {
  const int index = barrier_index(call.barrier, call, warp);
  if (index < 0) return;
  BarrierState& barrier = barriers_[static_cast<std::size_t>(index)];
  if (!barrier.init_fenced) {
    fault("H9", &warp, &call,
          fmt::format("copy on {}: no fence_barrier_init after its initialisation",
                      barrier_name(barrier)));
    return;
  }
  const uint32_t id = grid_.new_async();
  AsyncOp& async = grid_.async(id);
  async.barrier = index;
  if (!describe_copy(warp, call, async)) return;
  ++barrier.copies;
  AccessRecord record = record_of(warp, call);
  record.tensor = warp.mark;
  record.tensor_block = warp.mark_block;
  async.by = record;
  const uint32_t number = shadow_.add_record(record);
  const Accessor by{&warp.clock, copies_component(index), barrier.copies, number, true, false};
  clash(shadow_.write_shared(async.address, async.bytes, by), number, false);
  if (grid_.stopped()) return;
  if (options_.values) std::memset(shared() + async.address, 0xff, async.bytes);
  async.clock = warp.clock;
  async.clock.k[static_cast<std::size_t>(copies_component(index))] = barrier.copies;
  const Timing& timing = grid_.timing();
  const double now = grid_.now();
  copy_issue_free_ = std::max(copy_issue_free_, now);
  copy_rate_free_ = std::max(copy_rate_free_, now) + async.bytes / timing(cost::kCopyRate) +
                    timing(cost::kCopyBox);
  const double done = std::max(copy_rate_free_, now + timing(cost::kCopyLatency));
  ++in_flight_;
  if (options_.recorder != nullptr) trace_copy_issue(barrier, warp, async.bytes);
  grid_.queue_async(index_, id, now + grid_.schedule().delay(Delay::copy, done - now));
}

void Block::complete(AsyncOp& async) {
  --in_flight_;
  switch (async.kind) {
    case AsyncOp::Kind::mma: run_mma(async); return;
    case AsyncOp::Kind::wgmma: run_wgmma(async.by.warp / 4 * 4); return;
    case AsyncOp::Kind::commit:
      if (options_.recorder != nullptr) trace_commit(async);
      arrive_on(async.barrier, async.by, 1, async.clock, true);
      return;
    case AsyncOp::Kind::copy: break;
  }
  if (options_.recorder != nullptr) trace_bytes(-static_cast<int64_t>(async.bytes));
  if (options_.values) {
    if (async.source != nullptr) {
      std::memcpy(shared() + async.address, async.source, async.bytes);
    } else {
      bool inside = true;
      for_each_row(async.map, async.coordinate.data(), [&](const BoxRow& row) {
        inside =
            inside && (row.source == nullptr || grid_.range_of(row.source, row.bytes) != nullptr);
      });
      if (!inside) {
        fault("H20", async.by, "a tensor map reaches outside every registered allocation");
        return;
      }
      copy_box(async.map, async.coordinate.data(), shared(), async.address);
    }
  }
  BarrierState& barrier = barriers_[static_cast<std::size_t>(async.barrier)];
  barrier.gathering.join_order(async.clock);
  complete_bytes(async.barrier, async.by, async.bytes);
}

}  // namespace deuce::emulator
