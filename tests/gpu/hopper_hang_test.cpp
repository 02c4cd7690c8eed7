// SPDX-License-Identifier: Apache-2.0
// What a hung kernel did last is read while it hangs, whatever the slices keep and whatever an
// earlier launch has left in them; and what a record costs is measured by the warps themselves.
#include <gtest/gtest.h>

#include <algorithm>

#include "gpu/device_buffer.h"
#include "gpu/hung_kernel.h"
#include "gpu/trace_capture.h"
#include "trace/hang_report.h"

namespace deuce::test {
namespace {

using trace::Slice;

/// A word of the host that the kernel waits for. Released at the latest when it goes.
class Release {
 public:
  Release() {
    void* memory = nullptr;
    EXPECT_EQ(cudaHostAlloc(&memory, sizeof *word_, cudaHostAllocMapped), cudaSuccess);
    word_ = static_cast<volatile unsigned*>(memory);
    *word_ = 0;
  }
  ~Release() {
    *word_ = 1;
    static_cast<void>(cudaDeviceSynchronize());
    static_cast<void>(cudaFreeHost(const_cast<unsigned*>(word_)));
  }
  Release(const Release&) = delete;
  Release& operator=(const Release&) = delete;
  const volatile unsigned* word() const { return word_; }
  void now() { *word_ = 1; }
  void hold() { *word_ = 0; }

 private:
  volatile unsigned* word_ = nullptr;
};

constexpr const char* kReport =
    "2 of 4 warps have not ended; their last events:\n"
    "  CTA 0  attend warp 0: waits for k_arrived (wait_K), slot 2, block 14, parity 0\n"
    "  CTA 1  attend warp 0: waits for k_arrived (wait_K), slot 2, block 14, parity 0\n";

class HopperHang : public testing::TestWithParam<trace::Policy> {};

TEST_P(HopperHang, IsReportedWhileItLastsAndThenEnds) {
  DEUCE_NEEDS_HOPPER();
  constexpr uint32_t kCapacity = 64;
  // Far more records than a slice holds, where it keeps the newest.
  const int rounds = GetParam() == trace::Policy::keep_newest ? 1000 : 10;
  trace::TraceCapture capture;
  ASSERT_TRUE(capture.allocate(kHungCtas * kHungWarps, kCapacity, GetParam()).ok());
  Release release;
  cudaEvent_t end = nullptr;
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  // A launch before, that ends and leaves more records than the one that hangs.
  release.now();
  ASSERT_EQ(launch_hung_kernel(capture.buffer(), release.word(), rounds + 5, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  release.hold();
  ASSERT_TRUE(capture.clear().ok());
  ASSERT_EQ(launch_hung_kernel(capture.buffer(), release.word(), rounds, nullptr), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(end), cudaSuccess);

  const Result<bool> ended = trace::ends_within(end, 0.2);
  ASSERT_TRUE(ended.ok()) << ended.status().sentence();
  EXPECT_FALSE(ended.value());
  const Result<std::vector<Slice>> hung = capture.peek();
  ASSERT_TRUE(hung.ok()) << hung.status().sentence();
  EXPECT_EQ(trace::hang_report(hung.value()), kReport);

  release.now();
  const Result<bool> released = trace::ends_within(end, 10);
  ASSERT_TRUE(released.ok() && released.value());
  const Result<std::vector<Slice>> whole = capture.collect();
  ASSERT_TRUE(whole.ok()) << whole.status().sentence();
  EXPECT_EQ(trace::hang_report(whole.value()), "");
  for (const Slice& slice : whole.value()) {
    EXPECT_EQ(slice.records.size(), std::min<std::size_t>(kCapacity, slice.header.wanted));
    EXPECT_EQ(slice.header.wanted, static_cast<uint32_t>(2 * rounds + 4));
    for (std::size_t i = 1; i < slice.records.size(); ++i) {
      EXPECT_GE(static_cast<int32_t>(slice.records[i].clock - slice.records[i - 1].clock), 0);
    }
    // 21 cycles in a trial; a branch or a fence in a record would show.
    const double cycles = trace::self_cost(slice.header) / double{trace::kSelfCostRecords};
    EXPECT_GE(cycles, 2);
    EXPECT_LE(cycles, 100);
  }
  static_cast<void>(cudaEventDestroy(end));
}

INSTANTIATE_TEST_SUITE_P(Policies, HopperHang,
                         testing::Values(trace::Policy::keep_first, trace::Policy::keep_newest),
                         [](const auto& policy) {
                           return policy.param == trace::Policy::keep_newest ? "keep_newest"
                                                                             : "keep_first";
                         });

}  // namespace
}  // namespace deuce::test
