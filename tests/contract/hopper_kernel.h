// SPDX-License-Identifier: Apache-2.0
// Launches a contract on a Hopper GPU, on the default stream.
#pragma once

#include <cuda_runtime_api.h>

#include "contract/operations.h"

namespace deuce::contract {

cudaError_t launch(Operation operation, const Params& params);

}  // namespace deuce::contract
