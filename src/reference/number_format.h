// SPDX-License-Identifier: Apache-2.0
// Bit-exact conversion between double and the number formats of the API.
// Used by the reference backend and by tests; written from the format definitions alone, so that
// it can judge the faster conversions of the other backends.
#pragma once

#include <cstdint>

#include "plan/problem.h"

namespace deuce::reference {

/// Fields of a binary floating-point format with one sign bit.
struct NumberFormat {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;  // false: all-ones exponents are numbers, except that all-ones bits are NaN
};

constexpr NumberFormat number_format(DType type) {
  switch (type) {
    case DType::f32: return {8, 23, true};
    case DType::f16: return {5, 10, true};
    case DType::bf16: return {8, 7, true};
    case DType::e4m3: return {4, 3, false};
    case DType::e5m2: return {5, 2, true};
  }
  return {8, 23, true};
}

/// The value of a bit pattern, exactly.
double decode(uint32_t bits, NumberFormat format);

/// The pattern nearest to a value, ties to even. Too large gives infinity, or NaN in a format
/// without infinity; NaN gives the quiet NaN with a clear sign.
uint32_t encode(double value, NumberFormat format);

/// Reads `count` contiguous elements that start `offset` elements after `base`.
void load_row(DType type, const void* base, int64_t offset, int64_t count, double* row);

/// Writes `count` contiguous elements, each rounded once.
void store_row(DType type, void* base, int64_t offset, int64_t count, const double* row);

}  // namespace deuce::reference
