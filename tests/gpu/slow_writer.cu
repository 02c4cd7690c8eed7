// SPDX-License-Identifier: Apache-2.0
// Device half of slow_writer.h. One block, so that an SM is all it takes.
#include "gpu/slow_writer.h"

namespace deuce::test {
namespace {

__device__ unsigned long long now() {
  unsigned long long nanoseconds;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(nanoseconds));
  return nanoseconds;
}

__global__ void write_late(LateCopies copies, unsigned nanoseconds) {
  cudaTriggerProgrammaticLaunchCompletion();
  const unsigned long long begin = now();
  while (now() - begin < nanoseconds) {
  }
  for (int i = 0; i < copies.count; ++i) {
    const auto* from = static_cast<const unsigned*>(copies.copy[i].from);
    auto* to = static_cast<unsigned*>(copies.copy[i].to);
    for (std::size_t word = threadIdx.x; word < copies.copy[i].bytes / 4; word += blockDim.x) {
      to[word] = from[word];
    }
  }
}

}  // namespace

cudaError_t launch_slow_writer(const LateCopies& copies, unsigned nanoseconds,
                               cudaStream_t stream) {
  write_late<<<1, 256, 0, stream>>>(copies, nanoseconds);
  return cudaGetLastError();
}

}  // namespace deuce::test
