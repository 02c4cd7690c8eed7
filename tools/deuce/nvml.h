// SPDX-License-Identifier: Apache-2.0
// Clocks and driver version from NVML, whose library is looked up at run time: the tool starts and
// measures without it, and then says nothing about clocks.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "device.h"

namespace deuce::cli {

class Nvml {
 public:
  /// `bus_id`: PCI address of the device, as CUDA prints it. nullptr where NVML cannot be used.
  static std::unique_ptr<Nvml> open(const std::string& bus_id);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::optional<GpuClocks> clocks() const;
  std::string driver_version() const;

 private:
  Nvml() = default;
  template <class Function>
  Function* find(const char* name) const;

  void* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace deuce::cli
