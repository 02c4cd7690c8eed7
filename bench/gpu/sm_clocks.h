// SPDX-License-Identifier: Apache-2.0
// The clocks of all SMs at a moment of a stream, by which hopper_bench knows the rate they ran at.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace deuce::bench {

/// An SM's cycle counter, and the timer of the device when it was read; ns = 0: not read.
struct SmClock {
  uint64_t cycles, ns;
};
/// Reads both into clocks[0 .. sms - 1], memory of the device, which is 0 where an SM took no
/// block.
cudaError_t read_clocks(SmClock* clocks, int sms, cudaStream_t stream);

}  // namespace deuce::bench
