// SPDX-License-Identifier: Apache-2.0
// The caller's arrays as ranges the kernel may touch: whatever lies outside is an error when read.
#pragma once

#include <vector>

#include "emulator/launch.h"
#include "plan/problem.h"

namespace deuce::emulator {

/// Three axes of runs of `inner` elements, `stride` elements apart: no byte between them belongs.
GlobalRange for_strides(const char* name, const void* base, const int64_t (&size)[3],
                        const int64_t (&stride)[3], int64_t inner, int element_bytes,
                        bool writable);

std::vector<GlobalRange> memory_ranges(const Problem& problem, const Call& call);

}  // namespace deuce::emulator
