// SPDX-License-Identifier: Apache-2.0
// Trace records of an emulated CTA in virtual time: those of the kernel's own calls, and what no
// warp of a GPU can observe: copies from issue to arrival, MMAs on the tensor pipe, commits that
// arrive.
#include <algorithm>
#include <cmath>

#include "emulator/grid.h"

namespace deuce::emulator {
namespace {

using trace::Agent;
using trace::Event;
using trace::Kind;

uint64_t cycles(double time) { return static_cast<uint64_t>(std::llround(time)); }

void add(trace::Slice& slice, double time, Kind kind, const trace::At& at) {
  slice.add(cycles(time), trace::pack(kind, at.event, at.slot, at.phase, at.block));
}

Event copy_event(char tensor) {
  return tensor == 'k' ? Event::copy_K : tensor == 'v' ? Event::copy_V : Event::copy_Q;
}

/// The event of a commit to an edge, or none.
Event commit_event(std::string_view edge) {
  const auto found = std::find_if(
      trace::kEvents.begin(), trace::kEvents.end(),
      [&](const auto& row) { return row.flow == trace::Flow::commit && row.edge == edge; });
  return found == trace::kEvents.end() ? Event::count : found->event;
}

}  // namespace

// The record stands behind the arithmetic that was charged before the call.
void Block::record(Warp& warp, const Group& group, double work) {
  warp.slice->add(cycles(grid_.now() + work), group.first->value);
  finish_lanes(warp, group.mask);
}

void Block::trace_bytes(int64_t change) {
  bytes_in_flight_ += change;
  options_.recorder->slice(static_cast<uint32_t>(index_), Agent::memory_queue, 0)
      .add(cycles(grid_.now()),
           trace::pack_value(Event::bytes_in_flight, static_cast<uint32_t>(bytes_in_flight_)));
}

void Block::trace_copy_issue(BarrierState& barrier, const Warp& warp, uint32_t bytes) {
  trace_bytes(bytes);
  if (barrier.copy_begin >= 0) return;
  barrier.copy_begin = grid_.now();
  barrier.copy_tensor = warp.mark;
  barrier.copy_block = std::max(0, warp.mark_block);
}

// A barrier slot holds one tile at a time, so the ranges of its unit never overlap.
void Block::trace_copies_done(BarrierState& barrier) {
  trace::Slice& slice = options_.recorder->slice(static_cast<uint32_t>(index_), Agent::copy,
                                                 trace::copy_unit(barrier.edge, barrier.slot));
  const trace::At at{copy_event(barrier.copy_tensor), barrier.slot, barrier.phase,
                     barrier.copy_block};
  add(slice, barrier.copy_begin, Kind::begin, at);
  add(slice, grid_.now(), Kind::end, at);
  barrier.copy_begin = -1;
}

void Block::trace_mma(const Warp& warp, const Op& call, bool from_tensor, double begin) {
  const Event event = from_tensor ? Event::pipe_PV : Event::pipe_QK;
  PipeRange& range = pipe_range_;
  if (range.end == begin && range.at.event == event && range.at.block == warp.kv_block) {
    range.end = pipe_free_;
    return;
  }
  flush_pipe();
  int slot = 0;
  if (!kernel_.tensor_ranges.empty()) {
    const NamedRange& scores = kernel_.tensor_ranges.front();
    slot = static_cast<int>((from_tensor ? call.a_column : call.column) / scores.size);
  }
  range = {{event, slot, 0, warp.kv_block}, begin, pipe_free_};
}

void Block::flush_pipe() {
  if (pipe_range_.end < 0) return;
  trace::Slice& slice =
      options_.recorder->slice(static_cast<uint32_t>(index_), Agent::tensor_pipe, 0);
  add(slice, pipe_range_.begin, Kind::begin, pipe_range_.at);
  add(slice, pipe_range_.end, Kind::end, pipe_range_.at);
  pipe_range_.end = -1;
}

void Block::trace_commit(const AsyncOp& commit) {
  const BarrierState& barrier = barriers_[static_cast<std::size_t>(commit.barrier)];
  if (barrier.edge < 0) return;
  const Event event = commit_event(kernel_.edges[static_cast<std::size_t>(barrier.edge)].name);
  if (event == Event::count) return;
  trace::Slice& slice =
      options_.recorder->slice(static_cast<uint32_t>(index_), Agent::tensor_pipe, 0);
  add(slice, grid_.now(), Kind::instant, {event, barrier.slot, barrier.phase, commit.by.block});
}

}  // namespace deuce::emulator
