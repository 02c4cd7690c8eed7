// SPDX-License-Identifier: Apache-2.0
// Device half of hung_kernel.h.
#include "gpu/hung_kernel.h"

#include "gpu/device_tracer.cuh"

namespace deuce::test {
namespace {

using trace::Event;
using trace::Kind;

__global__ void hang(const trace::Buffer buffer, const volatile unsigned* released, int rounds) {
  DeviceTracer<trace::Level::edges> tracer(buffer, threadIdx.x, 32 * kHungWarps, blockIdx.x);
  const bool waits = threadIdx.x >= 32;
  tracer.open(buffer, threadIdx.x, blockIdx.x, waits ? Role::attend : Role::load);
  tracer.record(trace::pack(Kind::begin, Event::warp_lifetime, 0, 0, 0));
  const auto range = [&](Event event, int slot, int phase, int block) {
    tracer.record(trace::pack(Kind::begin, event, slot, phase, block));
    tracer.record(trace::pack(Kind::end, event, 0, 0, 0));
  };
  for (int i = 0; i < rounds; ++i) range(waits ? Event::wait_K : Event::tma_issue_K, 2, i, i);
  if (waits) {
    tracer.record(trace::pack(Kind::begin, Event::wait_K, 2, rounds, 14));
    while (*released == 0) {
    }
    tracer.record(trace::pack(Kind::end, Event::wait_K, 0, 0, 0));
  } else {
    range(Event::tma_issue_K, 3, 0, 15);
  }
  tracer.record(trace::pack(Kind::end, Event::warp_lifetime, 0, 0, 0));
  tracer.close(buffer);
}

}  // namespace

cudaError_t launch_hung_kernel(const trace::Buffer& buffer, const volatile unsigned* released,
                               int rounds, cudaStream_t stream) {
  hang<<<kHungCtas, 32 * kHungWarps, 0, stream>>>(buffer, released, rounds);
  return cudaGetLastError();
}

}  // namespace deuce::test
