// SPDX-License-Identifier: Apache-2.0
// Hopper's warp-level matrix instructions as arithmetic: the fragments of mma.sync m16n8k16, the
// distribution of ldmatrix, and e4m3 as half. Layouts are those of the PTX ISA, "Matrix fragments
// for mma.m16n8k16" and "ldmatrix".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace deuce::emulator {

/// The half of each e4m3 value: exact, NaN becomes the canonical NaN.
inline constexpr std::array<uint16_t, 256> kHalfFromE4m3 = [] {
  std::array<uint16_t, 256> halves{};
  for (uint32_t bits = 0; bits < 256; ++bits) {
    const uint32_t sign = (bits & 0x80u) << 8, exponent = bits >> 3 & 15u, mantissa = bits & 7u;
    uint32_t half = (exponent + 8) << 10 | mantissa << 7;
    if (exponent == 0) {  // mantissa * 2^-9, which half holds as a normal number
      uint32_t shifted = mantissa << 7, power = 9;
      while (mantissa != 0 && (shifted & 0x400u) == 0) {
        shifted <<= 1;
        --power;
      }
      half = mantissa == 0 ? 0 : power << 10 | (shifted & 0x3ffu);
    }
    const bool is_nan = (bits & 0x7fu) == 0x7fu;
    halves[bits] = static_cast<uint16_t>(is_nan ? 0x7fffu : sign | half);
  }
  return halves;
}();

/// Fragments of a warp, by lane.
struct MatrixFragments {
  std::array<const uint32_t*, 32> a{};  // four words
  std::array<std::array<uint32_t, 2>, 32> b{};
  std::array<float*, 32> d{};  // four floats
};

/// d += A B for 16 x 8 x 16. Products are summed in double and rounded once, then added in fp32.
void multiply_16x8x16(const MatrixFragments& fragments, bool bf16);

/// The word of lane `lane` of an 8 x 8 matrix of 16-bit elements, by its rows of 16 bytes.
uint32_t matrix_word(const std::array<const std::byte*, 8>& rows, int lane, bool transposed);

}  // namespace deuce::emulator
