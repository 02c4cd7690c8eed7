// SPDX-License-Identifier: Apache-2.0
// The tracer of a GPU: each warp fills a slice of its own in device memory, by one lane and without
// atomics or fences. Used by the traced kernels; the layout is that of trace/event.h.
// A slice that is full only counts, or begins again (Policy::keep_newest). What a hung kernel did
// last can be read from its slices while it hangs. Must hold: opened and closed by all lanes of
// every warp.
#pragma once

#include "gpu/ptx/trace.cuh"
#include "gpu/trace_buffer.h"
#include "kernel/machine.h"

namespace deuce {

template <trace::Level kRecorded>
class DeviceTracer {
 public:
  static constexpr trace::Level kLevel = kRecorded;

  __device__ __forceinline__ DeviceTracer(const trace::Buffer& buffer, unsigned thread,
                                          unsigned threads, unsigned block)
      : slice_(block * (threads / 32) + thread / 32) {
    const uint64_t first = uint64_t{slice_} * (buffer.capacity + 1);
    const bool newest = buffer.policy == trace::Policy::keep_newest;
    base_ = reinterpret_cast<uint64_t>(buffer.records + first);
    mask_ = newest ? buffer.capacity * 8 - 1 : ~0u;
    // Lanes that do not store find their slice full from the start.
    end_ = thread % 32 != 0 ? 0 : newest ? ~0u : buffer.capacity * 8;
  }

  __device__ __forceinline__ void record(uint32_t word) {
    ptx::store_record(base_ + (cursor_ & mask_), word, cursor_ < end_);
    cursor_ += 8;
  }

  /// Before the first record and after the last one. The header can be read from then on.
  __device__ __forceinline__ void open(const trace::Buffer& buffer, unsigned thread, unsigned block,
                                       Role role) const {
    const trace::Anchor now = anchor();
    if (end_ == 0) return;
    trace::SliceHeader& header = buffer.headers[slice_];
    header.magic = trace::kSliceMagic;
    header.version = trace::kFormatVersion;
    header.agent = trace::Agent::warp;
    header.role = static_cast<uint8_t>(role);
    header.cta = block;
    header.sm = static_cast<uint16_t>(ptx::multiprocessor());
    header.unit = static_cast<uint16_t>(thread / 32);
    header.capacity = buffer.capacity;
    header.policy = buffer.policy;
    header.begin = now;
  }
  __device__ __forceinline__ void close(const trace::Buffer& buffer) const {
    const trace::Anchor now = anchor();
    const uint32_t cycles = cost(buffer);
    if (end_ == 0) return;
    trace::SliceHeader& header = buffer.headers[slice_];
    header.wanted = cursor_ / 8;
    header.end = now;
    trace::set_self_cost(header, cycles);
  }

 private:
  // On an edge of the timer, which steps by 32 ns on an H200: both clocks are then read within some
  // tens of cycles.
  __device__ __forceinline__ static trace::Anchor anchor() {
    const uint64_t before = ptx::global_timer();
    uint64_t now = before;
    while (now == before) now = ptx::global_timer();
    return {ptx::clock64(), now};
  }

  /// Cycles of kSelfCostRecords records that follow each other, all into the slice's spare place.
  __device__ __forceinline__ uint32_t cost(const trace::Buffer& buffer) const {
    DeviceTracer probe = *this;
    probe.base_ += uint64_t{buffer.capacity} * 8;
    probe.mask_ = 0;
    probe.cursor_ = 0;
    const uint64_t begin = ptx::clock64();
#pragma unroll
    for (uint32_t i = 0; i < trace::kSelfCostRecords; ++i) probe.record(0);
    return static_cast<uint32_t>(ptx::clock64() - begin);
  }

  uint64_t base_;
  uint32_t slice_, mask_, end_, cursor_ = 0;  // bytes but for the first
};

}  // namespace deuce
