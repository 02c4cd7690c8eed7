// SPDX-License-Identifier: Apache-2.0
// The fault word of a plan in memory that host and device share. Used by the GPU backends; the host
// reads it without synchronising, so it may see a fault one call late, never half of one.
#pragma once

#include <cuda_runtime_api.h>

#include <cstring>

#include "gpu/cuda_status.h"
#include "kernel/fault_word.h"

namespace deuce {

/// Pinned host memory that the device can write; read without synchronising.
class MappedFaultWord {
 public:
  MappedFaultWord() = default;
  ~MappedFaultWord() {
    if (host_ != nullptr) static_cast<void>(cudaFreeHost(host_));
  }
  MappedFaultWord(const MappedFaultWord&) = delete;
  MappedFaultWord& operator=(const MappedFaultWord&) = delete;

  Status allocate() {
    void* memory = nullptr;
    cudaError_t error =
        cudaHostAlloc(&memory, sizeof(FaultWord), cudaHostAllocMapped | cudaHostAllocPortable);
    if (error != cudaSuccess) return cuda_status(error, "cudaHostAlloc");
    host_ = static_cast<FaultWord*>(memory);
    std::memset(static_cast<void*>(host_), 0, sizeof(FaultWord));
    void* mapped = nullptr;
    error = cudaHostGetDevicePointer(&mapped, memory, 0);
    device_ = static_cast<FaultWord*>(mapped);
    return cuda_status(error, "cudaHostGetDevicePointer");
  }

  FaultWord* device() const { return device_; }

  bool take(deuce_fault& fault) const {
    const uint32_t code = __atomic_load_n(&host_->code, __ATOMIC_ACQUIRE);
    if (code == 0) return false;
    const FaultRecord& record = host_->record;
    fault.code = static_cast<int32_t>(code);
    fault.request = record.request;
    fault.column = record.column;
    fault.value = record.value;
    fault.lowest = record.lowest;
    fault.highest = record.highest;
    fault.tag = record.tag;
    __atomic_store_n(&host_->code, 0U, __ATOMIC_RELAXED);
    __atomic_store_n(&host_->claimed, 0U, __ATOMIC_RELEASE);
    return true;
  }

 private:
  FaultWord* host_ = nullptr;
  FaultWord* device_ = nullptr;
};

}  // namespace deuce
