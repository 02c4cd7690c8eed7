// SPDX-License-Identifier: Apache-2.0
// A problem drawn from everything that the Hopper kernel takes.
#pragma once

#include "gpu/gpu_case.h"

namespace deuce::test {

CaseSpec random_spec(uint64_t seed);

}  // namespace deuce::test
