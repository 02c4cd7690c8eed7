// SPDX-License-Identifier: Apache-2.0
// The __global__ function around the portable Blackwell kernel. Included by kernels/blackwell_*.cu.
// A kernel is named by its row of kShapes: nvcc 13.0 cannot spell a class as template argument in
// its host stub.
#pragma once

#include "gpu/blackwell_launch.h"
#include "gpu/sm100_machine.cuh"
#include "kernel/blackwell/kernel.h"

namespace deuce::blackwell {

template <int kShape>
__global__ void __launch_bounds__(kThreads, 1) decode(const __grid_constant__ Params params) {
  Sm100Machine machine(threadIdx.x, blockIdx.x, gridDim.x);
  decode_kernel<kShapes[kShape]>(machine, params);
}

template <int kShape>
cudaError_t prepare_shape() {
  return cudaFuncSetAttribute(decode<kShape>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              sizeof(SharedStorage<kShapes[kShape]>));
}

template <int kShape>
cudaError_t launch_shape(const Params& params, int workers, cudaStream_t stream) {
  decode<kShape><<<workers, kThreads, sizeof(SharedStorage<kShapes[kShape]>), stream>>>(params);
  return cudaGetLastError();
}

}  // namespace deuce::blackwell
