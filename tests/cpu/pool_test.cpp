// SPDX-License-Identifier: Apache-2.0
// The thread pool under many callers, after fork(), and at its end.
#include "cpu/pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

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

TEST(Pool, SleepingHelpersDoNotHoldUpItsEnd) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    Pool pool(4);
    if (repeat % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST(Pool, AChildOfForkFinishesItsJobsWithoutTheThreadsOfItsParent) {
  auto pool = Pool::get();
  ASSERT_TRUE(runs_every_task_once(*pool, 100, pool->threads()));
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const bool old_pool = runs_every_task_once(*pool, 100, pool->threads());
    auto own = Pool::get();
    const bool own_pool = own != pool && runs_every_task_once(*own, 100, own->threads());
    own.reset();
    pool.reset();  // must not wait for threads that are not there
    _exit(old_pool && own_pool ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
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
