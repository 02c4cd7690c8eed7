// SPDX-License-Identifier: Apache-2.0
// Large tensors of reproducible random numbers, at memory speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plan/problem.h"

namespace deuce::cli {

/// Fills with multiples of 1/128 in [-1, 1), exact in every type but fp8, which rounds them.
/// Element i depends on seed and i only, whatever the number of threads.
void fill_random(DType type, std::span<std::byte> bytes, uint64_t seed);

}  // namespace deuce::cli
