// SPDX-License-Identifier: Apache-2.0
// Device memory for the GPU tests, and the reason to skip when there is no usable GPU.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "gpu/device.h"

namespace deuce::test {

/// Empty when a Hopper GPU is there, else why not.
inline std::string why_no_hopper() {
  const Result<DeviceInfo> device = query_device(-1, "hopper", 9, 0);
  return device.ok() ? "" : device.status().sentence();
}

/// Skips the test without a GPU; DEUCE_REQUIRE_GPU=1 makes that a failure.
#define DEUCE_NEEDS_HOPPER()                                                                 \
  if (const std::string why = ::deuce::test::why_no_hopper(); !why.empty()) {                \
    if (std::getenv("DEUCE_REQUIRE_GPU") != nullptr) FAIL() << "a GPU is required: " << why; \
    GTEST_SKIP() << "no GPU: " << why;                                                       \
  }                                                                                          \
  static_assert(true)

/// Owning device array; a copy of a host array, or zeros.
template <class T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(const std::vector<T>& host) : size_(host.size()) {
    if (size_ == 0) return;
    check(cudaMalloc(&data_, size_ * sizeof(T)));
    check(cudaMemcpy(data_, host.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceBuffer() {
    if (data_ != nullptr) static_cast<void>(cudaFree(data_));
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept : data_(other.data_), size_(other.size_) {
    other.data_ = nullptr;
  }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  T* data() const { return static_cast<T*>(data_); }
  std::size_t size() const { return size_; }
  std::vector<T> to_host() const {
    std::vector<T> host(size_);
    if (size_ > 0) {
      check(cudaMemcpy(host.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    }
    return host;
  }
  void upload(const std::vector<T>& host) const {
    check(cudaMemcpy(data_, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  }

 private:
  static void check(cudaError_t error) {
    ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error);
  }
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace deuce::test
