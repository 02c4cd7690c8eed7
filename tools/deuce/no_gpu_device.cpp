// SPDX-License-Identifier: Apache-2.0
// Stands in for gpu_device.cpp in a build without the GPU kernels.
#include "device.h"
#include "plan/names.h"

namespace deuce::cli {

Result<std::unique_ptr<Device>> open_gpu(Backend backend) {
  return Status(DEUCE_NO_DEVICE, "backend",
                fmt::format("backend {}: this build has no GPU kernels", name_of(backend)));
}

}  // namespace deuce::cli
