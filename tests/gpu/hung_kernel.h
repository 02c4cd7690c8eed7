// SPDX-License-Identifier: Apache-2.0
// A kernel that hangs on purpose, with the tracer of the traced kernels, until it is released.
#pragma once

#include <cuda_runtime_api.h>

#include "gpu/trace_buffer.h"

namespace deuce::test {

inline constexpr int kHungCtas = 2, kHungWarps = 2;

/// Warp 0 of each CTA issues block 15 and ends; warp 1 waits for K of block 14 in ring slot 2 until
/// `released`, in mapped memory of the host, is not 0. Each records `rounds` waits before.
cudaError_t launch_hung_kernel(const trace::Buffer& buffer, const volatile unsigned* released,
                               int rounds, cudaStream_t stream);

}  // namespace deuce::test
