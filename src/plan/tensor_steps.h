// SPDX-License-Identifier: Apache-2.0
// Axes that a tensor takes steps along, for the checks and tensor maps of both GPU kernels: a
// stride that is never stepped over may be anything, yet a map must hold a legal one.
#pragma once

#include <cstdint>

#include "plan/tensor_map_spec.h"

namespace deuce {

inline constexpr int64_t kMaxExtent = int64_t{1} << 32;  // of a dimension of a tensor map

/// How many elements each axis of a tensor has; one = its stride is never stepped over.
struct Extents {
  int64_t count[3];
};

/// Puts `bytes` where a map's stride is never stepped over.
inline void replace_idle_strides(TensorMapSpec& map, uint64_t bytes) {
  for (int d = 1; d < map.rank; ++d) {
    if (map.extent[d] == 1) map.stride_bytes[d - 1] = bytes;
  }
}

}  // namespace deuce
