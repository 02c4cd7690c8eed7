// SPDX-License-Identifier: Apache-2.0
// Host side of a traced launch: what hopper_trace.cpp calls, and what each
// kernels/hopper_trace_*.cu defines.
#pragma once

#include "gpu/hopper_launch.h"
#include "gpu/trace_buffer.h"

namespace deuce::hopper {

/// As prepare_shape and launch_shape, of the kernel with a tracer.
struct TracedFunctions {
  cudaError_t (*prepare)();
  cudaError_t (*launch)(const Params& params, const LaunchOptions& options,
                        const trace::Buffer& buffer);
};

/// Of a row of kShapes. Each level is a kernel of its own, so that a record that is not wanted
/// costs nothing.
template <int kShape>
TracedFunctions traced_functions(trace::Level level);

}  // namespace deuce::hopper
