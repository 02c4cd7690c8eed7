// SPDX-License-Identifier: Apache-2.0
// Shared-memory swizzle patterns: the only place that knows the XOR.
// Tiles written by tensor copies, descriptors and whoever zeroes or reads a tile by hand use these.
// The pattern is a function of the shared address, so a tile must start at a multiple of the
// period.
#pragma once

#include <cstdint>

namespace deuce {

enum class Swizzle : uint8_t { none, bytes32, bytes64, bytes128 };

/// Bytes of one row of a swizzled tile.
constexpr uint32_t span_bytes(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::bytes32: return 32;
    case Swizzle::bytes64: return 64;
    case Swizzle::bytes128: return 128;
    case Swizzle::none: break;
  }
  return 16;
}

/// After how many bytes of shared memory the pattern repeats.
constexpr uint32_t period_bytes(Swizzle swizzle) { return 8 * span_bytes(swizzle); }

/// Where the byte of unswizzled address `address` really lies: the 16-byte chunk index is XORed
/// with the row index (address bits 7 and up).
constexpr uint32_t swizzled(Swizzle swizzle, uint32_t address) {
  switch (swizzle) {
    case Swizzle::bytes32: return address ^ ((address >> 3) & 0x10u);
    case Swizzle::bytes64: return address ^ ((address >> 3) & 0x30u);
    case Swizzle::bytes128: return address ^ ((address >> 3) & 0x70u);
    case Swizzle::none: break;
  }
  return address;
}

}  // namespace deuce
