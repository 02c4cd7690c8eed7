// SPDX-License-Identifier: Apache-2.0
// The tracer of a GPU: each warp fills a slice of its own in device memory, by one lane and without
// atomics or fences. Used by the traced kernels; the layout is that of trace/event.h.
// A slice that is full only counts. Must hold: opened and closed by all lanes of every warp.
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
    base_ = reinterpret_cast<uint64_t>(buffer.records);
    offset_ = slice_ * buffer.capacity * 8;
    // Lanes that do not store find their slice full from the start.
    end_ = thread % 32 == 0 ? offset_ + buffer.capacity * 8 : 0;
  }

  __device__ __forceinline__ void record(uint32_t word) {
    ptx::store_record(base_ + offset_, word, offset_ < end_);
    offset_ += 8;
  }

  /// Before the first record and after the last one.
  __device__ __forceinline__ void open(const trace::Buffer& buffer) const {
    const trace::Anchor now = anchor();
    if (end_ != 0) buffer.headers[slice_].begin = now;
  }
  __device__ __forceinline__ void close(const trace::Buffer& buffer, unsigned thread,
                                        unsigned block, Role role) const {
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
    header.wanted = (offset_ - slice_ * buffer.capacity * 8) / 8;
    header.policy = trace::Policy::keep_first;
    header.end = now;
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

  uint64_t base_;
  uint32_t slice_, offset_, end_;  // bytes; all slices together stay below 4 GB
};

}  // namespace deuce
