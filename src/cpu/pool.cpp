// SPDX-License-Identifier: Apache-2.0
// The pool of pool.h. An offer is one pointer; the order of its two atomics is what keeps a helper
// from touching a job whose caller has gone: a helper counts itself in before it reads the pointer,
// the caller takes the pointer away before it reads the count.
#include "cpu/pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <mutex>

namespace deuce::cpu {
namespace {

/// How long a helper looks for the next job before it sleeps: longer than the gap between the
/// layers of a model whose other operators run elsewhere, short enough to be no load.
constexpr auto kSpinTime = std::chrono::microseconds(100);
constexpr int kPausesPerLook = 32;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

void work_on(Job& job, int participant) {
  for (int task = job.next_task.fetch_add(1); task < job.tasks; task = job.next_task.fetch_add(1)) {
    job.body(job.context, participant, task);
  }
}

// The pool of this process, and how many calls of fork() made the process: a pool with another
// number has its threads in an ancestor. The mutex is held over fork(), or a child could find it
// locked by a thread that it does not have.
constinit std::mutex current_mutex;
constinit std::weak_ptr<Pool> current_pool;
constinit std::atomic<uint32_t> generation{0};

[[maybe_unused]] const int kWatchesForks =
    pthread_atfork([] { current_mutex.lock(); }, [] { current_mutex.unlock(); },
                   [] {
                     ++generation;
                     current_mutex.unlock();
                   });

}  // namespace

int usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) {
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  return std::max(1, CPU_COUNT(&set));
}

std::shared_ptr<Pool> Pool::get() {
  const std::lock_guard lock(current_mutex);
  std::shared_ptr<Pool> pool = current_pool.lock();
  if (pool == nullptr || !pool->helpers_are_here()) {
    pool = std::make_shared<Pool>(usable_cpus());
    current_pool = pool;
  }
  return pool;
}

bool Pool::helpers_are_here() const { return generation_ == generation; }

Pool::Pool(int threads)
    : generation_(generation), helpers_(std::make_unique<std::vector<std::thread>>()) {
  // Signals belong to the threads of the application.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  helpers_->reserve(threads - 1);
  for (int i = 1; i < threads; ++i) {
    helpers_->emplace_back([this] { help(); });
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Pool::~Pool() {
  if (!helpers_are_here()) {
    static_cast<void>(helpers_.release());
    return;
  }
  ending_ = true;
  ++news_;
  news_.notify_all();
  for (std::thread& helper : *helpers_) helper.join();
}

void Pool::run(Job& job) {
  const bool shared = job.participants > 1 && job.tasks > 1 && helpers_are_here();
  Offer* const place = shared ? offer(job) : nullptr;
  work_on(job, 0);
  if (place != nullptr) withdraw(*place);
}

Pool::Offer* Pool::offer(Job& job) {
  for (Offer& place : offers_) {
    Job* none = nullptr;
    if (!place.job.compare_exchange_strong(none, &job)) continue;
    ++news_;
    news_.notify_all();
    return &place;
  }
  return nullptr;  // more callers than places: this one works alone
}

void Pool::withdraw(Offer& place) {
  place.job = nullptr;
  int looks = 0;
  while (place.visitors != 0) {
    // A helper in the middle of a task may have lost its CPU to somebody: let it have ours.
    if (++looks % (64 * kPausesPerLook) == 0) std::this_thread::yield();
    pause_briefly();
  }
}

bool Pool::visit(Offer& place) {
  if (place.job.load(std::memory_order_relaxed) == nullptr) return false;
  ++place.visitors;
  Job* const job = place.job;
  bool worked = false;
  if (job != nullptr && job->next_task.load(std::memory_order_relaxed) < job->tasks) {
    const int participant = job->next_participant.fetch_add(1);
    if (participant < job->participants) {
      work_on(*job, participant);
      worked = true;
    }
  }
  --place.visitors;
  return worked;
}

void Pool::help() {
  using Clock = std::chrono::steady_clock;
  auto sleep_at = Clock::now() + kSpinTime;
  while (!ending_) {
    const uint32_t news = news_;
    bool worked = false;
    for (Offer& place : offers_) worked = visit(place) || worked;
    if (worked) {
      sleep_at = Clock::now() + kSpinTime;
      continue;
    }
    for (int i = 0; i < kPausesPerLook && news_ == news; ++i) pause_briefly();
    if (news_ == news && Clock::now() > sleep_at) {
      news_.wait(news);
      sleep_at = Clock::now() + kSpinTime;
    }
  }
}

}  // namespace deuce::cpu
