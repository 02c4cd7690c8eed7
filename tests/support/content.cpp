// SPDX-License-Identifier: Apache-2.0
// Hash-based content: every number can be made without making those before it.
#include "support/content.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "reference/number_format.h"

namespace deuce::testing {
namespace {

uint64_t mix(uint64_t x) {
  x ^= x >> 30U;
  x *= 0xBF58476D1CE4E5B9U;
  x ^= x >> 27U;
  x *= 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

uint64_t key_of(uint64_t seed, uint64_t name, uint64_t tensor, int64_t head, int64_t position) {
  uint64_t key = mix(seed + 0x9E3779B97F4A7C15U);
  for (const uint64_t part :
       {name, tensor, static_cast<uint64_t>(head), static_cast<uint64_t>(position)}) {
    key = mix(key + part * 0x9E3779B97F4A7C15U + 1);
  }
  return key;
}

uint32_t poison_bits(const Poison& poison, int32_t dtype) {
  const reference::NumberFormat format = reference::number_format(DType{dtype});
  const uint32_t sign = 1U << (format.exponent_bits + format.mantissa_bits);
  const uint32_t infinity = ((1U << format.exponent_bits) - 1) << format.mantissa_bits;
  const uint32_t nan = sign - 1;
  switch (poison.fill) {
    case Poison::Fill::nan: return nan;
    case Poison::Fill::negative_nan: return sign | nan;
    case Poison::Fill::infinity: return format.has_infinity ? infinity : nan;
    case Poison::Fill::negative_infinity: return sign | (format.has_infinity ? infinity : nan);
    case Poison::Fill::largest: return format.has_infinity ? infinity - 1 : nan - 1;
    default: return 0;
  }
}

}  // namespace

int64_t element_bytes(int32_t dtype) { return dtype_bytes(DType{dtype}); }

void store_elements(int32_t dtype, std::byte* target, const float* values, int64_t count) {
  const int64_t bytes = element_bytes(dtype);
  const reference::NumberFormat format = reference::number_format(DType{dtype});
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits = std::bit_cast<uint32_t>(values[i]);
    if (dtype == DEUCE_BF16 && std::isfinite(values[i])) {
      bits = (bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U;
    } else if (dtype != DEUCE_F32) {
      bits = reference::encode(values[i], format);
    }
    std::memcpy(target + i * bytes, &bits, static_cast<std::size_t>(bytes));
  }
}

void fill_elements(uint32_t bits, int64_t bytes_each, std::byte* target, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i) {
    std::memcpy(target + i * bytes_each, &bits, static_cast<std::size_t>(bytes_each));
  }
}

void fill_poison(const Poison& poison, int32_t dtype, std::byte* target, int64_t elements) {
  const int64_t bytes = element_bytes(dtype);
  if (poison.fill == Poison::Fill::bytes) {
    std::memset(target, poison.byte, static_cast<std::size_t>(elements * bytes));
  } else if (poison.fill == Poison::Fill::random) {
    for (int64_t i = 0; i < elements * bytes; ++i) {
      target[i] = static_cast<std::byte>(mix(static_cast<uint64_t>(i) + 99) >> 17U);
    }
  } else {
    fill_elements(poison_bits(poison, dtype), bytes, target, elements);
  }
}

uint32_t prefill_bits(int32_t dtype) {
  if (dtype == DEUCE_F32) return 0x7FA5A5A5U;
  return dtype == DEUCE_F16 ? 0x7DA5U : 0x7FA5U;
}

void draw_row(uint64_t seed, uint64_t name, uint64_t tensor, int64_t head, int64_t position,
              float deviation, float* row, int64_t count) {
  uint64_t state = key_of(seed, name, tensor, head, position);
  for (int64_t i = 0; i < count; ++i) {
    state += 0x9E3779B97F4A7C15U;
    const uint64_t x = mix(state);  // four uniform numbers; their sum is close to normal
    const auto sum = static_cast<float>((x & 0xFFFFU) + ((x >> 16U) & 0xFFFFU) +
                                        ((x >> 32U) & 0xFFFFU) + (x >> 48U));
    row[i] = (sum / 65535.0F - 2.0F) * 1.7320508F * deviation;
  }
}

float draw_scale(uint64_t seed, uint64_t name, uint64_t tensor, int64_t head, int64_t position) {
  const uint64_t x = key_of(seed, name, tensor, head, position);
  return 0.25F * std::exp2(static_cast<float>(x % 4000) / 1000.0F + 0.0001F);
}

}  // namespace deuce::testing
