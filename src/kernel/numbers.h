// SPDX-License-Identifier: Apache-2.0
// 16-bit element types and pairs of floats, as bits: the same on every machine.
// Used by kernels, emulator and host code. Conversions here are exact or round to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace deuce {

/// bfloat16 by its bits.
struct Bf16 {
  uint16_t bits;
};
/// IEEE half precision by its bits.
struct Half {
  uint16_t bits;
};
/// Float types of tensors that a kernel takes in several of them.
enum class FloatType : int32_t { f32, half, bf16 };

/// Two floats that a machine may process in one instruction.
struct alignas(8) Float2 {
  float x, y;
};
/// Four 32-bit words: the widest access of a thread that every GPU has.
struct alignas(16) Word4 {
  uint32_t x, y, z, w;
};

constexpr float to_float(Bf16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

constexpr float to_float(Half value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  uint32_t exponent = (value.bits >> 10) & 31u;
  uint32_t mantissa = value.bits & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {  // zero or subnormal: value = mantissa * 2^-24
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

template <class T>
constexpr T from_float(float value);

template <>
constexpr Bf16 from_float<Bf16>(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 64u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

template <>
constexpr Half from_float<Half>(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<uint16_t>(sign | 0x7e00u)};
  if (magnitude >= 0x47800000u) return {static_cast<uint16_t>(sign | 0x7c00u)};  // overflow: inf
  if (magnitude <
      0x38800000u) {  // subnormal: adding 0.5 leaves the rounded mantissa in the low bits
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u))};
  }
  const uint32_t rounded = magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u);
  return {static_cast<uint16_t>(sign | (rounded >> 13))};
}

}  // namespace deuce
