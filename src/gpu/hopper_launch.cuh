// SPDX-License-Identifier: Apache-2.0
// The __global__ function around the portable Hopper kernel. Included by kernels/hopper_*.cu.
// A kernel is named by its row of kShapes: nvcc 13.0 cannot spell a class as template argument in
// its host stub.
#pragma once

#include "gpu/hopper_launch.h"
#include "gpu/warpgroup_machine.cuh"
#include "kernel/hopper/kernel.h"

namespace deuce::hopper {

template <int kShape>
__global__ void __launch_bounds__(kShapes[kShape].threads(), 1)
    decode(const __grid_constant__ Params params) {
  Sm90WarpgroupMachine machine(threadIdx.x, blockIdx.x, gridDim.x);
  decode_kernel<kShapes[kShape]>(machine, params);
}

template <int kShape>
cudaError_t prepare_shape() {
  return cudaFuncSetAttribute(decode<kShape>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              sizeof(SharedStorage<kShapes[kShape]>));
}

template <int kShape>
cudaError_t launch_shape(const Params& params, const LaunchOptions& options) {
  constexpr Config kConfig = kShapes[kShape];
  cudaLaunchAttribute early{.id = cudaLaunchAttributeProgrammaticStreamSerialization};
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(static_cast<unsigned>(options.workers));
  launch.blockDim = dim3(static_cast<unsigned>(kConfig.threads()));
  launch.dynamicSmemBytes = sizeof(SharedStorage<kConfig>);
  launch.stream = options.stream;
  launch.attrs = &early;
  launch.numAttrs = options.starts_early ? 1 : 0;
  return cudaLaunchKernelEx(&launch, decode<kShape>, params);
}

}  // namespace deuce::hopper
