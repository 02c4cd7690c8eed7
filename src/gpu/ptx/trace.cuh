// SPDX-License-Identifier: Apache-2.0
// What a tracer needs of the hardware: clocks, the SM's number, and a record's store.
// No "memory" clobber on purpose: a record orders nothing, and a clobber would cost a traced kernel
// up to a fifth of its speed.
#pragma once

#include <cstdint>

namespace deuce::ptx {

// mov.u64 d, %clock64;  PTX ISA, "Special Registers: %clock64"
__device__ __forceinline__ uint64_t clock64() {
  uint64_t value;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(value));
  return value;
}

// mov.u64 d, %globaltimer;  PTX ISA, "Special Registers: %globaltimer"
__device__ __forceinline__ uint64_t global_timer() {
  uint64_t value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}

// mov.u32 d, %smid;  PTX ISA, "Special Registers: %smid"
__device__ __forceinline__ uint32_t multiprocessor() {
  uint32_t value;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(value));
  return value;
}

// mov.u32 c, %clock; @p st.global.cs.v2.u32 [a], {c, w};  PTX ISA, "Data Movement: st"
// Every lane reads the clock and one stores: a branch around it would cost more than the store.
__device__ __forceinline__ void store_record(uint64_t address, uint32_t word, bool stores) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      ".reg .u32 c;\n"
      "setp.ne.u32 p, %2, 0;\n"
      "mov.u32 c, %%clock;\n"
      "@p st.global.cs.v2.u32 [%0], {c, %1};\n"
      "}" ::"l"(address),
      "r"(word), "r"(static_cast<uint32_t>(stores)));
}

}  // namespace deuce::ptx
