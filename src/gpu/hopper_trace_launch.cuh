// SPDX-License-Identifier: Apache-2.0
// The __global__ function around the portable Hopper kernel with a tracer on its machine. Included
// by kernels/hopper_trace_*.cu.
#pragma once

#include "gpu/device_tracer.cuh"
#include "gpu/hopper_traced_kernels.h"
#include "gpu/warpgroup_machine.cuh"
#include "kernel/hopper/kernel.h"

namespace deuce::hopper {

template <int kShape, trace::Level kLevel>
__global__ void __launch_bounds__(kShapes[kShape].threads(), 1)
    decode_traced(const __grid_constant__ Params params,
                  const __grid_constant__ trace::Buffer buffer) {
  using Tracer = DeviceTracer<kLevel>;
  constexpr Config kConfig = kShapes[kShape];
  const Tracer tracer(buffer, threadIdx.x, kConfig.threads(), blockIdx.x);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const Role role = warp < 2 ? Role::load : warp < kConfig.load_warps() ? Role::idle : Role::attend;
  tracer.open(buffer, threadIdx.x, blockIdx.x, role);
  TracedWarpgroupMachine<Tracer> machine(threadIdx.x, blockIdx.x, gridDim.x, tracer);
  decode_kernel<kConfig>(machine, params);
  machine.tracer().close(buffer);
}

template <int kShape, trace::Level kLevel>
cudaError_t prepare_traced() {
  return cudaFuncSetAttribute(decode_traced<kShape, kLevel>,
                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                              sizeof(SharedStorage<kShapes[kShape]>));
}

template <int kShape, trace::Level kLevel>
cudaError_t launch_traced(const Params& params, const LaunchOptions& options,
                          const trace::Buffer& buffer) {
  constexpr Config kConfig = kShapes[kShape];
  decode_traced<kShape, kLevel>
      <<<options.workers, kConfig.threads(), sizeof(SharedStorage<kConfig>), options.stream>>>(
          params, buffer);
  return cudaGetLastError();
}

template <int kShape>
TracedFunctions traced_functions(trace::Level level) {
  if (level == trace::Level::full) {
    return {prepare_traced<kShape, trace::Level::full>, launch_traced<kShape, trace::Level::full>};
  }
  return {prepare_traced<kShape, trace::Level::edges>, launch_traced<kShape, trace::Level::edges>};
}

}  // namespace deuce::hopper
