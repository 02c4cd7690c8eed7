// SPDX-License-Identifier: Apache-2.0
// What CUTLASS's encoders need to run on the host, and where their tensors have their elements.
// Included before any of CUTLASS's headers.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "emulator/mma.h"

namespace deuce::test {
alignas(1024) inline unsigned char shared_memory[232448];  // stands for a block's shared memory
}

// CUTLASS turns pointers into shared addresses by this intrinsic, which exists in device code only.
#define CUTE_CVTA_GENERIC_TO_SHARED_ACTIVATED 1
inline std::size_t __cvta_generic_to_shared(const void* pointer) {
  return static_cast<std::size_t>(static_cast<const unsigned char*>(pointer) -
                                  deuce::test::shared_memory);
}

namespace deuce::test {

/// Shared address of an element of one of CUTLASS's tensors.
uint32_t address_of(const auto& element) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(&element));
}

/// One K step (16 elements) of an operand: every 8 elements where the emulator looks for them.
void expect_same_places(const auto& step, const emulator::SharedOperand& operand, bool mn_major,
                        int rows) {
  ASSERT_EQ(operand.fault, nullptr);
  for (int row = 0; row < rows; ++row) {
    for (int k = 0; k < 16; ++k) {
      const auto contiguous = static_cast<uint32_t>(mn_major ? row : k);
      const auto across = static_cast<uint32_t>(mn_major ? k : row);
      const uint32_t chunk = emulator::chunk_address(operand, mn_major, across, contiguous / 8);
      ASSERT_EQ(address_of(step(row, k)), chunk + contiguous % 8 * 2) << row << ", " << k;
    }
  }
}

}  // namespace deuce::test
