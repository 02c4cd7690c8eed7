// SPDX-License-Identifier: Apache-2.0
// Matrix and instruction descriptors of tcgen05.mma, built from named fields (PTX ISA, "Shared
// memory descriptor" and "Instruction descriptor"). Used by mma.h; tests compare the bits.
#pragma once

#include <cstdint>

#include "kernel/blackwell/config.h"
#include "kernel/swizzle.h"

namespace deuce::blackwell {

/// Fields of a shared-memory descriptor, in bytes.
struct OperandLayout {
  uint32_t leading_bytes;  // K-major swizzled: ignored; MN-major: to the next 64 columns
  uint32_t stride_bytes;   // to the next group of 8 rows
  Swizzle swizzle;
};

/// The layout is a template argument because device code cannot name constants of another type.
template <OperandLayout kLayout>
constexpr uint64_t operand_descriptor(uint32_t address) {
  constexpr uint64_t kPattern = kLayout.swizzle == Swizzle::bytes128  ? 2
                                : kLayout.swizzle == Swizzle::bytes64 ? 4
                                : kLayout.swizzle == Swizzle::bytes32 ? 6
                                                                      : 0;
  return (static_cast<uint64_t>(address >> 4) & 0x3fffu) |
         (static_cast<uint64_t>(kLayout.leading_bytes >> 4) << 16) |
         (static_cast<uint64_t>(kLayout.stride_bytes >> 4) << 32) | (uint64_t{1} << 46) |
         (kPattern << 61);
}

enum class Major : uint8_t { k, mn };

constexpr uint32_t instruction_descriptor(bool bf16, Major b_major, int rows, int columns) {
  const uint32_t format = bf16 ? 1 : 0;
  return (1u << 4) | (format << 7) | (format << 10) | ((b_major == Major::mn ? 1u : 0u) << 16) |
         (static_cast<uint32_t>(columns / 8) << 17) | (static_cast<uint32_t>(rows / 16) << 24);
}

/// Tiles are [head_dim / 64][128 rows][128 bytes], 128-byte swizzled.
template <Config kConfig>
struct TileDescriptors {
  static constexpr uint32_t kBlockBytes = 128 * Config::kTileRows;  // of one 64-column block
  static constexpr uint32_t kGroupBytes = 1024;                     // 8 rows
  // Q and K: contiguous along the dimension that is summed over.
  static constexpr OperandLayout kRowsByDim{16, kGroupBytes, Swizzle::bytes128};
  // V: contiguous along head_dim, summed over keys.
  static constexpr OperandLayout kDimByKeys{kConfig.head_dim == 64 ? 0 : kBlockBytes, kGroupBytes,
                                            Swizzle::bytes128};
  static constexpr int kQkSteps = kConfig.head_dim / 16;
  static constexpr int kPvSteps = 128 / 16;
  static constexpr uint32_t kQk = instruction_descriptor(kConfig.bf16, Major::k, 128, 128);
  static constexpr uint32_t kPv =
      instruction_descriptor(kConfig.bf16, Major::mn, 128, kConfig.head_dim);

  /// Added to the descriptor of a tile's start for K step `step`: a start address in 16-byte units.
  static constexpr uint64_t qk_step(int step) {
    const uint32_t bytes =
        static_cast<uint32_t>(step / 4) * kBlockBytes + static_cast<uint32_t>(step % 4) * 32;
    return bytes >> 4;
  }
  static constexpr uint64_t pv_step(int step) {
    return static_cast<uint64_t>(step) * 2 * kGroupBytes >> 4;
  }
};

}  // namespace deuce::blackwell
