// SPDX-License-Identifier: Apache-2.0
// Device half of sm_clocks.h.
#include "sm_clocks.h"

#include "gpu/ptx/trace.cuh"

namespace deuce::bench {
namespace {

__global__ void note_clocks(SmClock* clocks, uint32_t sms) {
  const uint64_t ns = ptx::global_timer(), cycles = ptx::clock64();
  const uint32_t sm = ptx::multiprocessor();
  if (sm < sms) clocks[sm] = {cycles, ns};
}

}  // namespace

cudaError_t read_clocks(SmClock* clocks, int sms, cudaStream_t stream) {
  // So much shared memory that every SM takes one block.
  constexpr int kShared = 120 * 1024;
  cudaError_t error =
      cudaFuncSetAttribute(note_clocks, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  if (error != cudaSuccess) return error;
  error = cudaMemsetAsync(clocks, 0, static_cast<std::size_t>(sms) * sizeof(SmClock), stream);
  if (error != cudaSuccess) return error;
  note_clocks<<<sms, 1, kShared, stream>>>(clocks, static_cast<uint32_t>(sms));
  return cudaGetLastError();
}

}  // namespace deuce::bench
