// SPDX-License-Identifier: Apache-2.0
// Threads that help with the runs of all plans of this process. Made with the first plan and ended
// with the last; run() itself starts nothing, allocates nothing and waits for no thread but those
// that work on its own job.
//
// A job is a number of tasks that are claimed one by one from a counter, by the caller and by any
// helper that is free. The caller can finish every job alone, so a helper that is late, busy with
// another caller or, after fork(), not there at all costs time and never progress. A child of
// fork() offers nothing to a pool of its parent, whose state is that of a moment in its life, and
// gets a pool of its own with its next plan.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace deuce::cpu {

/// Work of one run: `body(context, participant, task)` once for each task. A participant number
/// stands for one thread at a time, the caller is 0.
struct Job {
  void (*body)(void* context, int participant, int task) = nullptr;
  void* context = nullptr;
  int tasks = 0;
  int participants = 1;  // threads that may take part, with the caller

  std::atomic<int> next_task{0};
  std::atomic<int> next_participant{1};
};

class Pool {
 public:
  /// The process's pool, made if there is none. Plans keep it alive.
  static std::shared_ptr<Pool> get();

  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Threads that can work at once, with the caller: the CPUs this process may use.
  int threads() const { return static_cast<int>(helpers_->size()) + 1; }
  /// Returns when every task of the job is done. Callable from several threads at once.
  void run(Job& job);

 private:
  /// A job on offer. `visitors` counts the helpers that may still look at it.
  struct alignas(64) Offer {
    std::atomic<Job*> job{nullptr};
    std::atomic<int> visitors{0};
  };

  bool helpers_are_here() const;
  void help();
  bool visit(Offer& offer);
  Offer* offer(Job& job);
  void withdraw(Offer& offer);

  std::array<Offer, 16> offers_;
  alignas(64) std::atomic<uint32_t> news_{0};  // rises with every offer and at the end
  std::atomic<bool> ending_{false};
  uint32_t generation_;  // of the process that started the helpers, see pool.cpp
  // Behind a pointer, so that a child of fork() can leave it alone: these threads are not its own.
  std::unique_ptr<std::vector<std::thread>> helpers_;
};

/// CPUs that this process may use.
int usable_cpus();

}  // namespace deuce::cpu
