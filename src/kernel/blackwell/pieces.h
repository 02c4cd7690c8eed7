// SPDX-License-Identifier: Apache-2.0
// The pieces of this block: every role walks the same list, from the same live lengths.
// One warp finds the block's stretch of the line of work at kernel start; roles continue from
// there.
#pragma once

#include "kernel/blackwell/params.h"
#include "kernel/blackwell/shared.h"

namespace deuce::blackwell {

/// Live sizes of a request, clamped so that nothing outside the cache is ever addressed.
template <class Machine>
struct LiveSizes {
  Machine* machine;
  const Params* params;

  DEUCE_DEVICE RequestSizes operator()(int32_t request) const {
    const Params& p = *params;
    RequestSizes sizes{.kv_start = 0, .kv_len = p.kv_len_all, .q_len = p.q_len};
    if (p.kv_len != nullptr) sizes.kv_len = machine->load_constant(p.kv_len + request);
    if (p.kv_start != nullptr) sizes.kv_start = machine->load_constant(p.kv_start + request);
    if (p.cu_q_len != nullptr) {
      sizes.q_len = machine->load_constant(p.cu_q_len + request + 1) -
                    machine->load_constant(p.cu_q_len + request);
      sizes.q_len = static_cast<int32_t>(max64(0, min64(sizes.q_len, p.max_q_len)));
    }
    int64_t capacity = p.capacity;
    if (p.page_indptr != nullptr) {
      const int64_t pages = machine->load_constant(p.page_indptr + request + 1) -
                            machine->load_constant(p.page_indptr + request);
      capacity = pages * p.page_size;
      if (p.kv_len == nullptr) {
        sizes.kv_len =
            pages <= 0 ? 0
                       : capacity - p.page_size + machine->load_constant(p.last_page_len + request);
      }
    }
    sizes.kv_len = max64(0, min64(sizes.kv_len, capacity));
    sizes.kv_start = max64(0, min64(sizes.kv_start, sizes.kv_len));
    return sizes;
  }
};

template <class Machine>
DEUCE_DEVICE int64_t shuffle_wide(Machine& machine, int64_t value, int source) {
  const auto bits = static_cast<uint64_t>(value);
  const uint32_t low = machine.shuffle(static_cast<uint32_t>(bits), source);
  const uint32_t high = machine.shuffle(static_cast<uint32_t>(bits >> 32), source);
  return static_cast<int64_t>(static_cast<uint64_t>(high) << 32 | low);
}

template <class Machine>
DEUCE_DEVICE int64_t warp_inclusive_sum(Machine& machine, int64_t value) {
  for (int distance = 1; distance < 32; distance *= 2) {
    const int source = machine.lane() - distance;
    const int64_t below = shuffle_wide(machine, value, source < 0 ? machine.lane() : source);
    value += source < 0 ? 0 : below;
  }
  return value;
}

/// By one warp: total work of the launch, this block's share, and the request where it begins.
template <class Machine>
DEUCE_DEVICE void find_work(Machine& machine, const Params& params, WorkRange& target) {
  const LiveSizes<Machine> sizes{&machine, &params};
  const WorkShape& shape = params.shape;
  const auto tiles_of = [&](int32_t request) {
    return request < shape.batch ? request_tiles(shape, sizes(request)) : 0;
  };
  int64_t mine = 0;
  for (int32_t r = machine.lane(); r < shape.batch; r += 32) mine += tiles_of(r);
  machine.sync_warp();
  const int64_t total = shuffle_wide(machine, warp_inclusive_sum(machine, mine), 31);
  const Share share = share_of(total, shape.workers, machine.block());

  int64_t begin = 0;
  int32_t found = shape.batch;
  int64_t found_begin = total;
  for (int32_t base = 0; base < shape.batch && found == shape.batch; base += 32) {
    const int64_t tiles = tiles_of(base + machine.lane());
    machine.sync_warp();
    const int64_t end = begin + warp_inclusive_sum(machine, tiles);
    const uint32_t beyond = machine.ballot(end > share.first);
    if (beyond != 0) {
      const int lane = __builtin_ctz(beyond);
      found = base + lane;
      found_begin = shuffle_wide(machine, end - tiles, lane);
    }
    begin = shuffle_wide(machine, end, 31);
  }
  if (machine.elect()) {
    machine.store_shared(target.total, total);
    machine.store_shared(target.first, share.first);
    machine.store_shared(target.last, share.last);
    machine.store_shared(target.request_begin, found_begin);
    machine.store_shared(target.request, int64_t{found});
  }
  machine.sync_warp();
}

/// A role's own walk over the block's pieces.
template <Config kConfig, class Machine>
class Pieces {
 public:
  DEUCE_DEVICE Pieces(Machine& machine, SharedStorage<kConfig>& shared, const Params& params)
      : sizes_{&machine, &params},
        total_(machine.load_shared(shared.work.total)),
        walk_(params.shape, sizes_,
              Share{machine.load_shared(shared.work.first), machine.load_shared(shared.work.last)},
              RequestPlace{static_cast<int32_t>(machine.load_shared(shared.work.request)),
                           machine.load_shared(shared.work.request_begin)}) {}
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  DEUCE_DEVICE bool next(Piece& piece) { return walk_.next(piece); }
  DEUCE_DEVICE RequestSizes sizes(const Piece& piece) const { return sizes_(piece.item.request); }
  DEUCE_DEVICE int64_t total() const { return total_; }

 private:
  LiveSizes<Machine> sizes_;
  int64_t total_;
  PieceWalk<LiveSizes<Machine>> walk_;
};

}  // namespace deuce::blackwell
