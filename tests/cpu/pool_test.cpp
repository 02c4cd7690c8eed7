// SPDX-License-Identifier: Apache-2.0
// The thread pool under many callers, after fork(), and at its end.
#include "cpu/pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <vector>

namespace deuce::cpu {
namespace {

struct Counts {
  explicit Counts(int tasks) : done(tasks) {}
  std::vector<std::atomic<int>> done;
  std::atomic<int> highest_participant{0};

  static void body(void* context, int participant, int task) {
    auto& counts = *static_cast<Counts*>(context);
    ++counts.done[task];
    int highest = counts.highest_participant;
    while (participant > highest &&
           !counts.highest_participant.compare_exchange_weak(highest, participant)) {
    }
  }
};

bool runs_every_task_once(Pool& pool, int tasks, int participants) {
  Counts counts(tasks);
  Job job;
  job.body = Counts::body;
  job.context = &counts;
  job.tasks = tasks;
  job.participants = participants;
  pool.run(job);
  for (const std::atomic<int>& count : counts.done) {
    if (count != 1) return false;
  }
  return counts.highest_participant < participants;
}

TEST(Pool, EveryTaskRunsOnceWhateverTheNumberOfTasks) {
  Pool pool(4);
  for (int tasks : {0, 1, 2, 3, 7, 64, 1000}) {
    for (int repeat = 0; repeat < 50; ++repeat) {
      ASSERT_TRUE(runs_every_task_once(pool, tasks, 4)) << tasks << " tasks";
    }
  }
}

TEST(Pool, NoMoreThreadsTakePartThanTheJobAllows) {
  Pool pool(6);
  for (int participants = 1; participants <= 6; ++participants) {
    for (int repeat = 0; repeat < 50; ++repeat) {
      ASSERT_TRUE(runs_every_task_once(pool, 40, participants)) << participants;
    }
  }
}

TEST(Pool, MoreCallersThanPlacesAllFinish) {
  Pool pool(3);
  std::atomic<int> failures{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 24; ++caller) {
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 100; ++repeat) {
        if (!runs_every_task_once(pool, 5, 3)) ++failures;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(failures, 0);
}

/// Seconds of CPU that all threads of this process have used.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Whether the pool's end comes; a pool that does not end is left alone.
bool ends(std::unique_ptr<Pool> pool) {
  auto ended = std::make_shared<std::atomic<bool>>(false);
  std::thread([pool = std::move(pool), ended]() mutable {
    pool.reset();
    *ended = true;
  }).detach();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!*ended && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return *ended;
}

TEST(Pool, HelpersWithoutWorkSleep) {
  auto pool = std::make_unique<Pool>(4);
  ASSERT_TRUE(runs_every_task_once(*pool, 1000, 4));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(cpu_seconds() - before, 0.02) << "of 0.2 s in which nobody had anything to do";
  ASSERT_TRUE(ends(std::move(pool)));
}

TEST(Pool, SleepingHelpersDoNotHoldUpItsEnd) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    auto pool = std::make_unique<Pool>(4);
    if (repeat % 4 < 2) {
      ASSERT_TRUE(runs_every_task_once(*pool, 10, 4));
    }
    if (repeat % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ASSERT_TRUE(ends(std::move(pool))) << "repeat " << repeat;
  }
}

/// Whether a child of fork() that does this ends well and in time.
template <class Body>
bool child_succeeds(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Pool, AChildOfForkFinishesItsJobsWithoutTheThreadsOfItsParent) {
  auto pool = Pool::get();
  ASSERT_TRUE(runs_every_task_once(*pool, 100, pool->threads()));
  EXPECT_TRUE(child_succeeds([&] {
    const bool old_pool = runs_every_task_once(*pool, 100, pool->threads());
    auto own = Pool::get();
    const bool own_pool = own != pool && runs_every_task_once(*own, 100, own->threads());
    own.reset();
    pool.reset();  // must not wait for threads that are not there
    return old_pool && own_pool;
  }));
  EXPECT_EQ(Pool::get(), pool) << "the parent keeps its own";
}

// The child gets the memory of a moment: a place with a visitor that never leaves, a mutex that
// another thread had locked.
TEST(Pool, AChildOfForkIsNotHeldUpByWhatOtherThreadsWereDoing) {
  auto shared = Pool::get();
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&, i] {
      while (!stop) {
        const auto pool = Pool::get();
        if (i == 0) runs_every_task_once(*pool, 20, pool->threads());
      }
    });
  }
  int failures = 0;
  for (int repeat = 0; repeat < 150; ++repeat) {
    const bool succeeded = child_succeeds([&] {
      const bool old_pool = runs_every_task_once(*shared, 20, shared->threads());
      auto own = Pool::get();
      return old_pool && runs_every_task_once(*own, 20, own->threads());
    });
    if (!succeeded) ++failures;
    if (failures > 0) break;  // each takes its 20 s
  }
  stop = true;
  for (std::thread& other : others) other.join();
  EXPECT_EQ(failures, 0);
}

TEST(Pool, PlansShareOneAndTheLastOneEndsIt) {
  std::weak_ptr<Pool> seen;
  {
    const auto first = Pool::get();
    EXPECT_EQ(first, Pool::get());
    seen = first;
  }
  EXPECT_TRUE(seen.expired());
}

}  // namespace
}  // namespace deuce::cpu
