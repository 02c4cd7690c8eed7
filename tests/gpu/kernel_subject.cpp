// SPDX-License-Identifier: Apache-2.0
// Makes the Hopper kernel the subject of the property tests of tests/kernel: the same cases, frames
// and bounds as every other backend, on device memory.
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <vector>

#include "gpu/device_buffer.h"
#include "support/subject.h"

namespace deuce::testing {
namespace {

/// Copies end where the host's buffer ends, at the alignment of its address: an access behind it is
/// found by compute-sanitizer, and what the kernel may assume of a pointer is what the host's has.
class CudaMemory final : public DeviceMemory {
 public:
  std::byte* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    must(cudaMalloc(&memory, bytes == 0 ? 1 : bytes));
    allocated_.push_back(memory);
    return static_cast<std::byte*>(memory);
  }
  void upload_to(std::byte* to, const std::byte* from, std::size_t bytes) override {
    must(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
  }
  std::byte* upload(const std::byte* from, std::size_t bytes) override {
    const std::size_t lead = reinterpret_cast<std::uintptr_t>(from) % kAlignment;
    std::byte* copy = allocate(lead + bytes) + lead;
    upload_to(copy, from, bytes);
    return copy;
  }
  void download(std::byte* to, const std::byte* from, std::size_t bytes) override {
    must(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
  }
  void release_all() override {
    for (void* memory : allocated_) static_cast<void>(cudaFree(memory));
    allocated_.clear();
  }

 private:
  static constexpr std::size_t kAlignment = 256;  // cudaMalloc's

  static void must(cudaError_t error) {
    if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
  }
  std::vector<void*> allocated_;
};

const bool registered = [] {
  static CudaMemory memory;
  device_subjects().push_back({.name = "hopper",
                               .backend = DEUCE_BACKEND_HOPPER,
                               .device = &memory,
                               .why_missing = test::why_no_hopper});
  return true;
}();

}  // namespace
}  // namespace deuce::testing
