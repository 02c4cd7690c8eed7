// SPDX-License-Identifier: Apache-2.0
// Which memory a backend works on, and DLPack's numbers for it.
#pragma once

#include <cstdint>

#include "plan/problem.h"

namespace deuce {

inline constexpr int32_t kDeviceCpu = 1, kDeviceCuda = 2;

constexpr bool is_gpu(Backend backend) {
  return backend == Backend::hopper || backend == Backend::blackwell;
}

}  // namespace deuce
