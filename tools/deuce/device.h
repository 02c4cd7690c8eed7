// SPDX-License-Identifier: Apache-2.0
// Where a command keeps its tensors and how it times launches: host memory and a clock, or a GPU's
// memory, a captured graph and events. The one place of the tool that differs between backends.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "machine_facts.h"
#include "plan/problem.h"
#include "plan/status.h"
#include "statistics.h"

namespace deuce::cli {

using Memory = std::shared_ptr<std::byte>;

/// Clocks of a GPU at one moment.
struct GpuClocks {
  unsigned sm_mhz = 0, memory_mhz = 0;
  uint64_t throttle_reasons = 0;  // NVML's bits

  /// Slowed down by power or heat; idle and chosen clocks are no such reasons.
  bool throttled() const {
    constexpr uint64_t kPowerCap = 0x4, kSlowdown = 0x8, kHeat = 0x20 | 0x40, kPowerBrake = 0x80;
    return (throttle_reasons & (kPowerCap | kSlowdown | kHeat | kPowerBrake)) != 0;
  }
};

/// Launches that are timed again and again.
class Repeat {
 public:
  virtual ~Repeat() = default;
  /// The next launch, or the mean of a replay of all of them.
  virtual Result<Timed> sample() = 0;
};

/// Reads of a limit, taken between samples.
class ReadRoof {
 public:
  virtual ~ReadRoof() = default;
  virtual Result<double> pass() = 0;  // bytes per second
};

class Device {
 public:
  virtual ~Device() = default;
  /// Uninitialised memory, aligned to 256 bytes.
  virtual Result<Memory> allocate(std::size_t bytes) = 0;
  /// Host bytes as the backend reads them: the same memory, or a copy on the device.
  virtual Result<Memory> place(const void* host, std::size_t bytes) = 0;
  virtual Status upload(std::byte* to, const void* host, std::size_t bytes) = 0;
  virtual Status download(void* host, const std::byte* from, std::size_t bytes) = 0;
  /// Seconds from the launch's begin to its end, waited for.
  virtual Result<double> time(const std::function<Status()>& launch) = 0;
  /// `launch(i)` for i = 0 .. count - 1, over and over; what it uses must outlive the result.
  virtual Result<std::unique_ptr<Repeat>> repeat(std::size_t count,
                                                 std::function<Status(std::size_t)> launch) = 0;
  /// The roof of calls whose pointers are this device's and that read `bytes` each; nullptr where
  /// it cannot be measured.
  virtual Result<std::unique_ptr<ReadRoof>> roof(const deuce_decode_config& config,
                                                 const std::vector<deuce_decode_args>& calls,
                                                 int64_t bytes) = 0;
  /// Read bandwidth of the memory, bytes per second, measured now; 0 = it cannot be measured.
  virtual double read_roof() = 0;
  /// Bytes of the largest cache in front of its memory.
  virtual std::size_t cache_bytes() const = 0;
  virtual deuce_stream stream() const { return nullptr; }
  /// Launches keep the workspace's control part as they found it, so it is cleared once.
  virtual bool keeps_workspace() const { return false; }
  virtual std::optional<GpuFacts> gpu() const { return std::nullopt; }
  virtual std::optional<GpuClocks> clocks() const { return std::nullopt; }
};

/// The device that the backend computes on; NO_DEVICE with a sentence. An automatic choice is the
/// one that the library makes for host memory, DEUCE_BACKEND included.
Result<std::unique_ptr<Device>> open_device(Backend backend);

/// The first GPU, for one of the GPU backends. NO_DEVICE in a build without their kernels.
Result<std::unique_ptr<Device>> open_gpu(Backend backend);

}  // namespace deuce::cli
