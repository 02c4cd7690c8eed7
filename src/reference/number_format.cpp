// SPDX-License-Identifier: Apache-2.0
// Conversions of number_format.h. 8- and 16-bit formats are read through tables that are built
// from decode() once, because the reference converts every key again for every query row.
#include "reference/number_format.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

namespace deuce::reference {
namespace {

template <DType kType>
const double* decode_table() {
  static constexpr int kEntries = dtype_bytes(kType) == 1 ? 1 << 8 : 1 << 16;
  static const auto kTable = [] {
    auto table = std::make_unique<double[]>(kEntries);
    for (int bits = 0; bits < kEntries; ++bits) {
      table[bits] = decode(static_cast<uint32_t>(bits), number_format(kType));
    }
    return table;
  }();
  return kTable.get();
}

template <class Bits>
void load_by_table(const double* table, const void* base, int64_t offset, int64_t count,
                   double* row) {
  const std::byte* source = static_cast<const std::byte*>(base) + offset * int64_t{sizeof(Bits)};
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, source + i * int64_t{sizeof(Bits)}, sizeof(Bits));
    row[i] = table[bits];
  }
}

void load_floats(const void* base, int64_t offset, int64_t count, double* row) {
  const std::byte* source = static_cast<const std::byte*>(base) + offset * int64_t{sizeof(float)};
  for (int64_t i = 0; i < count; ++i) {
    float value;
    std::memcpy(&value, source + i * int64_t{sizeof(float)}, sizeof(float));
    row[i] = value;
  }
}

}  // namespace

double decode(uint32_t bits, NumberFormat format) {
  const uint32_t mantissa_mask = (1U << format.mantissa_bits) - 1;
  const uint32_t exponent_mask = (1U << format.exponent_bits) - 1;
  const uint32_t mantissa = bits & mantissa_mask;
  const uint32_t exponent = (bits >> format.mantissa_bits) & exponent_mask;
  const bool negative = ((bits >> (format.mantissa_bits + format.exponent_bits)) & 1U) != 0;
  const int bias = static_cast<int>(exponent_mask >> 1);
  double magnitude;
  if (exponent == exponent_mask && format.has_infinity) {
    magnitude = mantissa == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == exponent_mask && mantissa == mantissa_mask) {
    magnitude = std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(mantissa, 1 - bias - format.mantissa_bits);
  } else {
    magnitude = std::ldexp(mantissa + mantissa_mask + 1,
                           static_cast<int>(exponent) - bias - format.mantissa_bits);
  }
  return negative ? -magnitude : magnitude;
}

uint32_t encode(double value, NumberFormat format) {
  const uint32_t mantissa_mask = (1U << format.mantissa_bits) - 1;
  const uint32_t exponent_mask = (1U << format.exponent_bits) - 1;
  const uint32_t infinity = exponent_mask << format.mantissa_bits;
  const uint32_t nan = format.has_infinity ? infinity | (1U << (format.mantissa_bits - 1))
                                           : infinity | mantissa_mask;
  if (std::isnan(value)) return nan;
  const uint32_t sign =
      std::signbit(value) ? 1U << (format.mantissa_bits + format.exponent_bits) : 0;
  const uint32_t too_large = sign | (format.has_infinity ? infinity : nan);
  if (std::isinf(value)) return too_large;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;

  const int bias = static_cast<int>(exponent_mask >> 1);
  const int exponent = std::max(std::ilogb(magnitude), 1 - bias);  // subnormals share the lowest
  // Units in the last place, below 2^(mantissa_bits + 2): ties go to even in the default mode.
  const double ulps = std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent));
  if (exponent > bias + 1) return too_large;
  // A normal value carries its hidden bit into the exponent field; rounding up may carry again.
  const int64_t field =
      (int64_t{exponent} + bias - 1) * (int64_t{mantissa_mask} + 1) + static_cast<int64_t>(ulps);
  const int64_t largest = format.has_infinity ? int64_t{infinity} - 1 : int64_t{nan} - 1;
  return field > largest ? too_large : sign | static_cast<uint32_t>(field);
}

void load_row(DType type, const void* base, int64_t offset, int64_t count, double* row) {
  switch (type) {
    case DType::f32: return load_floats(base, offset, count, row);
    case DType::f16:
      return load_by_table<uint16_t>(decode_table<DType::f16>(), base, offset, count, row);
    case DType::bf16:
      return load_by_table<uint16_t>(decode_table<DType::bf16>(), base, offset, count, row);
    case DType::e4m3:
      return load_by_table<uint8_t>(decode_table<DType::e4m3>(), base, offset, count, row);
    case DType::e5m2:
      return load_by_table<uint8_t>(decode_table<DType::e5m2>(), base, offset, count, row);
  }
}

void store_row(DType type, void* base, int64_t offset, int64_t count, const double* row) {
  const NumberFormat format = number_format(type);
  const int64_t bytes = dtype_bytes(type);
  std::byte* target = static_cast<std::byte*>(base) + offset * bytes;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = encode(row[i], format);
    std::memcpy(target + i * bytes, &bits, static_cast<std::size_t>(bytes));  // little-endian host
  }
}

}  // namespace deuce::reference
