// SPDX-License-Identifier: Apache-2.0
// The conversions that the reference rests on, against values written out from the formats.
#include "reference/number_format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace deuce::reference {
namespace {

constexpr DType kAllTypes[] = {DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2};

TEST(NumberFormat, EveryNarrowPatternSurvivesARoundTrip) {
  for (const DType type : kAllTypes) {
    if (type == DType::f32) continue;
    const NumberFormat format = number_format(type);
    for (uint32_t bits = 0; bits < (1U << (8 * dtype_bytes(type))); ++bits) {
      const double value = decode(bits, format);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(decode(encode(value, format), format)));
      } else {
        ASSERT_EQ(encode(value, format), bits) << "type " << static_cast<int>(type);
      }
    }
  }
}

TEST(NumberFormat, DecodesTheCornersOfEachFormat) {
  EXPECT_EQ(decode(0x7EU, number_format(DType::e4m3)), 448);
  EXPECT_TRUE(std::isnan(decode(0x7FU, number_format(DType::e4m3))));
  EXPECT_TRUE(std::isnan(decode(0xFFU, number_format(DType::e4m3))));
  EXPECT_EQ(decode(0x01U, number_format(DType::e4m3)), std::ldexp(1, -9));
  EXPECT_EQ(decode(0x78U, number_format(DType::e4m3)), 256);
  EXPECT_EQ(decode(0x7BU, number_format(DType::e5m2)), 57344);
  EXPECT_TRUE(std::isinf(decode(0xFCU, number_format(DType::e5m2))));
  EXPECT_TRUE(std::isnan(decode(0x7DU, number_format(DType::e5m2))));
  EXPECT_EQ(decode(0x01U, number_format(DType::e5m2)), std::ldexp(1, -16));
  EXPECT_EQ(decode(0x7BFFU, number_format(DType::f16)), 65504);
  EXPECT_EQ(decode(0x0001U, number_format(DType::f16)), std::ldexp(1, -24));
  EXPECT_EQ(decode(0x3F80U, number_format(DType::bf16)), 1);
  EXPECT_EQ(decode(0xC0490FDBU, number_format(DType::f32)), -3.14159274101257324219);
}

TEST(NumberFormat, RoundsToNearestWithTiesToEven) {
  const NumberFormat bf16 = number_format(DType::bf16);
  const double ulp = std::ldexp(1, -7);
  EXPECT_EQ(encode(1 + ulp / 2, bf16), 0x3F80U);               // tie: even is below
  EXPECT_EQ(encode(1 + 3 * ulp / 2, bf16), 0x3F82U);           // tie: even is above
  EXPECT_EQ(encode(1 + ulp / 2 + 1e-15, bf16), 0x3F81U);       // no rounding by way of float
  EXPECT_EQ(encode(std::nextafter(2.0, 0.0), bf16), 0x4000U);  // carry into the exponent
  EXPECT_EQ(encode(1e39, bf16), 0x7F80U);
  EXPECT_EQ(encode(65519.99, number_format(DType::f16)), 0x7BFFU);
  EXPECT_EQ(encode(-65520, number_format(DType::f16)), 0xFC00U);  // half way to the next power
  EXPECT_EQ(encode(std::ldexp(1, -25), number_format(DType::f16)), 0U);
  EXPECT_EQ(encode(std::ldexp(1.5, -25), number_format(DType::f16)), 1U);
  EXPECT_EQ(encode(-0.0, number_format(DType::f16)), 0x8000U);
}

TEST(NumberFormat, FloatsRoundLikeTheHardware) {
  uint32_t state = 12345;
  for (int i = 0; i < 100000; ++i) {
    state = state * 1664525U + 1013904223U;
    const double value = std::ldexp(static_cast<int32_t>(state) + 1.0 / (1 + (state & 1023U)),
                                    static_cast<int>(state >> 7U) % 300 - 190);
    const auto expected = static_cast<float>(value);
    ASSERT_EQ(static_cast<float>(
                  decode(encode(value, number_format(DType::f32)), number_format(DType::f32))),
              expected);
  }
}

}  // namespace
}  // namespace deuce::reference
