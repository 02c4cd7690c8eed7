// SPDX-License-Identifier: Apache-2.0
// What the tensors of a test hold: numbers that follow from a seed and logical coordinates alone,
// and element conversions for every dtype of the API.
#pragma once

#include <cstdint>

#include "deuce/deuce.h"
#include "support/instance.h"

namespace deuce::testing {

int64_t element_bytes(int32_t dtype);

/// Writes `count` elements of `dtype`, rounded to nearest.
void store_elements(int32_t dtype, std::byte* target, const float* values, int64_t count);

/// Fills memory with a poison pattern of the element type.
void fill_poison(const Poison& poison, int32_t dtype, std::byte* target, int64_t elements);

/// Fills memory with one element pattern.
void fill_elements(uint32_t bits, int64_t bytes_each, std::byte* target, int64_t elements);

/// The prefill of results: a NaN that no arithmetic produces.
uint32_t prefill_bits(int32_t dtype);

/// About normally distributed numbers, the same for the same coordinates.
void draw_row(uint64_t seed, uint64_t name, uint64_t tensor, int64_t head, int64_t position,
              float deviation, float* row, int64_t count);

/// A factor in 0.25 .. 4 that is not a power of two.
float draw_scale(uint64_t seed, uint64_t name, uint64_t tensor, int64_t head, int64_t position);

}  // namespace deuce::testing
