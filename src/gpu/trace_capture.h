// SPDX-License-Identifier: Apache-2.0
// Slices of a traced kernel in device memory: read when it has ended, or while it hangs, by a
// stream of their own. For tools and tests; it allocates and waits.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "gpu/trace_buffer.h"
#include "plan/status.h"
#include "trace/recorder.h"

namespace deuce::trace {

class TraceCapture {
 public:
  TraceCapture() = default;
  ~TraceCapture();
  TraceCapture(const TraceCapture&) = delete;
  TraceCapture& operator=(const TraceCapture&) = delete;

  Status allocate(int slices, uint32_t capacity, Policy policy);
  /// Nothing recorded yet: before each launch, as a hang is read up to the first empty record. Only
  /// places that some launch has filled are written, so that a warm L2 stays as it would be; those
  /// every time, so that launches with and without a tracer find the same L2. Waits for the device.
  Status clear();
  Buffer buffer() const { return buffer_; }
  /// Of a kernel that has ended: each slice with the records that it kept, oldest first.
  Result<std::vector<Slice>> collect() const;
  /// Of a kernel that still runs: what its warps have recorded until now.
  Result<std::vector<Slice>> peek() const;
  /// Leaves the memory to the end of the process, as freeing it would wait for the kernel.
  void abandon() { buffer_ = {}; }

 private:
  Buffer buffer_{};
  int slices_ = 0;
  uint32_t filled_ = 0;  // records of the fullest slice so far
};

/// Whether the work before `event` ends within so many seconds.
Result<bool> ends_within(cudaEvent_t event, double seconds);

}  // namespace deuce::trace
