// SPDX-License-Identifier: Apache-2.0
// What the GPU backends ask a device once, at plan creation.
#pragma once

#include <cstddef>
#include <string>

#include "deuce/deuce.h"
#include "plan/status.h"

namespace deuce {

struct DeviceInfo {
  int id = 0;  // ordinal
  int major = 0, minor = 0;
  int multiprocessors = 0;
  std::string name;
};

/// Device `id` (-1: the current one), for the backend named in a refusal. NO_DEVICE without a
/// driver or a device.
Result<DeviceInfo> query_device(int id, const char* backend);

/// The same, and NO_DEVICE for another compute capability. `minor` kAnyMinor: any.
inline constexpr int kAnyMinor = -1;
Result<DeviceInfo> query_device(int id, const char* backend, int major, int minor);

/// Clears memory of a device on the stream; hands on why there is no device.
Status clear_memory(const Result<DeviceInfo>& device, std::byte* memory, std::size_t bytes,
                    deuce_stream stream);

/// Makes a device current and restores the former one.
class DeviceScope {
 public:
  explicit DeviceScope(int id);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  const Status& status() const { return status_; }

 private:
  int former_ = -1;  // -1: nothing to restore
  Status status_;
};

}  // namespace deuce
