// SPDX-License-Identifier: Apache-2.0
// Scalar approximations and conversions. PTX ISA, "Floating Point Instructions" and "cvt".
#pragma once

#include <cstdint>

namespace deuce::ptx {

// ex2.approx.ftz.f32 d, a;
__device__ __forceinline__ float exp2_approximate(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// lg2.approx.ftz.f32 d, a;
__device__ __forceinline__ float log2_approximate(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// rcp.approx.ftz.f32 d, a;
__device__ __forceinline__ float reciprocal_approximate(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// max.NaN.f32 d, a, b;
__device__ __forceinline__ float max_nan(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}

// cvt.rn.bf16x2.f32 d, high, low;
__device__ __forceinline__ uint32_t pack_bf16(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

// cvt.rn.f16x2.f32 d, high, low;
__device__ __forceinline__ uint32_t pack_half(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

// cvt.rn.f16x2.e4m3x2 d, a;  exact, NaN stays NaN; two values of a 16-bit register
__device__ __forceinline__ uint32_t half_from_e4m3(uint16_t pair) {
  uint32_t packed;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(packed) : "h"(pair));
  return packed;
}

}  // namespace deuce::ptx
