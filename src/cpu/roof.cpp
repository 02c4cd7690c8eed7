// SPDX-License-Identifier: Apache-2.0
// Measuring the roofs of roof.h. Each pass is one job of a thread pool of its own.
#include "cpu/roof.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "cpu/kernels.h"
#include "cpu/pool.h"

namespace deuce::cpu {
namespace {

constexpr std::size_t kClaimBytes = std::size_t{1} << 20;
constexpr std::size_t kLeastBuffer = std::size_t{256} << 20, kLargestBuffer = std::size_t{1} << 30;
constexpr int64_t kClaimRounds = 20000;
constexpr int kClaimsPerThread = 32;

using Clock = std::chrono::steady_clock;

/// Runs `body` once for every task on the pool's threads; returns the seconds it took.
template <class Body>
double timed_pass(Pool& pool, int tasks, const Body& body) {
  Job job;
  job.context = const_cast<Body*>(&body);
  job.body = [](void* context, int, int task) { (*static_cast<const Body*>(context))(task); };
  job.tasks = tasks;
  job.participants = pool.threads();
  const auto start = Clock::now();
  pool.run(job);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Repeats a pass that does `amount` units and returns its rate until the time is up, five times at
/// least.
template <class Pass>
Rate repeat(double seconds, int& passes, const Pass& pass) {
  std::vector<double> rates;
  const auto start = Clock::now();
  pass();  // wakes the threads
  while (rates.size() < 5 ||
         std::chrono::duration<double>(Clock::now() - start).count() < seconds) {
    rates.push_back(pass());
  }
  passes = static_cast<int>(rates.size());
  std::sort(rates.begin(), rates.end());
  return {.best = rates.back(), .median = rates[rates.size() / 2]};
}

/// Only keeps what is computed from being optimised away.
std::atomic<float> sink{0};

}  // namespace

std::size_t roof_bytes() {
  return std::clamp(3 * last_level_cache_bytes(), kLeastBuffer, kLargestBuffer);
}

ReadRoof::ReadRoof(int threads)
    : pool_(threads > 0 ? std::make_shared<Pool>(threads) : Pool::get()),
      buffer_(new std::byte[roof_bytes()]) {
  deal_out({buffer_.get(), roof_bytes()});
  timed_pass(*pool_, static_cast<int>(claims_.size()),
             [&](int i) { std::memset(buffer_.get() + i * kClaimBytes, 1, claims_[i].size()); });
}

ReadRoof::ReadRoof(const std::vector<std::span<const std::byte>>& memory) : pool_(Pool::get()) {
  for (const auto& part : memory) deal_out(part);
}

ReadRoof::~ReadRoof() = default;

void ReadRoof::deal_out(std::span<const std::byte> memory) {
  bytes_ += memory.size();
  for (; !memory.empty(); memory = memory.subspan(claims_.back().size())) {
    claims_.push_back(memory.first(std::min(memory.size(), kClaimBytes)));
  }
}

double ReadRoof::pass() {
  const Kernels& kernels = chosen_kernels();
  const double seconds = timed_pass(*pool_, static_cast<int>(claims_.size()), [&](int i) {
    sink = kernels.read_lines(claims_[i].data(), claims_[i].size());
  });
  return static_cast<double>(bytes_) / seconds;
}

Roof measure_roof(int threads, double seconds) {
  const Kernels& kernels = chosen_kernels();
  ReadRoof reading(threads);
  Pool& pool = reading.pool();
  Roof roof;
  roof.instruction_set = kernels.name;
  roof.threads = pool.threads();
  roof.buffer_bytes = reading.buffer_bytes();
  roof.read_bytes = repeat(0.75 * seconds, roof.passes, [&] { return reading.pass(); });
  const int tasks = kClaimsPerThread * pool.threads();
  const double amount = static_cast<double>(tasks) * kClaimRounds * kMultiplyAdds * kernels.lanes;
  int passes = 0;
  roof.multiply_adds = repeat(0.25 * seconds, passes, [&] {
    return amount /
           timed_pass(pool, tasks, [&](int) { sink = kernels.multiply_adds(kClaimRounds); });
  });
  return roof;
}

}  // namespace deuce::cpu
