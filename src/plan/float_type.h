// SPDX-License-Identifier: Apache-2.0
// How kernels name the float types that results and sinks may have.
#pragma once

#include <cassert>

#include "kernel/numbers.h"
#include "plan/problem.h"

namespace deuce {

inline FloatType float_type_of(DType type) {
  assert(type == DType::f32 || type == DType::f16 || type == DType::bf16);
  if (type == DType::f32) return FloatType::f32;
  return type == DType::bf16 ? FloatType::bf16 : FloatType::half;
}

}  // namespace deuce
