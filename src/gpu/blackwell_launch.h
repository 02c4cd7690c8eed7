// SPDX-License-Identifier: Apache-2.0
// Host side of a Blackwell launch: what the backend calls, and what each file in kernels/ defines.
#pragma once

#include <cuda_runtime_api.h>

#include "gpu/blackwell_shapes.h"
#include "kernel/blackwell/params.h"

namespace deuce::blackwell {

/// Allows the kernel its shared memory; once per device, before the first launch.
template <int kShape>
cudaError_t prepare_shape();
/// `workers` CTAs, at most one per SM: a CTA takes all of an SM's tensor memory.
template <int kShape>
cudaError_t launch_shape(const Params& params, int workers, cudaStream_t stream);

}  // namespace deuce::blackwell
