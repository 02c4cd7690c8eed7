// SPDX-License-Identifier: Apache-2.0
// Warpgroup matrix instructions: ordering. PTX ISA, "Asynchronous Warpgroup Level Matrix
// Instructions". All 128 threads of a warpgroup take part.
#pragma once

#include <cstdint>

namespace deuce::ptx {

// wgmma.fence.sync.aligned;
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// wgmma.commit_group.sync.aligned;
__device__ __forceinline__ void wgmma_commit_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// wgmma.wait_group.sync.aligned pending;
template <int kPending>
__device__ __forceinline__ void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

}  // namespace deuce::ptx
