// SPDX-License-Identifier: Apache-2.0
// Memory instructions of sm_90: global and shared accesses, device-scope atomics, fences.
// Used by the machines only. Everything that orders or touches memory is volatile with a "memory"
// clobber, so the compiler never moves an access across it.
#pragma once

#include <cstdint>

namespace deuce::ptx {

/// 32-bit address in the shared window, as shared-memory instructions take it.
__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// atom.acq_rel.gpu.global.add.u32 d, [a], b;
// PTX ISA, "Parallel Synchronization and Communication Instructions: atom"
__device__ __forceinline__ uint32_t atom_add_acq_rel(uint32_t* address, uint32_t value) {
  uint32_t old;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(address), "r"(value)
               : "memory");
  return old;
}

// prefetch.global.L2 [a];  PTX ISA, "Data Movement: prefetch"
__device__ __forceinline__ void prefetch_l2(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(address)));
}

// ld.acquire.gpu.global.u32 d, [a];  PTX ISA, "Data Movement: ld"
__device__ __forceinline__ uint32_t load_acquire(const uint32_t* address) {
  uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}

// st.release.gpu.global.u32 [a], b;  PTX ISA, "Data Movement: st"
__device__ __forceinline__ void store_release(uint32_t* address, uint32_t value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

// atom.acq_rel.gpu.global.cas.b32 d, [a], 0, 1;  true for the thread that changed it. Device scope
// although the word lies in host memory: a GPU without native host atomics has no wider one.
__device__ __forceinline__ bool claim(uint32_t* address) {
  uint32_t old;
  asm volatile("atom.acq_rel.gpu.global.cas.b32 %0, [%1], 0, 1;"
               : "=r"(old)
               : "l"(address)
               : "memory");
  return old == 0;
}

// st.release.sys.global.u32 [a], b;
__device__ __forceinline__ void store_release_system(uint32_t* address, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

// fence.proxy.async.shared::cta;  PTX ISA, "membar / fence"
__device__ __forceinline__ void fence_proxy_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace deuce::ptx
