// SPDX-License-Identifier: Apache-2.0
// Device code of hopper_bench: random caches, and the clocks of the SMs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace deuce::bench {

/// Fills memory with random values of magnitude 0.5 .. 2 of an element type (DEUCE_* code).
cudaError_t fill_random(void* data, int64_t bytes, int32_t dtype, uint32_t seed,
                        cudaStream_t stream);

/// An SM's cycle counter, and the timer of the device when it was read.
struct SmClock {
  uint64_t cycles, ns;
};
/// Reads both on every SM into clocks[0 .. sms - 1], memory of the device.
cudaError_t read_clocks(SmClock* clocks, int sms, cudaStream_t stream);

}  // namespace deuce::bench
