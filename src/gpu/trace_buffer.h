// SPDX-License-Identifier: Apache-2.0
// Device memory that a traced launch fills: a header and `capacity` records for each warp.
#pragma once

#include "kernel/edges.h"
#include "trace/event.h"

namespace deuce::trace {

struct Buffer {
  SliceHeader* headers;  // [CTA, warp]
  Record* records;       // [CTA, warp, record]
  uint32_t capacity;     // records of a warp
};

}  // namespace deuce::trace
