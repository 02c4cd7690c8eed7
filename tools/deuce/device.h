// SPDX-License-Identifier: Apache-2.0
// Where a command keeps its tensors and how it times a launch: host memory and a clock, or a GPU's.
// The one place of the tool that differs between backends.
#pragma once

#include <functional>
#include <memory>

#include "plan/problem.h"
#include "plan/status.h"

namespace deuce::cli {

using Memory = std::shared_ptr<std::byte>;

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
  /// Read bandwidth of the device, bytes per second, measured now; 0 = it cannot be measured.
  virtual double read_roof() = 0;
  /// The same by one short pass, to be taken between samples; the first call may allocate.
  virtual double roof_pass() = 0;
  /// Bytes of the largest cache in front of its memory.
  virtual std::size_t cache_bytes() const = 0;
  virtual deuce_stream stream() const { return nullptr; }
};

/// The device that the backend computes on; NO_DEVICE or UNSUPPORTED with a sentence.
Result<std::unique_ptr<Device>> open_device(Backend backend);

}  // namespace deuce::cli
