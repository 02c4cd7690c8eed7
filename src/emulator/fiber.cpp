// SPDX-License-Identifier: Apache-2.0
// Fibers on Boost.Context's assembler switch, with our own stack pool: Boost's default allocator
// pulls in an object of the static library that is not position independent.
#include "emulator/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define DEUCE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DEUCE_ASAN 1
#endif
#endif
#ifdef DEUCE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace deuce::emulator {
namespace {

namespace ctx = boost::context::detail;

constexpr std::size_t kStackBytes = std::size_t{64} << 10;
constexpr std::size_t kGuardBytes = std::size_t{4} << 10;
constexpr std::size_t kMostGuarded = 8192;  // stacks with a guard page of their own: 16 blocks

struct StackPool {
  std::mutex mutex;
  std::vector<void*> free;
  std::size_t guarded = 0;

  void* take() {
    const std::lock_guard lock(mutex);
    if (free.empty()) grow();
    void* base = free.back();
    free.pop_back();
    return base;
  }
  void give(void* base) {
    const std::lock_guard lock(mutex);
    free.push_back(base);
  }
  // Stacks are never unmapped: the next launch wants them again. A guard page splits a mapping in
  // two, and Linux gives a process 65,530 mappings by default (vm.max_map_count), so only the first
  // stacks have one each; later ones, of the same kernels, have one below all 512.
  void grow() {
    constexpr std::size_t kCount = 512;
    constexpr std::size_t kPitch = kStackBytes + kGuardBytes;
    void* block = mmap(nullptr, kCount * kPitch, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED) throw std::bad_alloc();
    const bool guards_each = guarded < kMostGuarded;
    if (guards_each) guarded += kCount;
    for (std::size_t i = 0; i < kCount; ++i) {
      auto* guard = static_cast<std::byte*>(block) + i * kPitch;
      if ((i == 0 || guards_each) && mprotect(guard, kGuardBytes, PROT_NONE) != 0) {
        throw std::bad_alloc();
      }
      free.push_back(guard + kGuardBytes);
    }
  }
};

StackPool& pool() {
  static StackPool* const instance = new StackPool;  // outlives every other static
  return *instance;
}

}  // namespace

FiberStack::FiberStack() : base_(pool().take()) {}
FiberStack::~FiberStack() { pool().give(base_); }
void* FiberStack::top() const { return static_cast<std::byte*>(base_) + kStackBytes; }
void* FiberStack::bottom() const { return base_; }
std::size_t FiberStack::bytes() { return kStackBytes; }

struct FiberEntry {
  static void run(ctx::transfer_t from) {
    auto* fiber = static_cast<Fiber*>(from.data);
    fiber->scheduler_ = from.fctx;
#ifdef DEUCE_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &fiber->scheduler_bottom_, &fiber->scheduler_bytes_);
#endif
    fiber->entry_(fiber->argument_);
    std::abort();  // entry returned instead of calling finish()
  }
};

void Fiber::start(Entry entry, void* argument) {
  entry_ = entry;
  argument_ = argument;
#ifdef DEUCE_ASAN
  // The stack's last fiber did not return from its frames, so their red zones are still marked.
  __asan_unpoison_memory_region(stack_.bottom(), FiberStack::bytes());
#endif
  context_ = ctx::make_fcontext(stack_.top(), FiberStack::bytes(), &FiberEntry::run);
}

void Fiber::resume() {
#ifdef DEUCE_ASAN
  __sanitizer_start_switch_fiber(&scheduler_fake_stack_, stack_.bottom(), FiberStack::bytes());
#endif
  const ctx::transfer_t back = ctx::jump_fcontext(context_, this);
#ifdef DEUCE_ASAN
  __sanitizer_finish_switch_fiber(scheduler_fake_stack_, nullptr, nullptr);
#endif
  context_ = back.fctx;
}

void Fiber::suspend() {
#ifdef DEUCE_ASAN
  __sanitizer_start_switch_fiber(&fake_stack_, scheduler_bottom_, scheduler_bytes_);
#endif
  const ctx::transfer_t back = ctx::jump_fcontext(scheduler_, nullptr);
#ifdef DEUCE_ASAN
  __sanitizer_finish_switch_fiber(fake_stack_, &scheduler_bottom_, &scheduler_bytes_);
#endif
  scheduler_ = back.fctx;
}

void Fiber::finish() {
#ifdef DEUCE_ASAN
  __sanitizer_start_switch_fiber(nullptr, scheduler_bottom_, scheduler_bytes_);
#endif
  ctx::jump_fcontext(scheduler_, nullptr);
  std::abort();
}

}  // namespace deuce::emulator
