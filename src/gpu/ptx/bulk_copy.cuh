// SPDX-License-Identifier: Apache-2.0
// Asynchronous bulk copies from global to shared memory, completing on an mbarrier.
// PTX ISA, "Data Movement: cp.async.bulk" and "cp.async.bulk.tensor". One thread issues.
#pragma once

#include <cstdint>

namespace deuce::ptx {

// cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [dst], [src], bytes, [mbar];
__device__ __forceinline__ void bulk_copy(uint32_t target, const void* source, uint32_t bytes,
                                          uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(target),
      "l"(source), "r"(bytes), "r"(barrier)
      : "memory");
}

// cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
//     [dst], [map, {c0, c1, c2, c3}], [mbar];
__device__ __forceinline__ void bulk_tensor_copy(uint32_t target, const void* map,
                                                 const int32_t (&c)[4], uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(target),
      "l"(map), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(barrier)
      : "memory");
}

// cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
//     .L2::cache_hint [dst], [map, {c0, c1, c2, c3, c4}], [mbar], policy;
// The policy is "evict first", as createpolicy.fractional.L2::evict_first makes it.
__device__ __forceinline__ void bulk_tensor_copy(uint32_t target, const void* map,
                                                 const int32_t (&c)[5], uint32_t barrier) {
  constexpr uint64_t kEvictFirst = 0x12f0000000000000u;
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%2, %3, %4, %5, %6}], [%7], %8;" ::"r"(target),
      "l"(map), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(c[4]), "r"(barrier),
      "l"(kEvictFirst)
      : "memory");
}

// prefetch.tensormap [map];
__device__ __forceinline__ void prefetch_tensor_map(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

}  // namespace deuce::ptx
