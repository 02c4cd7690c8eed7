// SPDX-License-Identifier: Apache-2.0
// The limits that a decode kernel is held against, measured on the same bytes in the same run.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gpu/hopper_shapes.h"
#include "kernel/hopper/params.h"

namespace deuce::bench {

/// Reads what the kernel of a shape would read, through the same boxes, ring and stretches, and
/// does no arithmetic. The roof of the layout.
cudaError_t launch_tile_roof(int shape, const hopper::Params& params, int workers,
                             cudaStream_t stream);
/// Reads `bytes` (a multiple of 16 KB) in order by 16 KB bulk copies. The roof of the memory.
cudaError_t launch_linear_roof(const void* data, int64_t bytes, int workers, cudaStream_t stream);
/// A kernel that does nothing, with the same grid.
cudaError_t launch_empty(int workers, cudaStream_t stream);
/// Fills memory with random values of magnitude 0.5 .. 2 of an element type (DEUCE_* code).
cudaError_t fill_random(void* data, int64_t bytes, int32_t dtype, uint32_t seed,
                        cudaStream_t stream);

}  // namespace deuce::bench
