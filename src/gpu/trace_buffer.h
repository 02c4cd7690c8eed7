// SPDX-License-Identifier: Apache-2.0
// Device memory that a traced launch fills: a header and `capacity` records for each warp.
#pragma once

#include "kernel/edges.h"
#include "trace/slice_extra.h"

namespace deuce::trace {

struct Buffer {
  SliceHeader* headers;  // [CTA, warp]
  Record* records;       // [CTA, warp, capacity + 1]: the last one is for the tracer's own cost
  uint32_t capacity;     // records of a warp
  Policy policy = Policy::keep_first;
};

}  // namespace deuce::trace
