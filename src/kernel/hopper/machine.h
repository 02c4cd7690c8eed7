// SPDX-License-Identifier: Apache-2.0
// Operations of the Hopper machine that multiply by whole warpgroups, with their contract. What
// kernel/machine.h says of words like "warpgroup" and "each thread" holds here.
#pragma once

#include "kernel/machine.h"

namespace deuce {

template <class M>
concept WarpgroupMachine = HopperMachine<M> &&
    requires(M machine, const uint32_t (&a)[4], float (&d64)[8][4], float (&d128)[16][4],
             uint64_t descriptor, const void* tile) {
  // Warpgroup. d (+)= A B for 64 x N x 16, N = 64 or 128: each warp has its 16 rows of d and A in
  // registers, fragments as of mma_16x8x16; B lies in shared memory as its descriptor says,
  // contiguous along K or (kTransposed) along N. accumulate = false overwrites d. Asynchronous, in
  // issue order on one accumulator; reads B by the async proxy. d and A stay untouched from
  // wgmma_fence until a wait.
  machine.template wgmma<Bf16, false>(d64, a, descriptor, true);
  machine.template wgmma<Half, true>(d128, a, descriptor, true);
  // Each thread. No access to d moves across this point: behind the wait for its MMAs before d is
  // read, and before the fence when d was written. No MMA on d may be running.
  machine.wgmma_pin(d64);
  { machine.shared_address(tile) } -> std::same_as<uint32_t>;  // for descriptors
};

}  // namespace deuce
