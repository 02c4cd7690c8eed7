// SPDX-License-Identifier: Apache-2.0
// setmaxnreg: registers move between warpgroups. PTX ISA, "Miscellaneous Instructions: setmaxnreg".
#pragma once

namespace deuce::ptx {

// setmaxnreg.inc.sync.aligned.u32 count;
template <int kCount>
__device__ __forceinline__ void setmaxnreg_increase() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount) : "memory");
}

// setmaxnreg.dec.sync.aligned.u32 count;
template <int kCount>
__device__ __forceinline__ void setmaxnreg_decrease() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount) : "memory");
}

}  // namespace deuce::ptx
