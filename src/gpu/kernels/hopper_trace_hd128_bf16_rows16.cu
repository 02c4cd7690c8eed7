// SPDX-License-Identifier: Apache-2.0
#include "gpu/hopper_trace_launch.cuh"
template cudaError_t deuce::hopper::prepare_traced<0>();
template cudaError_t deuce::hopper::launch_traced<0>(const Params&, const LaunchOptions&,
                                                     const trace::Buffer&);
