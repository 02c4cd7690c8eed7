// SPDX-License-Identifier: Apache-2.0
// What the plans of all GPU backends share: the device, the fault word, clearing the workspace.
// Used by *_backend.cpp, which add the choice of a kernel and its launch. Must hold: run()
// allocates and synchronises nothing and asks the device nothing, so it can be captured in a graph.
#pragma once

#include <memory>
#include <string>

#include "gpu/cuda_status.h"
#include "gpu/device.h"
#include "gpu/mapped_fault_word.h"
#include "plan/backend.h"

namespace deuce {

class GpuPlan : public BackendPlan {
 public:
  bool take_fault(deuce_fault& fault) const final { return fault_.take(fault); }

 protected:
  GpuPlan(const Problem& problem, DeviceInfo device)
      : problem_(problem), device_(std::move(device)) {}

  /// `allow_shared_memory` sets the kernel's attribute on the plan's device.
  Status prepare(cudaError_t (*allow_shared_memory)()) {
    const DeviceScope scope(device_.id);
    if (!scope.status().ok()) return scope.status();
    Status bad = cuda_status(allow_shared_memory(), "cudaFuncSetAttribute");
    return bad.ok() ? fault_.allocate() : bad;
  }

  /// Zeros the control part of a workspace, unless it was kept. The plan's device is current.
  Status clear_control(std::byte* workspace, cudaStream_t stream) const {
    if ((problem_.flags & DEUCE_FLAG_WORKSPACE_KEPT) != 0) return {};
    return cuda_status(cudaMemsetAsync(workspace, 0, this->workspace().control_bytes, stream),
                       "cudaMemsetAsync");
  }

  FaultWord* fault_word() const { return fault_.device(); }

  Problem problem_;
  DeviceInfo device_;

 private:
  MappedFaultWord fault_;
};

/// A prepared Plan on the device, or why there is none.
template <class Plan>
Result<std::unique_ptr<BackendPlan>> create_gpu_plan(const Problem& problem,
                                                     const Result<DeviceInfo>& device) {
  if (!device.ok()) return device.status();
  auto plan = std::make_unique<Plan>(problem, device.value());
  if (Status bad = plan->prepare(); !bad.ok()) return bad;
  return std::unique_ptr<BackendPlan>(std::move(plan));
}

}  // namespace deuce
