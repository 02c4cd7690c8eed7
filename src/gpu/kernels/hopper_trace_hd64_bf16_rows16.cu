// SPDX-License-Identifier: Apache-2.0
#include "gpu/hopper_trace_launch.cuh"
template cudaError_t deuce::hopper::prepare_traced<3>();
template cudaError_t deuce::hopper::launch_traced<3>(const Params&, const LaunchOptions&,
                                                     const trace::Buffer&);
