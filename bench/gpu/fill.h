// SPDX-License-Identifier: Apache-2.0
// Device code of hopper_bench: random caches.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace deuce::bench {

/// Fills memory with random values of magnitude 0.5 .. 2 of an element type (DEUCE_* code).
cudaError_t fill_random(void* data, int64_t bytes, int32_t dtype, uint32_t seed,
                        cudaStream_t stream);

}  // namespace deuce::bench
