// SPDX-License-Identifier: Apache-2.0
// Small checks shared by the argument rules: pointers, alignment, reach of strides.
// They look at addresses and numbers only, never at the memory behind a pointer.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "plan/status.h"

namespace deuce {

/// A null pointer is fine.
inline Status check_alignment(const char* field, const void* pointer, std::size_t alignment) {
  if (reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0) return {};
  return invalid(field, "{} is {}: it must be a multiple of {} bytes", field, pointer, alignment);
}

inline Status check_pointer(const char* field, const void* pointer, std::size_t alignment) {
  if (pointer == nullptr) return invalid(field, "{} is null", field);
  return check_alignment(field, pointer, alignment);
}

constexpr float kLog2OfE = 1.44269504F;

/// The nearest float; infinity beyond the range, where a plain conversion is undefined.
inline float to_single(double value) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  if (!(std::abs(value) > kLargest)) return static_cast<float>(value);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return value > 0 ? kInfinity : -kInfinity;
}

/// Scores are computed in fp32 and in log2 units, by every backend: `factor`, which they are
/// multiplied by, and its quotient by a softcap must neither overflow there nor vanish.
inline Status check_score_factor(const char* field, float value, double factor, float softcap) {
  const float single = to_single(factor);
  if (single == 0 || !std::isfinite(single * kLog2OfE)) {
    return invalid(
        field,
        "{} is {}: scores are then multiplied by {:.6g}, outside what fp32 holds in log2 "
        "units, 1.4e-45 to 2.35e38",
        field, value, factor);
  }
  if (softcap == 0) return {};
  const float capped = to_single(factor / softcap);
  if (std::isfinite(capped) && std::abs(capped) >= std::numeric_limits<float>::min()) return {};
  return invalid(
      "softcap",
      "softcap is {}: {:.6g}, the factor of scores, divided by it is {:.6g}: fp32 must hold "
      "this as a normal number",
      softcap, factor, capped);
}

/// One dimension of a tensor: how many elements `stride` apart.
struct Axis {
  int64_t count;
  int64_t stride;
};

/// Whether the byte offset of every element, `contiguous` of them in the last dimension, fits in 64
/// bits whatever the signs of the strides.
template <std::size_t kAxes>
bool reach_fits(const Axis (&axes)[kAxes], int64_t contiguous, int64_t element_bytes) {
  int64_t reach = contiguous;
  for (const Axis& axis : axes) {
    if (axis.count <= 1) continue;
    if (axis.stride == std::numeric_limits<int64_t>::min()) return false;
    int64_t steps = 0;
    if (__builtin_mul_overflow(axis.count - 1, std::abs(axis.stride), &steps)) return false;
    if (__builtin_add_overflow(reach, steps, &reach)) return false;
  }
  return !__builtin_mul_overflow(reach, element_bytes, &reach);
}

template <std::size_t kAxes>
Status check_reach(const char* field, const Axis (&axes)[kAxes], int64_t contiguous,
                   int64_t element_bytes) {
  if (reach_fits(axes, contiguous, element_bytes)) return {};
  std::string strides;
  for (const Axis& axis : axes) {
    strides += fmt::format("{}{}", strides.empty() ? "" : ", ", axis.stride);
  }
  return invalid(field, "{} is {{{}}}: byte offsets within the tensor must fit in 64 bits", field,
                 strides);
}

}  // namespace deuce
