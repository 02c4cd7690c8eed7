// SPDX-License-Identifier: Apache-2.0
// A kernel as it precedes attention in a decode step, made slow: it lets the next kernel start at
// once, waits, and only then writes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace deuce::test {

/// Device memory to be copied, in words.
struct LateCopies {
  static constexpr int kMost = 16;
  struct One {
    const void* from;
    void* to;
    std::size_t bytes;
  } copy[kMost];
  int count = 0;

  void add(const void* from, void* to, std::size_t bytes) { copy[count++] = {from, to, bytes}; }
};

cudaError_t launch_slow_writer(const LateCopies& copies, unsigned nanoseconds, cudaStream_t stream);

}  // namespace deuce::test
