// SPDX-License-Identifier: Apache-2.0
// The Blackwell machine: kernel/machine.h in sm_100a instructions. What sm_90 and sm_100 share
// comes from the Hopper machine; tensor memory, tcgen05 and packed arithmetic are added here.
// Compiled and inspected; it has not been run on silicon by this project.
#pragma once

#include <bit>

#include "gpu/ptx/tcgen05.cuh"
#include "gpu/sm90_machine.cuh"

namespace deuce {

template <class Tracer>
class TracedSm100Machine : public TracedSm90Machine<Tracer> {
 public:
  using TracedSm90Machine<Tracer>::TracedSm90Machine;

  DEUCE_DEVICE void mark_operand(char, int) const {}
  DEUCE_DEVICE void expect_operand(char, int) const {}
  DEUCE_DEVICE void at_block(int) const {}

  // --- packed arithmetic: one instruction for two floats ---
  DEUCE_DEVICE Float2 fma2(Float2 a, Float2 b, Float2 c) const {
    return pair(ptx::fma_f32x2(bits(a), bits(b), bits(c)));
  }
  DEUCE_DEVICE Float2 add2(Float2 a, Float2 b) const {
    return pair(ptx::add_f32x2(bits(a), bits(b)));
  }
  DEUCE_DEVICE Float2 mul2(Float2 a, Float2 b) const {
    return pair(ptx::mul_f32x2(bits(a), bits(b)));
  }

  // --- tensor memory ---
  DEUCE_DEVICE void allocate_tensor_memory(uint32_t& address, uint32_t columns) const {
    ptx::tcgen05_alloc(ptx::shared_address(&address), columns);
  }
  DEUCE_DEVICE void relinquish_tensor_memory() const { ptx::tcgen05_relinquish(); }
  DEUCE_DEVICE void free_tensor_memory(uint32_t column, uint32_t columns) const {
    ptx::tcgen05_dealloc(column, columns);
  }
  template <class Word, int kCount>
  DEUCE_DEVICE void load_tensor(Word (&to)[kCount], uint32_t column) const {
    uint32_t words[kCount];
    ptx::tcgen05_load(words, column + lane_base());
    DEUCE_UNROLL
    for (int i = 0; i < kCount; ++i) to[i] = std::bit_cast<Word>(words[i]);
  }
  template <class Word, int kCount>
  DEUCE_DEVICE void store_tensor(uint32_t column, const Word (&from)[kCount]) const {
    uint32_t words[kCount];
    DEUCE_UNROLL
    for (int i = 0; i < kCount; ++i) words[i] = std::bit_cast<uint32_t>(from[i]);
    ptx::tcgen05_store(column + lane_base(), words);
  }
  DEUCE_DEVICE void wait_tensor_loads() const { ptx::tcgen05_wait_load(); }
  DEUCE_DEVICE void wait_tensor_stores() const { ptx::tcgen05_wait_store(); }
  DEUCE_DEVICE void fence_before_sync() const { ptx::tcgen05_fence_before(); }
  DEUCE_DEVICE void fence_after_sync() const { ptx::tcgen05_fence_after(); }

  // --- MMA ---
  DEUCE_DEVICE void mma_shared(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction,
                               bool accumulate) const {
    ptx::tcgen05_mma_shared(d, a, b, instruction, accumulate);
  }
  DEUCE_DEVICE void mma_tensor(uint32_t d, uint32_t a, uint64_t b, uint32_t instruction,
                               bool accumulate) const {
    ptx::tcgen05_mma_tensor(d, a, b, instruction, accumulate);
  }
  DEUCE_DEVICE void commit(Barrier& barrier) const {
    ptx::tcgen05_commit(ptx::shared_address(&barrier));
  }
  DEUCE_DEVICE uint32_t shared_address(const void* at) const { return ptx::shared_address(at); }

 private:
  DEUCE_DEVICE uint32_t lane_base() const {
    return static_cast<uint32_t>(this->warp() % 4 * 32) << 16;
  }
  DEUCE_DEVICE static uint64_t bits(Float2 value) { return std::bit_cast<uint64_t>(value); }
  DEUCE_DEVICE static Float2 pair(uint64_t value) { return std::bit_cast<Float2>(value); }
};

using Sm100Machine = TracedSm100Machine<trace::NullTracer>;
static_assert(BlackwellMachine<Sm100Machine>);

}  // namespace deuce
