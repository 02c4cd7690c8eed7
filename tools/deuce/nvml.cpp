// SPDX-License-Identifier: Apache-2.0
// The few calls of NVML that results need. Source: "NVML API Reference Guide", nvmlClockType_t and
// nvmlReturn_t; every function returns 0 on success.
#include "nvml.h"

#include <dlfcn.h>

#include <array>

namespace deuce::cli {
namespace {

constexpr int kSuccess = 0, kClockSm = 1, kClockMemory = 2;

}  // namespace

template <class Function>
Function* Nvml::find(const char* name) const {
  return reinterpret_cast<Function*>(::dlsym(library_, name));
}

std::unique_ptr<Nvml> Nvml::open(const std::string& bus_id) {
  std::unique_ptr<Nvml> nvml(new Nvml);
  nvml->library_ = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (nvml->library_ == nullptr) return nullptr;
  auto* init = nvml->find<int()>("nvmlInit_v2");
  auto* by_bus = nvml->find<int(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
  if (init == nullptr || by_bus == nullptr || init() != kSuccess) return nullptr;
  if (by_bus(bus_id.c_str(), &nvml->device_) != kSuccess) return nullptr;
  return nvml;
}

Nvml::~Nvml() {
  if (library_ == nullptr) return;
  if (auto* shutdown = find<int()>("nvmlShutdown"); shutdown != nullptr) shutdown();
  ::dlclose(library_);
}

std::optional<GpuClocks> Nvml::clocks() const {
  auto* clock = find<int(void*, int, unsigned*)>("nvmlDeviceGetClockInfo");
  auto* reasons =
      find<int(void*, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons");
  GpuClocks clocks;
  unsigned long long bits = 0;
  if (clock == nullptr || clock(device_, kClockSm, &clocks.sm_mhz) != kSuccess ||
      clock(device_, kClockMemory, &clocks.memory_mhz) != kSuccess) {
    return std::nullopt;
  }
  if (reasons != nullptr && reasons(device_, &bits) == kSuccess) clocks.throttle_reasons = bits;
  return clocks;
}

std::string Nvml::driver_version() const {
  auto* version = find<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
  std::array<char, 96> text{};
  if (version == nullptr || version(text.data(), text.size()) != kSuccess) return "";
  return text.data();
}

}  // namespace deuce::cli
