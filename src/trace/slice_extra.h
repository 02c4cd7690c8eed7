// SPDX-License-Identifier: Apache-2.0
// What a slice's header says in its padding: what a record costs the warp that writes it.
// Portable, for kernels and readers.
#pragma once

#include "trace/event.h"

namespace deuce::trace {

/// Records written one behind the other by which a warp measures what one costs.
inline constexpr uint32_t kSelfCostRecords = 16;

/// Cycles of kSelfCostRecords records, in the header's padding; 0 = not measured.
constexpr void set_self_cost(SliceHeader& header, uint32_t cycles) {
  header.padding[0] = static_cast<uint8_t>(cycles);
  header.padding[1] = static_cast<uint8_t>(cycles >> 8);
}
constexpr uint32_t self_cost(const SliceHeader& header) {
  return header.padding[0] + 256U * header.padding[1];
}

}  // namespace deuce::trace
