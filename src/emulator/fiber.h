// SPDX-License-Identifier: Apache-2.0
// Fibers: one per CUDA thread of the emulated grid, on pooled stacks with guard pages.
// Used by block.cpp only. A fiber that is abandoned is not unwound: kernel code owns nothing.
#pragma once

#include <cstddef>
#include <memory>

namespace deuce::emulator {

/// A stack from the process-wide pool.
class FiberStack {
 public:
  FiberStack();
  ~FiberStack();
  FiberStack(const FiberStack&) = delete;
  FiberStack& operator=(const FiberStack&) = delete;
  void* top() const;
  void* bottom() const;
  static std::size_t bytes();

 private:
  void* base_;
};

/// Runs `entry(argument)` on its own stack; entry must end by finish() and never return.
class Fiber {
 public:
  using Entry = void (*)(void* argument);
  void start(Entry entry, void* argument);
  /// From the scheduler: runs the fiber until its next suspend() or finish().
  void resume();
  /// From inside the fiber: back to the scheduler.
  void suspend();
  [[noreturn]] void finish();

 private:
  friend struct FiberEntry;
  FiberStack stack_;
  void* context_ = nullptr;
  void* scheduler_ = nullptr;
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  void* fake_stack_ = nullptr;
  void* scheduler_fake_stack_ = nullptr;
  const void* scheduler_bottom_ = nullptr;
  std::size_t scheduler_bytes_ = 0;
};

}  // namespace deuce::emulator
