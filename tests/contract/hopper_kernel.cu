// SPDX-License-Identifier: Apache-2.0
// The contracts compiled for a Hopper GPU; see hopper_kernel.h.
#include "contract/hopper_kernel.h"

#include "gpu/warpgroup_machine.cuh"

namespace deuce::contract {

__global__ void __launch_bounds__(kThreads)
    contract(Operation operation, const __grid_constant__ Params params) {
  Sm90WarpgroupMachine machine(threadIdx.x, blockIdx.x, gridDim.x);
  run(machine, operation, params);
}

cudaError_t launch(Operation operation, const Params& params) {
  contract<<<1, kThreads, sizeof(Storage), nullptr>>>(operation, params);
  return cudaGetLastError();
}

}  // namespace deuce::contract
