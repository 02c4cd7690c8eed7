// SPDX-License-Identifier: Apache-2.0
// Tensor memory and tcgen05 of an emulated CTA; see block.h.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/grid.h"

namespace deuce::emulator {
namespace {

constexpr uint32_t kColumns = 512;
constexpr uint32_t kAllQuarters = 15;

bool all_equal(uint32_t a, uint32_t b) { return a == b; }

}  // namespace

double Block::tensor_allocation(Warp& warp, const Group& group) {
  const Op& call = *group.first;
  const uint32_t columns = call.bytes;
  const bool legal = std::has_single_bit(columns) && columns >= 32 && columns <= kColumns;
  if (call.kind == OpKind::tensor_relinquish) {
    tensor_relinquished_ = true;
  } else if (!legal) {
    fault("H15", &warp, &call, fmt::format("{} columns: a power of two from 32 to 512", columns));
  } else if (call.kind == OpKind::tensor_alloc) {
    if (tensor_relinquished_ || tensor_columns_ != 0) {
      fault("H15", &warp, &call,
            tensor_relinquished_ ? "allocation after relinquish_tensor_memory"
                                 : "a second allocation is not modelled");
      return 0;
    }
    tensor_columns_ = columns;
    const uint32_t offset = shared_offset(call.target, 4, call, warp);
    if (grid_.stopped()) return 0;
    const uint32_t record = shadow_.add_record(record_of(warp, call));
    note_access(warp, 1);
    clash(shadow_.write_shared(
              offset, 4,
              {&warp.clock, warp_component(warp.index), warp.sequence, record, false, true}),
          record, false);
    std::memset(call.target, 0, 4);  // column 0, lane 0
  } else {
    if (columns != tensor_columns_) {
      fault("H15", &warp, &call, fmt::format("frees {} columns of {}", columns, tensor_columns_));
      return 0;
    }
    const Clash open = shadow_.free_tensor(warp.clock);
    if (open.conflict != Conflict::none) {
      fault("H15", &warp, &call,
            fmt::format("tensor memory is freed while it may still be in use\n{}",
                        describe(shadow_.record(open.record), "against")));
      return 0;
    }
    tensor_columns_ = 0;
    shadow_.clear_tensor();
  }
  finish_lanes(warp, group.mask);
  return grid_.timing()(cost::kTensorAlloc);
}

bool Block::allocated(uint32_t column, uint32_t count, const Op& call, const Warp& warp) {
  if (column + count <= tensor_columns_) return true;
  fault("H15", &warp, &call,
        fmt::format("tensor-memory columns {} to {}, {} are allocated", column, column + count - 1,
                    tensor_columns_));
  return false;
}

double Block::tensor_access(Warp& warp, const Group& group) {
  const Op& call = *group.first;
  const bool writes = call.kind == OpKind::tensor_store;
  const uint32_t count = call.bytes;  // registers per lane
  uint32_t differs = 0;
  each_lane(group.mask,
            [&](int l) { differs |= all_equal(op(warp, l).column, call.column) ? 0 : 1; });
  if (differs != 0) {
    fault("H17", &warp, &call, "lanes give different tensor-memory addresses");
    return 0;
  }
  // The address carries a lane base in bits 16 and up; a warp reaches its own quarter only.
  const uint32_t column = call.column & 0xffffu;
  const auto quarter = static_cast<uint32_t>(warp.index % 4);
  const uint32_t lane_base = call.column >> 16;
  if (lane_base != 32 * quarter) {
    fault(
        "H15", &warp, &call,
        fmt::format("lane rule: warp {} reaches lanes {} to {} of tensor memory, the address says "
                    "lane {}, column {}",
                    warp.index, 32 * quarter, 32 * quarter + 31, lane_base, column));
    return 0;
  }
  if (!allocated(column, count, call, warp)) return 0;
  AccessRecord note = record_of(warp, call);
  note.column = column;
  note.columns = count;
  const uint32_t record = shadow_.add_record(note);
  const Component component = writes ? stores_component(warp.index) : loads_component(warp.index);
  const Accessor by{&warp.clock, component, warp.sequence, record, false, false, &warp.after_fence};
  clash(writes ? shadow_.write_tensor(1u << quarter, column, count, by)
               : shadow_.read_tensor(1u << quarter, column, count, by),
        record, true);
  if (grid_.stopped()) return 0;
  const Timing& timing = grid_.timing();
  if (writes) {
    if (warp.role == Role::correction && !kernel_.tensor_ranges.empty() &&
        column == kernel_.tensor_ranges.back().first) {
      ++rescales_;
    }
    warp.last_store = warp.sequence;
    warp.stores_done = std::max(warp.stores_done, grid_.now() + timing(cost::kTensorStoreLatency)) +
                       count * 128.0 / timing(cost::kTensorStoreRate);
  } else {
    warp.last_load = warp.sequence;
    warp.loads_done = std::max(warp.loads_done, grid_.now() + timing(cost::kTensorLoadLatency)) +
                      count * 128.0 / timing(cost::kTensorLoadRate);
  }
  each_lane(group.mask, [&](int l) {
    uint32_t* cells = tensor_.data() +
                      (std::size_t{32} * quarter + static_cast<std::size_t>(l)) * kColumns + column;
    const Op& mine = op(warp, l);
    if (writes) {
      std::memcpy(cells, mine.source, count * 4);
    } else {
      std::memcpy(mine.target, cells, count * 4);
    }
  });
  note_access(warp, group.mask);
  finish_lanes(warp, group.mask);
  return timing(cost::kIssue);
}

double Block::tensor_wait(Warp& warp, const Group& group) {
  const bool stores = group.first->kind == OpKind::wait_stores;
  if (stores) {
    warp.clock.k[static_cast<std::size_t>(stores_component(warp.index))] = warp.last_store;
  } else {
    warp.clock.k[static_cast<std::size_t>(loads_component(warp.index))] = warp.last_load;
  }
  finish_lanes(warp, group.mask);
  const double rest = std::max(0.0, (stores ? warp.stores_done : warp.loads_done) - grid_.now());
  return stores ? rest + grid_.timing()(cost::kTensorStoreWait) : rest;
}

// The 16-byte chunks that one K step of a shared-memory operand reads, and whose bytes they are.
void Block::shadow_operand(Warp& warp, const Op& call, const SharedOperand& operand, bool mn_major,
                           int rows, const Accessor& by, char tensor, int tensor_block) {
  if (!options_.values) return;
  const uint32_t outer = mn_major ? 16 : static_cast<uint32_t>(rows);
  const uint32_t chunks = mn_major ? static_cast<uint32_t>(rows) / 8 : 2;
  for (uint32_t r = 0; r < outer; ++r) {
    for (uint32_t c = 0; c < chunks; ++c) {
      const uint32_t address = chunk_address(operand, mn_major, r, c);
      if (address + 16 > kernel_.shared_bytes) {
        fault("H20", &warp, &call, fmt::format("the descriptor reaches shared {:#x}", address));
        return;
      }
      const Clash found = shadow_.read_shared(address, 16, by);
      if (found.conflict != Conflict::none) {
        clash(found, by.record, false);
        if (grid_.stopped()) return;
      }
      const AccessRecord* writer = shadow_.writer(address);
      if (tensor == 0 || writer == nullptr || writer->tensor == 0) continue;
      if (writer->tensor != tensor || (tensor_block >= 0 && writer->tensor_block != tensor_block)) {
        fault("H19", &warp, &call,
              fmt::format("wrong operand: {} of KV block {} is expected, shared {:#x} holds {} "
                          "of KV block {}\n{}",
                          tensor, tensor_block, address, writer->tensor, writer->tensor_block,
                          describe(*writer, "written by")),
              Severity::error, "kv_arrived");
        return;
      }
    }
  }
}

// One component per accumulator; kMaxStreams when there is none left.
std::size_t Block::stream_of(uint32_t column, int columns) {
  const auto found = std::find_if(streams_.begin(), streams_.end(), [&](const Stream& stream) {
    return stream.column == column && stream.columns == columns;
  });
  const auto index = static_cast<std::size_t>(found - streams_.begin());
  if (found == streams_.end() && index < kMaxStreams) streams_.push_back({column, columns, 0});
  return index;
}

// Puts an MMA on the tensor pipe; the time at which it begins.
double Block::occupy_pipe(bool from_tensor, int columns, bool accumulates) {
  const Timing& timing = grid_.timing();
  const Cost& interval = columns > 64  ? cost::kMmaN128
                         : from_tensor ? cost::kMmaN64Tensor
                                       : cost::kMmaN64Shared;
  const double begin = std::max(pipe_free_, grid_.now());
  const double chain = accumulates ? timing(cost::kAccumulate) : 0;
  pipe_free_ = begin + grid_.schedule().delay(Delay::mma, timing(interval) + chain);
  last_from_tensor_ = from_tensor;
  return begin;
}

bool Block::issued_by_one_thread(Warp& warp, const Group& group) {
  const int lane = __builtin_ctz(group.mask);
  if (std::popcount(group.mask) != 1 || (warp.mma_lane >= 0 && warp.mma_lane != lane)) {
    fault("H17", &warp, group.first, "MMAs must be issued by one thread, always the same");
    return false;
  }
  warp.mma_lane = lane;
  return true;
}

// What the descriptors of an MMA say; nothing when the hardware or the allocation refuses it.
std::optional<Block::MmaCall> Block::decode_mma(const Warp& warp, const Op& call) {
  MmaCall mma;
  mma.from_tensor = call.kind == OpKind::mma_tensor;
  mma.shape = decode_instruction(call.instruction);
  mma.b = decode_operand(call.b_descriptor);
  if (!mma.from_tensor) mma.a = decode_operand(call.a_descriptor);
  for (const char* broken : {mma.shape.fault, mma.b.fault, mma.a.fault}) {
    if (broken != nullptr) {
      fault("H15", &warp, &call, fmt::format("descriptor: {}", broken));
      return std::nullopt;
    }
  }
  if (!allocated(call.column, static_cast<uint32_t>(mma.shape.columns), call, warp) ||
      (mma.from_tensor && !allocated(call.a_column, 8, call, warp))) {
    return std::nullopt;
  }
  mma.stream = stream_of(call.column, mma.shape.columns);
  if (mma.stream == kMaxStreams) {
    fault("H15", &warp, &call, fmt::format("more than {} accumulators", kMaxStreams));
    return std::nullopt;
  }
  return mma;
}

// What an MMA reads and writes, against what is ordered before it. In hardware-fifo mode that is
// every earlier MMA of the thread, in strict mode those of its own accumulator.
void Block::shadow_mma(Warp& warp, const Op& call, const MmaCall& mma) {
  const uint32_t epoch = ++streams_[mma.stream].epoch;
  const auto known_of = [&](std::size_t stream) -> uint32_t& {
    return warp.clock.k[static_cast<std::size_t>(stream_component(static_cast<int>(stream)))];
  };
  std::array<uint32_t, kMaxStreams> saved{};
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    saved[s] = known_of(s);
    if (s == mma.stream || !options_.strict) known_of(s) = streams_[s].epoch;
  }
  const auto columns = static_cast<uint32_t>(mma.shape.columns);
  AccessRecord note = record_of(warp, call);
  note.tensor = warp.expected;
  note.tensor_block = warp.expected_block;
  note.column = call.column;
  note.columns = columns;
  const uint32_t record = shadow_.add_record(note);
  const Component component = stream_component(static_cast<int>(mma.stream));
  const Accessor by{&warp.clock, component, epoch, record, true, false, &warp.after_fence};
  if (mma.from_tensor) {
    clash(shadow_.read_tensor(kAllQuarters, call.a_column, 8, by), record, true);
  } else {
    shadow_operand(warp, call, mma.a, mma.shape.a_mn_major, mma.shape.rows, by, 'q', -1);
  }
  if (!grid_.stopped()) {
    shadow_operand(warp, call, mma.b, mma.shape.b_mn_major, mma.shape.columns, by, warp.expected,
                   warp.expected_block);
  }
  if (!grid_.stopped()) {
    if (call.flag) clash(shadow_.read_tensor(kAllQuarters, call.column, columns, by), record, true);
    clash(shadow_.write_tensor(kAllQuarters, call.column, columns, by), record, true);
  }
  for (std::size_t s = 0; s < streams_.size(); ++s) known_of(s) = saved[s];
}

