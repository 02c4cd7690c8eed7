// SPDX-License-Identifier: Apache-2.0
// The caller's arrays as ranges the kernel may touch: whatever lies outside is an error when read.
#pragma once

#include <vector>

#include "emulator/launch.h"
#include "plan/problem.h"

namespace deuce::emulator {

std::vector<GlobalRange> memory_ranges(const Problem& problem, const Call& call);

}  // namespace deuce::emulator
