// SPDX-License-Identifier: Apache-2.0
// Host memory for cpu, reference and emulator.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <span>

#include "api/environment.h"
#include "cpu/roof.h"
#include "device.h"

namespace deuce::cli {
namespace {

constexpr double kRoofSeconds = 0.6;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// One launch at a time, in turn.
class HostRepeat final : public Repeat {
 public:
  HostRepeat(std::size_t count, std::function<Status(std::size_t)> launch)
      : count_(count), launch_(std::move(launch)) {}
  Result<Timed> sample() override {
    const auto begin = Clock::now();
    if (Status status = launch_(next_++ % count_); !status.ok()) return status;
    const double seconds = seconds_since(begin);
    return Timed{seconds, seconds};
  }

 private:
  std::size_t count_, next_ = 0;
  std::function<Status(std::size_t)> launch_;
};

/// The pool of pages, or rows, of K or V that a call may read. Workloads lay it out densely.
std::span<const std::byte> pool_of(const deuce_decode_args& call, const void* pool,
                                   const int64_t* stride, int32_t type) {
  const int64_t pages = call.num_pages > 0 ? call.num_pages : call.batch;
  const int64_t bytes = pages * stride[0] * dtype_bytes(static_cast<DType>(type));
  return {static_cast<const std::byte*>(pool),
          static_cast<std::size_t>(std::max<int64_t>(0, bytes))};
}

/// All threads stream memory beyond the last-level cache once.
class HostRoof final : public ReadRoof {
 public:
  explicit HostRoof(std::shared_ptr<cpu::ReadRoof> roof) : roof_(std::move(roof)) {
    roof_->pass();  // wakes the threads
  }
  Result<double> pass() override { return roof_->pass(); }

 private:
  std::shared_ptr<cpu::ReadRoof> roof_;
};

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
    const auto begin = Clock::now();
    if (Status status = launch(); !status.ok()) return status;
    return seconds_since(begin);
  }

  Result<std::unique_ptr<Repeat>> repeat(std::size_t count,
                                         std::function<Status(std::size_t)> launch) override {
    return std::unique_ptr<Repeat>(std::make_unique<HostRepeat>(count, std::move(launch)));
  }

  /// Over the caches themselves, because other memory of the process may be faster or slower; over
  /// a buffer where they are too small.
  Result<std::unique_ptr<ReadRoof>> roof(const deuce_decode_config& config,
                                         const std::vector<deuce_decode_args>& calls,
                                         int64_t) override {
    std::vector<std::span<const std::byte>> pools;
    std::size_t bytes = 0;
    for (const deuce_decode_args& call : calls) {
      if (bytes >= cpu::roof_bytes()) break;
      pools.push_back(pool_of(call, call.k, call.k_stride, config.kv_dtype));
      pools.push_back(pool_of(call, call.v, call.v_stride, config.kv_dtype));
      bytes += pools[pools.size() - 2].size() + pools.back().size();
    }
    if (bytes >= 3 * cache_bytes()) {
      return std::unique_ptr<ReadRoof>(
          std::make_unique<HostRoof>(std::make_shared<cpu::ReadRoof>(pools)));
    }
    if (buffer_roof_ == nullptr) buffer_roof_ = std::make_shared<cpu::ReadRoof>();
    return std::unique_ptr<ReadRoof>(std::make_unique<HostRoof>(buffer_roof_));
  }

  double read_roof() override {
    return cpu::measure_roof(/*threads=*/0, kRoofSeconds).read_bytes.median;
  }
  std::size_t cache_bytes() const override { return cpu::last_level_cache_bytes(); }

 private:
  std::shared_ptr<cpu::ReadRoof> buffer_roof_;  // serves every point
};

}  // namespace

Result<std::unique_ptr<Device>> open_device(Backend backend) {
  deuce_decode_config config;
  deuce_decode_config_init(&config);
  config.backend = static_cast<int32_t>(backend);
  if (const auto changes = apply_environment(config); !changes.ok()) return changes.status();
  const auto chosen = static_cast<Backend>(config.backend);
  if (chosen == Backend::hopper || chosen == Backend::blackwell) return open_gpu(chosen);
  return std::unique_ptr<Device>(std::make_unique<HostDevice>());
}

}  // namespace deuce::cli
