// SPDX-License-Identifier: Apache-2.0
// Tensor memory and fifth-generation tensor core instructions, one function per form.
// PTX ISA, "TensorCore 5th Generation Family Instructions". Used by sm100_machine.cuh only.
#pragma once

#include <cstdint>

namespace deuce::ptx {

// tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], columns;
__device__ __forceinline__ void tcgen05_alloc(uint32_t address, uint32_t columns) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(address),
               "r"(columns)
               : "memory");
}

// tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
__device__ __forceinline__ void tcgen05_relinquish() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
}

// tcgen05.dealloc.cta_group::1.sync.aligned.b32 column, columns;
__device__ __forceinline__ void tcgen05_dealloc(uint32_t column, uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(column), "r"(columns)
               : "memory");
}

// tcgen05.ld.sync.aligned.32x32b.x32.b32 {r0 .. r31}, [address];
__device__ __forceinline__ void tcgen05_load(uint32_t (&r)[32], uint32_t address) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11,"
      " %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29,"
      " %30, %31}, [%32];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]),
        "=r"(r[7]), "=r"(r[8]), "=r"(r[9]), "=r"(r[10]), "=r"(r[11]), "=r"(r[12]), "=r"(r[13]),
        "=r"(r[14]), "=r"(r[15]), "=r"(r[16]), "=r"(r[17]), "=r"(r[18]), "=r"(r[19]), "=r"(r[20]),
        "=r"(r[21]), "=r"(r[22]), "=r"(r[23]), "=r"(r[24]), "=r"(r[25]), "=r"(r[26]), "=r"(r[27]),
        "=r"(r[28]), "=r"(r[29]), "=r"(r[30]), "=r"(r[31])
      : "r"(address)
      : "memory");
}

// tcgen05.ld.sync.aligned.32x32b.x16.b32 {r0 .. r15}, [address];
__device__ __forceinline__ void tcgen05_load(uint32_t (&r)[16], uint32_t address) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x16.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11,"
      " %12, %13, %14, %15}, [%16];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]),
        "=r"(r[7]), "=r"(r[8]), "=r"(r[9]), "=r"(r[10]), "=r"(r[11]), "=r"(r[12]), "=r"(r[13]),
        "=r"(r[14]), "=r"(r[15])
      : "r"(address)
      : "memory");
}

// tcgen05.st.sync.aligned.32x32b.x16.b32 [address], {r0 .. r15};
__device__ __forceinline__ void tcgen05_store(uint32_t address, const uint32_t (&r)[16]) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x16.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11,"
      " %12, %13, %14, %15, %16};" ::"r"(address),
      "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]), "r"(r[6]), "r"(r[7]),
      "r"(r[8]), "r"(r[9]), "r"(r[10]), "r"(r[11]), "r"(r[12]), "r"(r[13]), "r"(r[14]), "r"(r[15])
      : "memory");
}

// tcgen05.wait::ld.sync.aligned;
__device__ __forceinline__ void tcgen05_wait_load() {
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

// tcgen05.wait::st.sync.aligned;
__device__ __forceinline__ void tcgen05_wait_store() {
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}

// tcgen05.fence::before_thread_sync;
__device__ __forceinline__ void tcgen05_fence_before() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

// tcgen05.fence::after_thread_sync;
__device__ __forceinline__ void tcgen05_fence_after() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// tcgen05.mma.cta_group::1.kind::f16 [d], a-descriptor, b-descriptor, instruction, accumulate;
__device__ __forceinline__ void tcgen05_mma_shared(uint32_t d, uint64_t a, uint64_t b,
                                                   uint32_t instruction, bool accumulate) {
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %4, 0;\n\t"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n\t}" ::"r"(d),
      "l"(a), "l"(b), "r"(instruction), "r"(static_cast<uint32_t>(accumulate))
      : "memory");
}

// tcgen05.mma.cta_group::1.kind::f16 [d], [a], b-descriptor, instruction, accumulate;
__device__ __forceinline__ void tcgen05_mma_tensor(uint32_t d, uint32_t a, uint64_t b,
                                                   uint32_t instruction, bool accumulate) {
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %4, 0;\n\t"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p;\n\t}" ::"r"(d),
      "r"(a), "l"(b), "r"(instruction), "r"(static_cast<uint32_t>(accumulate))
      : "memory");
}

// tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [barrier];
__device__ __forceinline__ void tcgen05_commit(uint32_t barrier) {
  asm volatile(
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier)
      : "memory");
}

// fma.rn.ftz.f32x2 d, a, b, c;  both halves of 64-bit registers
__device__ __forceinline__ uint64_t fma_f32x2(uint64_t a, uint64_t b, uint64_t c) {
  uint64_t d;
  asm("fma.rn.ftz.f32x2 %0, %1, %2, %3;" : "=l"(d) : "l"(a), "l"(b), "l"(c));
  return d;
}

// add.rn.ftz.f32x2 d, a, b;
__device__ __forceinline__ uint64_t add_f32x2(uint64_t a, uint64_t b) {
  uint64_t d;
  asm("add.rn.ftz.f32x2 %0, %1, %2;" : "=l"(d) : "l"(a), "l"(b));
  return d;
}

// mul.rn.ftz.f32x2 d, a, b;
__device__ __forceinline__ uint64_t mul_f32x2(uint64_t a, uint64_t b) {
  uint64_t d;
  asm("mul.rn.ftz.f32x2 %0, %1, %2;" : "=l"(d) : "l"(a), "l"(b));
  return d;
}

}  // namespace deuce::ptx
