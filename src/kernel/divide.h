// SPDX-License-Identifier: Apache-2.0
// Division by a divisor known to the host, as one wide multiplication and a shift.
// Used where a kernel divides by page size or group on its critical path: no head ratio or page
// size is a power of two by assumption, and a hardware-less integer division costs tens of cycles.
#pragma once

#include <bit>
#include <cstdint>

#include "kernel/machine.h"

namespace deuce {

/// Exact for 0 <= n < 2^31 and 1 <= divisor < 2^31: multiplier = floor(2^(31 + L) / d) + 1 with
/// L = ceil(log2 d) exceeds 2^(31 + L) / d by less than 2^L / d, so the error stays below 1 / d.
struct FastDivide {
  uint32_t multiplier = 0x80000001u;
  uint32_t shift = 31;
  int32_t divisor = 1;

  static constexpr FastDivide by(int32_t divisor) {
    const auto d = static_cast<uint32_t>(divisor);
    const auto log2_up = static_cast<uint32_t>(std::bit_width(d - 1u));
    return {static_cast<uint32_t>((uint64_t{1} << (31 + log2_up)) / d + 1), 31 + log2_up, divisor};
  }

  constexpr int32_t quotient(int32_t n) const {
    return static_cast<int32_t>((static_cast<uint64_t>(static_cast<uint32_t>(n)) * multiplier) >>
                                shift);
  }
  constexpr int32_t remainder(int32_t n) const { return n - quotient(n) * divisor; }
};
static_assert(FastDivide::by(7).quotient(2147483647) == 306783378);
static_assert(FastDivide::by(1).quotient(2147483647) == 2147483647);

}  // namespace deuce
