// SPDX-License-Identifier: Apache-2.0
// What a tensor map says, before anybody encodes it. The GPU side hands it to the driver, the
// emulator packs it into its own 128 bytes; both accept exactly what valid() accepts.
#pragma once

#include <array>
#include <cstdint>

#include "kernel/swizzle.h"

namespace deuce {

/// A tiled view of global memory. Dimension 0 is the innermost, contiguous one.
struct TensorMapSpec {
  const void* base = nullptr;  // 16-byte aligned
  int rank = 0;                // 1 to 5
  uint32_t element_bytes = 2;
  std::array<uint64_t, 5> extent{};        // elements, 1 to 2^32
  std::array<uint64_t, 4> stride_bytes{};  // of dimension 1 and up: multiples of 16, below 2^40
  std::array<uint32_t, 5> box{};           // elements, 1 to 256
  Swizzle swizzle = Swizzle::none;
  bool bf16 = true;  // 16-bit elements: bfloat16, else half (fill only)

  constexpr uint32_t box_bytes() const {
    uint32_t bytes = element_bytes;
    for (int d = 0; d < rank; ++d) bytes *= box[d];
    return bytes;
  }
  /// The rule that is broken, as a sentence without a full stop, or nullptr.
  constexpr const char* fault() const {
    if (rank < 1 || rank > 5) return "rank is not 1 to 5";
    if (element_bytes != 1 && element_bytes != 2 && element_bytes != 4) {
      return "element size is not 1, 2 or 4 bytes";
    }
    for (int d = 0; d < rank; ++d) {
      if (extent[d] < 1 || extent[d] > (uint64_t{1} << 32)) return "an extent is not 1 to 2^32";
      if (box[d] < 1 || box[d] > 256) return "a box dimension is not 1 to 256";
      if (d == 0) continue;
      if (stride_bytes[d - 1] % 16 != 0) return "a stride is not a multiple of 16 bytes";
      if (stride_bytes[d - 1] >= (uint64_t{1} << 40)) return "a stride is not below 2^40 bytes";
    }
    if ((box[0] * element_bytes) % 16 != 0) return "the inner box is not a multiple of 16 bytes";
    if (swizzle != Swizzle::none && box[0] * element_bytes > span_bytes(swizzle)) {
      return "the inner box is wider than the swizzle span";
    }
    return nullptr;
  }
};

}  // namespace deuce
