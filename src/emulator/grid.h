// SPDX-License-Identifier: Apache-2.0
// The grid: one event queue for all blocks, and the memory they share.
// Time is in cycles; equal times run in the order in which they were queued.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <queue>
#include <unordered_map>
#include <vector>

#include "emulator/block.h"

namespace deuce::emulator {

/// Last writer and reader of each word of a 32-byte sector of global memory.
struct Sector {
  struct Mark {
    int16_t block = -1, warp = -1;
    uint32_t sequence = 0;
    uint32_t record = 0;  // its long form, in the grid
  };
  std::array<Mark, 8> writes, reads;
};

class Grid {
 public:
  Grid(const Launch& launch, const Options& options);
  RunResult run();

  double now() const { return now_; }
  const Timing& timing() const { return timing_; }
  Schedule& schedule() { return schedule_; }
  Report& report() { return result_.report; }
  /// The first error ends the run.
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

  void queue_warp(int block, int warp, double at);
  /// A slot for an asynchronous operation; queued with queue_async.
  uint32_t new_async();
  AsyncOp& async(uint32_t id) { return *async_[id]; }
  void queue_async(int block, uint32_t id, double at);

  const GlobalRange* range_of(const void* address, std::size_t bytes) const;
  Sector& sector(const void* address);
  /// Accesses to writable global memory, one for a warp instruction.
  uint32_t add_record(const AccessRecord& record);
  const AccessRecord& record(uint32_t index) const { return records_[index]; }
  Clock& released_at(const void* address) { return released_[address]; }

 private:
  struct Event {
    double at;
    uint64_t number;
    int block, warp;  // warp -1: asynchronous operation `id`
    uint32_t id;
    bool operator>(const Event& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };
  using Queue = std::priority_queue<Event, std::vector<Event>, std::greater<>>;
  void handle(const Event& event);
  void end_run();

  const Launch& launch_;
  const Options& options_;
  Schedule schedule_;
  Timing timing_;
  RunResult result_;
  double now_ = 0;
  bool stopped_ = false;
  uint64_t number_ = 0;
  Queue events_, deferred_;  // deferred: asynchronous operations of a lazy run
  std::vector<std::unique_ptr<AsyncOp>> async_;
  std::vector<uint32_t> free_async_;
  std::vector<std::unique_ptr<Block>> blocks_;  // by number; nullptr: does not run
  std::vector<Block*> running_;
  std::unordered_map<uintptr_t, Sector> sectors_;
  std::vector<AccessRecord> records_;
  std::unordered_map<const void*, Clock> released_;
};

}  // namespace deuce::emulator
