// SPDX-License-Identifier: Apache-2.0
#include "gpu/blackwell_launch.cuh"
template cudaError_t deuce::blackwell::prepare_shape<18>();
template cudaError_t deuce::blackwell::launch_shape<18>(const Params&, int, cudaStream_t);
