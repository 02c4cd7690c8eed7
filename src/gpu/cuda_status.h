// SPDX-License-Identifier: Apache-2.0
// CUDA's error codes as this library's Status.
#pragma once

#include <cuda_runtime_api.h>

#include "plan/status.h"

namespace deuce {

/// OK, or RUNTIME_ERROR with the call's name and CUDA's own text.
inline Status cuda_status(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return {};
  return {
      DEUCE_RUNTIME_ERROR, "",
      fmt::format("{} failed: {} ({})", call, cudaGetErrorString(error), cudaGetErrorName(error))};
}

}  // namespace deuce
