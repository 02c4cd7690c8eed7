// SPDX-License-Identifier: Apache-2.0
// run() allocates nothing, on the first call of a thread neither; plans leave nothing behind.
// The malloc family of this program counts; the library's own calls arrive here as well.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <thread>

#include "api/sample.h"

// glibc's own entry points, so that the counting functions below need no look-up.
extern "C" void* __libc_malloc(std::size_t);
extern "C" void* __libc_calloc(std::size_t, std::size_t);
extern "C" void* __libc_realloc(void*, std::size_t);
extern "C" void* __libc_memalign(std::size_t, std::size_t);
extern "C" void __libc_free(void*);

namespace {

std::atomic<long> g_allocations{0}, g_mallocs{0}, g_frees{0};

void* counted(void* memory) {
  if (memory != nullptr) ++g_allocations;
  return memory;
}

}  // namespace

extern "C" {
void* malloc(std::size_t size) {
  ++g_mallocs;
  return counted(__libc_malloc(size));
}
void* calloc(std::size_t count, std::size_t size) { return counted(__libc_calloc(count, size)); }
void* realloc(void* memory, std::size_t size) {
  if (memory != nullptr) ++g_frees;
  return counted(__libc_realloc(memory, size));
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return counted(__libc_memalign(alignment, size));
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  *memory = counted(__libc_memalign(alignment, size));
  return *memory != nullptr ? 0 : ENOMEM;
}
void free(void* memory) {
  if (memory != nullptr) ++g_frees;
  __libc_free(memory);
}
}

namespace deuce_test {
namespace {

class Allocation : public testing::TestWithParam<int> {};

TEST_P(Allocation, RunAllocatesNothingOnAnyThread) {
  for (const Cache cache : {Cache::table, Cache::indptr, Cache::contiguous}) {
    Sample sample(GetParam(), cache);
    deuce::DecodePlan plan(sample.config);
    const Workspace workspace(plan.workspace_bytes());
    long in_run = -1;
    const auto measure = [&] {
      const long before = g_allocations;
      const deuce_status status = plan.try_run(sample.args, workspace.data(), workspace.size());
      in_run = g_allocations - before;
      EXPECT_EQ(status, DEUCE_OK);
    };
    measure();  // the first run of the plan
    EXPECT_EQ(in_run, 0);
    std::thread(measure).join();  // the first call of a thread
    EXPECT_EQ(in_run, 0);
  }
}

// What is made on first use, behind a guard, blocks a child of fork() for ever when another thread
// was at it. Shows something as the first test of its process, as ctest runs it. calloc is left
// out: glibc takes the first threads' own memory from it.
TEST(Allocations, TheFirstPlanOfAProcessMakesNothingThatStays) {
  Sample sample(DEUCE_BACKEND_CPU);
  const auto mallocs = [&] {
    const long before = g_mallocs;
    deuce::DecodePlan plan(sample.config);
    return g_mallocs - before;
  };
  const long first = mallocs(), second = mallocs();
  EXPECT_EQ(first, second);
}

TEST_P(Allocation, TheHookSeesTheLibrary) {
  const long before = g_allocations;
  Sample sample(GetParam());
  const long built = g_allocations;
  deuce::DecodePlan plan(sample.config);
  EXPECT_GT(built, before);
  EXPECT_GT(g_allocations, built) << "making a plan allocates; the hook must count that";
}

TEST_P(Allocation, PlansAndRefusalsLeaveNothingBehind) {
  Sample sample(GetParam());
  const auto use = [&] {
    deuce::DecodePlan plan;
    ASSERT_EQ(deuce::DecodePlan::try_create(sample.config, plan), DEUCE_OK);
    const Workspace workspace(plan.workspace_bytes());
    EXPECT_EQ(plan.try_run(sample.args, workspace.data(), workspace.size()), DEUCE_OK);
    EXPECT_EQ(plan.try_run(sample.args, workspace.data(), 0), DEUCE_WORKSPACE_TOO_SMALL);
    std::string text;
    EXPECT_EQ(plan.try_explain(text, &sample.args), DEUCE_OK);
  };
  use();  // what is made once stays: the thread's record of its last error
  const long live = g_allocations - g_frees;
  for (int i = 0; i < 100; ++i) use();
  EXPECT_EQ(g_allocations - g_frees, live);
}

std::string test_name(const testing::TestParamInfo<int>& row) { return backend_name(row.param); }

INSTANTIATE_TEST_SUITE_P(Host, Allocation, testing::ValuesIn(host_backends()), test_name);

}  // namespace
}  // namespace deuce_test
