// SPDX-License-Identifier: Apache-2.0
// griddepcontrol: grids of one stream that overlap. PTX ISA, "Parallel Synchronization and
// Communication Instructions: griddepcontrol".
#pragma once

namespace deuce::ptx {

__device__ __forceinline__ void griddepcontrol_wait() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

__device__ __forceinline__ void griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace deuce::ptx
