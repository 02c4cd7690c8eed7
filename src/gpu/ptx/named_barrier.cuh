// SPDX-License-Identifier: Apache-2.0
// Named barriers of a CTA. PTX ISA, "Parallel Synchronization and Communication Instructions: bar".
// Whole warps take part; `threads` is a multiple of 32.
#pragma once

namespace deuce::ptx {

// bar.arrive id, threads;
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// bar.sync id, threads;
__device__ __forceinline__ void named_barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace deuce::ptx
