// SPDX-License-Identifier: Apache-2.0
// Host side of a kernel launch: what the backend calls, and what each file in kernels/ defines.
#pragma once

#include <cuda_runtime_api.h>

#include "kernel/hopper/params.h"
#include "plan/hopper_shapes.h"

namespace deuce::hopper {

/// How the kernel is launched; nothing here changes a result.
struct LaunchOptions {
  int workers = 0;  // CTAs, at most one per SM
  cudaStream_t stream = nullptr;
  bool starts_early = false;  // programmatic dependent launch
};

/// Allows the kernel its shared memory; once per device, before the first launch.
template <int kShape>
cudaError_t prepare_shape();
template <int kShape>
cudaError_t launch_shape(const Params& params, const LaunchOptions& options);

}  // namespace deuce::hopper
