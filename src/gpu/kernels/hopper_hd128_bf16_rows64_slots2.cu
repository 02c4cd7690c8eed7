// SPDX-License-Identifier: Apache-2.0
#include "gpu/hopper_launch.cuh"
template cudaError_t deuce::hopper::prepare_shape<16>();
template cudaError_t deuce::hopper::launch_shape<16>(const Params&, const LaunchOptions&);
template cudaError_t deuce::hopper::prepare_shape<16 + deuce::hopper::kFixedBorders>();
template cudaError_t deuce::hopper::launch_shape<16 + deuce::hopper::kFixedBorders>(
    const Params&, const LaunchOptions&);
