// SPDX-License-Identifier: Apache-2.0
// From a problem to the launch that only reads what its kernel would read. Apart from read_roof.h,
// since nvcc does not compile the sentences of Status.
#pragma once

#include "gpu/read_roof.h"
#include "plan/problem.h"
#include "plan/status.h"

namespace deuce::hopper {

/// Bytes of the memory that a tile roof's parameters point to; it is neither read nor written.
std::size_t tile_roof_workspace(const Problem& problem, int workers);
/// The launch for a call whose pointers are device memory. Cuts are those of the free scheduler,
/// whatever the problem asks for: the bytes are the same.
Status make_tile_roof(Problem problem, const Call& call, int workers, std::byte* workspace,
                      TileRoof& roof);

}  // namespace deuce::hopper
