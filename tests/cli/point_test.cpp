// SPDX-License-Identifier: Apache-2.0
// A benchmark point on a device that misbehaves while it is timed must say so.
#include <gtest/gtest.h>

#include <cstring>

#include "bench_point.h"
#include "device.h"

namespace deuce::cli {
namespace {

/// The host, but: timing may change what the launches read, and clocks may be held down.
class BadHost : public Device {
 public:
  BadHost() : host_(std::move(open_device(Backend::cpu).value())) {}
  bool changes_inputs = false, throttles = false;

  Result<Memory> allocate(std::size_t bytes) override { return host_->allocate(bytes); }
  Result<Memory> place(const void* from, std::size_t bytes) override {
    Result<Memory> memory = host_->place(from, bytes);
    if (memory.ok() && first_ == nullptr) {  // K
      first_ = memory.value();
      first_bytes_ = bytes;
    }
    return memory;
  }
  Status upload(std::byte* to, const void* from, std::size_t bytes) override {
    return host_->upload(to, from, bytes);
  }
  Status download(void* to, const std::byte* from, std::size_t bytes) override {
    return host_->download(to, from, bytes);
  }
  Result<double> time(const std::function<Status()>& launch) override {
    return host_->time(launch);
  }
  Result<std::unique_ptr<Repeat>> repeat(std::size_t count,
                                         std::function<Status(std::size_t)> launch) override {
    if (changes_inputs) std::memset(first_.get(), 0x11, first_bytes_);
    return host_->repeat(count, std::move(launch));
  }
  Result<std::unique_ptr<ReadRoof>> roof(const deuce_decode_config&,
                                         const std::vector<deuce_decode_args>&, int64_t) override {
    return std::unique_ptr<ReadRoof>();
  }
  double read_roof() override { return 0; }
  std::size_t cache_bytes() const override { return 0; }
  std::optional<GpuClocks> clocks() const override {
    return GpuClocks{.sm_mhz = 1, .memory_mhz = 1, .throttle_reasons = throttles ? 0x20U : 0x3U};
  }

 private:
  std::unique_ptr<Device> host_;
  Memory first_;
  std::size_t first_bytes_ = 0;
};

Result<BenchPoint> measure(BadHost& device) {
  BenchShape shape;
  shape.q_heads = 2;
  shape.kv_heads = 1;
  shape.head_dim = 64;
  shape.kv_lens = {50, 300};
  BenchSettings settings;
  settings.execution.backend = Backend::cpu;
  settings.limits = {.fewest = 3, .shortest_s = 0, .longest_s = 0.2};
  return measure_point(shape, settings, device, [](std::string_view) {});
}

TEST(BenchPoint, IsRightWhenItsTimedLaunchesLeaveTheCallAsItWas) {
  BadHost device;
  const Result<BenchPoint> point = measure(device);
  ASSERT_TRUE(point.ok()) << point.status().sentence();
  EXPECT_TRUE(point.value().check.ok) << point.value().check.first_failure;
  EXPECT_EQ(point.value().samples.throttled, 0U);
}

TEST(BenchPoint, IsWrongWhenTheCheckedCallGivesOtherBitsAfterTheTiming) {
  BadHost device;
  device.changes_inputs = true;
  const Result<BenchPoint> point = measure(device);
  ASSERT_TRUE(point.ok()) << point.status().sentence();
  EXPECT_FALSE(point.value().check.ok);
  EXPECT_EQ(point.value().check.first_failure,
            "after the timed launches the same call gives other bits");
}

TEST(BenchPoint, HasNoTimeWhenTheClocksWereHeldDownAllTheWhile) {
  BadHost device;
  device.throttles = true;
  const Result<BenchPoint> point = measure(device);
  ASSERT_FALSE(point.ok());
  EXPECT_NE(point.status().sentence().find("clocks were held down"), std::string::npos)
      << point.status().sentence();
}

}  // namespace
}  // namespace deuce::cli
