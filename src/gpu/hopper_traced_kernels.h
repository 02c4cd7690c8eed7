// SPDX-License-Identifier: Apache-2.0
// Host side of a traced launch: what hopper_trace.cpp calls, and what each
// kernels/hopper_trace_*.cu defines.
#pragma once

#include "gpu/hopper_launch.h"
#include "gpu/trace_buffer.h"

namespace deuce::hopper {

template <int kShape>
cudaError_t prepare_traced();
template <int kShape>
cudaError_t launch_traced(const Params& params, const LaunchOptions& options,
                          const trace::Buffer& buffer);

}  // namespace deuce::hopper
