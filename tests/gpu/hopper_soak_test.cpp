// SPDX-License-Identifier: Apache-2.0
// Mixed shapes, one after the other and each judged, while a second stream keeps the SMs and the
// memory busy. DEUCE_SOAK_SECONDS sets the length (default 3).
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "gpu/gpu_case.h"
#include "gpu/random_spec.h"
#include "gpu/slow_writer.h"

namespace deuce::test {
namespace {

/// Copies and waiting blocks on a stream of their own, until it is destroyed.
class OtherWork {
 public:
  OtherWork() : thread_([this] { work(); }) {}
  ~OtherWork() {
    stop_ = true;
    thread_.join();
  }
  int rounds() const { return rounds_; }

 private:
  void work() {
    constexpr std::size_t kBytes = std::size_t{64} << 20;
    const DeviceBuffer<uint8_t> from(std::vector<uint8_t>(kBytes, 1)), to(from.to_host());
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    LateCopies copies;
    copies.add(from.data(), to.data(), 1 << 16);
    while (!stop_) {
      for (int i = 0; i < 8; ++i) {
        ASSERT_EQ(launch_slow_writer(copies, 5'000 * i, stream), cudaSuccess);
        ASSERT_EQ(cudaMemcpyAsync(to.data(), from.data(), kBytes, cudaMemcpyDeviceToDevice, stream),
                  cudaSuccess);
      }
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      ++rounds_;
    }
    static_cast<void>(cudaStreamDestroy(stream));
  }

  std::atomic<bool> stop_ = false;
  std::atomic<int> rounds_ = 0;
  std::thread thread_;
};

TEST(HopperSoak, MixedShapesBesideOtherKernels) {
  DEUCE_NEEDS_HOPPER();
  const char* wanted = std::getenv("DEUCE_SOAK_SECONDS");
  const std::chrono::seconds length(wanted == nullptr ? 3 : std::atoi(wanted));
  const auto end = std::chrono::steady_clock::now() + length;
  OtherWork other;
  uint64_t seed = 1'000'000;
  for (; std::chrono::steady_clock::now() < end; ++seed) {
    GpuCase problem(random_spec(seed));
    ASSERT_EQ(problem.disagreement(), "") << "seed " << seed;
    const std::vector<uint8_t> first = problem.run_on_gpu();
    ASSERT_EQ(problem.run_on_gpu(), first) << "seed " << seed << ": another run, other bits";
  }
  EXPECT_GT(other.rounds(), 0);
  std::printf("soak: %d problems in %d s, %d rounds of other work\n",
              static_cast<int>(seed - 1'000'000), static_cast<int>(length.count()), other.rounds());
}

}  // namespace
}  // namespace deuce::test
