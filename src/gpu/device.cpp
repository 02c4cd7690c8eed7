// SPDX-License-Identifier: Apache-2.0
// Device queries through the static CUDA runtime; on a machine without a driver they return a
// status.
#include "gpu/device.h"

#include "gpu/cuda_status.h"

namespace deuce {

Result<DeviceInfo> query_device(int id, const char* backend) {
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    return Status{DEUCE_NO_DEVICE, "device_id",
                  fmt::format("backend {} needs a CUDA device: {}", backend,
                              error != cudaSuccess ? cudaGetErrorString(error) : "none found")};
  }
  DeviceInfo info;
  info.id = id;
  if (id < 0) {
    if (error = cudaGetDevice(&info.id); error != cudaSuccess) {
      return cuda_status(error, "cudaGetDevice");
    }
  }
  if (info.id >= count) {
    return Status{DEUCE_NO_DEVICE, "device_id",
                  fmt::format("device_id is {}: there are {} devices", id, count)};
  }
  cudaDeviceProp properties{};
  if (error = cudaGetDeviceProperties(&properties, info.id); error != cudaSuccess) {
    return cuda_status(error, "cudaGetDeviceProperties");
  }
  info.major = properties.major;
  info.minor = properties.minor;
  info.multiprocessors = properties.multiProcessorCount;
  info.name = properties.name;
  return info;
}

Result<DeviceInfo> query_device(int id, const char* backend, int major, int minor) {
  Result<DeviceInfo> device = query_device(id, backend);
  if (!device.ok()) return device;
  const DeviceInfo& info = device.value();
  if (info.major == major && (minor == kAnyMinor || info.minor == minor)) return device;
  return Status{DEUCE_NO_DEVICE, "device_id",
                fmt::format("device {} is {} (compute capability {}.{}): {} needs {}.{}", info.id,
                            info.name, info.major, info.minor, backend, major,
                            minor == kAnyMinor ? "x" : std::to_string(minor))};
}

Status clear_memory(const Result<DeviceInfo>& device, std::byte* memory, std::size_t bytes,
                    deuce_stream stream) {
  if (!device.ok()) return device.status();
  const DeviceScope scope(device.value().id);
  if (!scope.status().ok()) return scope.status();
  return cuda_status(cudaMemsetAsync(memory, 0, bytes, reinterpret_cast<cudaStream_t>(stream)),
                     "cudaMemsetAsync");
}

DeviceScope::DeviceScope(int id) {
  int current = 0;
  status_ = cuda_status(cudaGetDevice(&current), "cudaGetDevice");
  if (!status_.ok() || current == id) return;
  status_ = cuda_status(cudaSetDevice(id), "cudaSetDevice");
  if (status_.ok()) former_ = current;
}

DeviceScope::~DeviceScope() {
  if (former_ >= 0) static_cast<void>(cudaSetDevice(former_));
}

}  // namespace deuce
