// SPDX-License-Identifier: Apache-2.0
// The limits that a decode kernel is held against, measured on the same bytes in the same run.
// For benchmarks, not for serving: no part of libdeuce.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernel/hopper/params.h"

namespace deuce::hopper {

/// A launch that reads what the kernel of a problem would read; made by tile_roof.h.
struct TileRoof {
  int shape = 0, workers = 0;
  Params params;
};

/// Reads through the same boxes, ring and stretches as the kernel, and does no arithmetic. The
/// roof of the layout.
cudaError_t launch_tile_roof(const TileRoof& roof, cudaStream_t stream);
/// Reads `bytes` (a multiple of 16 KB) in order by 16 KB bulk copies. The roof of the memory.
cudaError_t launch_linear_roof(const void* data, int64_t bytes, int workers, cudaStream_t stream);
/// A kernel that does nothing, with the same grid.
cudaError_t launch_empty(int workers, cudaStream_t stream);

}  // namespace deuce::hopper
