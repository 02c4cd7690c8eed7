// SPDX-License-Identifier: Apache-2.0
// Shared-memory descriptors of wgmma for the tiles of the ring, from named fields (PTX ISA,
// "Matrix descriptor"). Used by group_stream.h; tests compare the bits.
// A tile is [half][64 keys][128 bytes], 128-byte swizzled.
#pragma once

#include <cstdint>

#include "kernel/hopper/config.h"

namespace deuce::hopper {

template <Config kConfig>
struct GroupDescriptors {
  static constexpr uint32_t kBlockBytes = 8 * 128;           // of 8 keys
  static constexpr uint32_t kHalfBytes = kTileTokens * 128;  // of 64 dims
  static constexpr int kKeySteps = kConfig.head_dim / 16;    // of QK
  static constexpr int kValueSteps = kTileTokens / 16;       // of PV

  /// leading: K, ignored; V, to the next 64 dims. stride: to the next 8 keys. Pattern 1 is the
  /// 128-byte swizzle.
  static constexpr uint64_t of(uint32_t address, uint32_t leading_bytes) {
    return (static_cast<uint64_t>(address >> 4) & 0x3fffu) |
           (static_cast<uint64_t>(leading_bytes >> 4) << 16) |
           (static_cast<uint64_t>(kBlockBytes >> 4) << 32) | (uint64_t{1} << 62);
  }
  static constexpr uint64_t keys(uint32_t address) { return of(address, 16); }
  static constexpr uint64_t values(uint32_t address) {
    return of(address, kConfig.halves() == 1 ? 16 : kHalfBytes);
  }
  /// Added for step `step`: 16 dims of K, 16 keys of V. In units of 16 bytes.
  static constexpr uint64_t key_step(int step) {
    return (static_cast<uint32_t>(step / 4) * kHalfBytes + static_cast<uint32_t>(step % 4) * 32) >>
           4;
  }
  static constexpr uint64_t value_step(int step) {
    return static_cast<uint32_t>(step) * 2 * kBlockBytes >> 4;
  }
};

}  // namespace deuce::hopper
