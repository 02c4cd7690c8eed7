// SPDX-License-Identifier: Apache-2.0
// Host memory for cpu, reference and emulator.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "cpu/roof.h"
#include "device.h"

namespace deuce::cli {
namespace {

constexpr double kRoofSeconds = 0.6;

class HostDevice final : public Device {
 public:
  Result<Memory> allocate(std::size_t bytes) override {
    // Ordinary pages, as the buffer of the read roof has and most callers' caches have.
    constexpr std::size_t kAlignment = 256;
    const std::size_t rounded =
        (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
    if (memory == nullptr) {
      return Status(DEUCE_RUNTIME_ERROR, "", fmt::format("no memory for {} bytes", bytes));
    }
    return Memory(memory, [](std::byte* block) { std::free(block); });
  }

  Result<Memory> place(const void* host, std::size_t) override {
    // Borrowed: the caller keeps it, and the library only reads it.
    return Memory(static_cast<std::byte*>(const_cast<void*>(host)), [](std::byte*) {});
  }

  Status upload(std::byte* to, const void* host, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, host, bytes);
    return {};
  }

  Status download(void* host, const std::byte* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(host, from, bytes);
    return {};
  }

  Result<double> time(const std::function<Status()>& launch) override {
    const auto begin = std::chrono::steady_clock::now();
    if (Status status = launch(); !status.ok()) return status;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  double read_roof() override {
    return cpu::measure_roof(/*threads=*/0, kRoofSeconds).read_bytes.median;
  }
  double roof_pass() override {
    if (roof_ == nullptr) roof_ = std::make_unique<cpu::ReadRoof>();
    return roof_->pass();
  }
  std::size_t cache_bytes() const override { return cpu::last_level_cache_bytes(); }

 private:
  std::unique_ptr<cpu::ReadRoof> roof_;
};

}  // namespace

Result<std::unique_ptr<Device>> open_device(Backend backend) {
  if (backend == Backend::hopper || backend == Backend::blackwell) {
    return unsupported("backend", "backend {} is not in this build of the tool",
                       backend == Backend::hopper ? "hopper" : "blackwell");
  }
  return std::unique_ptr<Device>(std::make_unique<HostDevice>());
}

}  // namespace deuce::cli
