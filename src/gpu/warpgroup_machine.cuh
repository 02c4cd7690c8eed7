// SPDX-License-Identifier: Apache-2.0
// The Hopper machine with the products of warpgroups: kernel/hopper/machine.h in sm_90a
// instructions. Apart from sm90_machine.cuh, on which the Blackwell machine is built.
#pragma once

#include "gpu/ptx/wgmma_mma.cuh"
#include "gpu/sm90_machine.cuh"
#include "kernel/hopper/machine.h"

namespace deuce {

template <class Tracer>
class TracedWarpgroupMachine : public TracedSm90Machine<Tracer> {
 public:
  using TracedSm90Machine<Tracer>::TracedSm90Machine;

  template <class T, bool kTransposed, int kTiles>
  DEUCE_DEVICE void wgmma(float (&d)[kTiles][4], const uint32_t (&a)[4], uint64_t b,
                          bool accumulate) const {
    static_assert(kTiles == 8 || kTiles == 16);
    constexpr const char* kType = std::same_as<T, Bf16> ? ptx::kWgmmaBf16 : ptx::kWgmmaHalf;
    if constexpr (kTiles == 8) {
      ptx::wgmma_m64n64k16<kType, kTransposed>(d, a, b, accumulate);
    } else {
      ptx::wgmma_m64n128k16<kType, kTransposed>(d, a, b, accumulate);
    }
  }
  template <int kTiles>
  DEUCE_DEVICE void wgmma_pin(float (&d)[kTiles][4]) const {
    DEUCE_UNROLL
    for (int j = 0; j < kTiles; ++j) {
      DEUCE_UNROLL
      for (int e = 0; e < 4; ++e) ptx::pin(d[j][e]);
    }
  }
  DEUCE_DEVICE uint32_t shared_address(const void* at) const { return ptx::shared_address(at); }
};

using Sm90WarpgroupMachine = TracedWarpgroupMachine<trace::NullTracer>;
static_assert(WarpgroupMachine<Sm90WarpgroupMachine>);

}  // namespace deuce