double Block::mma(Warp& warp, const Group& group) {
  const Op& call = *group.first;
  if (!issued_by_one_thread(warp, group)) return 0;
  const std::optional<MmaCall> mma = decode_mma(warp, call);
  if (!mma) return 0;
  shadow_mma(warp, call, *mma);
  if (grid_.stopped()) return 0;

  const uint32_t id = grid_.new_async();
  AsyncOp& async = grid_.async(id);
  async.kind = AsyncOp::Kind::mma;
  async.from_tensor = mma->from_tensor;
  async.accumulate = call.flag;
  async.column = call.column;
  async.a_column = call.a_column;
  async.shape = mma->shape;
  async.a = mma->a;
  async.b = mma->b;
  const double begin = occupy_pipe(mma->from_tensor, mma->shape.columns, call.flag);
  if (options_.recorder != nullptr) trace_mma(warp, call, mma->from_tensor, begin);
  ++in_flight_;
  grid_.queue_async(index_, id, pipe_free_);
  finish_lanes(warp, group.mask);
  return grid_.timing()(cost::kMmaIssue);
}

void Block::run_mma(const AsyncOp& async) {
  if (!options_.values) return;
  if (async.from_tensor) {
    load_panel(tensor_.data(), async.a_column, async.shape.a_bf16, *panel_a_);
  } else {
    load_panel(shared(), async.a, async.shape.a_mn_major, async.shape.a_bf16, async.shape.rows,
               *panel_a_);
  }
  load_panel(shared(), async.b, async.shape.b_mn_major, async.shape.b_bf16, async.shape.columns,
             *panel_b_);
  multiply(*panel_a_, *panel_b_, async.shape.columns, async.accumulate,
           {reinterpret_cast<float*>(tensor_.data()) + async.column, async.shape.rows, kColumns});
}

