// SPDX-License-Identifier: Apache-2.0
// One plan, many threads: each with its own workspace gets the bits of a run alone, and its own
// last error.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "api/sample.h"

namespace deuce_test {
namespace {

constexpr int kThreads = 4, kRuns = 200;

class Threads : public testing::TestWithParam<int> {};

TEST_P(Threads, ShareAPlanWithoutMeeting) {
  Sample sample(GetParam());
  const deuce::DecodePlan plan(sample.config);
  const Workspace workspace(plan.workspace_bytes());
  plan.run(sample.args, workspace.data(), workspace.size());

  std::atomic<int> wrong{0};
  const auto work = [&] {
    const Workspace own(plan.workspace_bytes());
    deuce_decode_args args = sample.args;
    for (int i = 0; i < kRuns; ++i) {
      std::vector<float> out(sample.out.size(), -1.0F), lse(sample.lse.size(), -1.0F);
      args.out = out.data();
      args.lse = lse.data();
      if (plan.try_run(args, own.data(), own.size()) != DEUCE_OK) ++wrong;
      if (std::memcmp(out.data(), sample.out.data(), out.size() * sizeof(float)) != 0) ++wrong;
      if (std::memcmp(lse.data(), sample.lse.data(), lse.size() * sizeof(float)) != 0) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(Threads, MakeAndDropPlansAtOnce) {
  std::atomic<int> wrong{0};
  const auto work = [&] {
    for (int i = 0; i < 20; ++i) {
      Sample sample(GetParam());
      if (run(sample) != DEUCE_OK) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(LastErrorOfThreads, IsTheirOwn) {
  EXPECT_EQ(deuce_decode_check(nullptr), DEUCE_INVALID_ARGUMENT);
  std::thread other([] {
    EXPECT_STREQ(deuce_last_error(), "");
    EXPECT_EQ(deuce_decode_fault(nullptr, nullptr), DEUCE_INVALID_ARGUMENT);
    EXPECT_STREQ(deuce_last_error(), "plan is null");
  });
  other.join();
  EXPECT_STREQ(deuce_last_error(), "config is null");
}

std::string test_name(const testing::TestParamInfo<int>& row) { return backend_name(row.param); }

INSTANTIATE_TEST_SUITE_P(Host, Threads, testing::ValuesIn(host_backends()), test_name);

}  // namespace
}  // namespace deuce_test