double Block::commit(Warp& warp, const Group& group) {
  Op& call = *group.first;
  if (std::popcount(group.mask) != 1) {
    fault("H17", &warp, &call, "a commit must be issued by the thread that issued the MMAs");
    return 0;
  }
  if (warp.mma_lane >= 0 && warp.mma_lane != __builtin_ctz(group.mask)) {
    fault("H17", &warp, &call, "another lane issued the MMAs: this commit covers none of them");
    return 0;
  }
  const int index = barrier_index(call.barrier, call, warp);
  if (index < 0) return 0;
  const BarrierState& barrier = barriers_[static_cast<std::size_t>(index)];
  if (barrier.edge >= 0) {
    const Edge& edge = kernel_.edges[static_cast<std::size_t>(barrier.edge)];
    if (!role_arrives(edge, warp.role)) {
      fault("H10", &warp, &call,
            fmt::format("{} commits to {}, which the edge table does not list", name_of(warp.role),
                        barrier_name(barrier)),
            Severity::error, std::string(edge.name));
      return 0;
    }
  }
  const uint32_t id = grid_.new_async();
  AsyncOp& async = grid_.async(id);
  async.kind = AsyncOp::Kind::commit;
  async.barrier = index;
  async.clock = warp.clock;
  async.by = record_of(warp, call);
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    const Component stream = stream_component(static_cast<int>(s));
    async.clock.k[static_cast<std::size_t>(stream)] = streams_[s].epoch;
    async.clock.t[tensor_index(stream)] = streams_[s].epoch;  // a commit implies the fence before
  }
  const Timing& timing = grid_.timing();
  const double done = std::max(pipe_free_, grid_.now());
  const Cost& fill = last_from_tensor_ ? cost::kMmaFillTensor : cost::kMmaFillShared;
  const double delivery = timing(fill) + timing(cost::kCommitDelivery);
  ++in_flight_;
  grid_.queue_async(index_, id, done + grid_.schedule().delay(Delay::commit, delivery));
  finish_lanes(warp, group.mask);
  return timing(cost::kArriveIssue);
}

}  // namespace deuce::emulator
