// SPDX-License-Identifier: Apache-2.0
// The Hopper machine: kernel/machine.h in sm_90a instructions.
// Included by the .cu files that instantiate kernels. Holds nothing but the captured indices, so
// that it costs nothing: threadIdx and blockIdx must be read in the __global__ body, because the
// compiler forgets the launch bounds when a method reads them.
#pragma once

#include <cstdint>

#include "gpu/ptx/arithmetic.cuh"
#include "gpu/ptx/bulk_copy.cuh"
#include "gpu/ptx/dependent_launch.cuh"
#include "gpu/ptx/mbarrier.cuh"
#include "gpu/ptx/memory.cuh"
#include "gpu/ptx/named_barrier.cuh"
#include "gpu/ptx/registers.cuh"
#include "gpu/ptx/warp_mma.cuh"
#include "gpu/ptx/wgmma.cuh"
#include "kernel/machine.h"

// CMake 3.25 knows no C++20 flag for nvcc 13 and stays silent about it; see src/gpu/CMakeLists.txt.
static_assert(__cplusplus >= 202002L, "nvcc must be called with -std=c++20");

namespace deuce {

/// Tracer: trace::NullTracer, or a class with `kLevel` and `record(word)`.
template <class Tracer>
class TracedSm90Machine {
 public:
  static constexpr bool kTraces = !std::same_as<Tracer, trace::NullTracer>;

  __device__ __forceinline__ TracedSm90Machine(unsigned thread, unsigned block, unsigned blocks,
                                               Tracer tracer = {})
      : tracer_(tracer),
        thread_(static_cast<int>(thread)),
        block_(static_cast<int>(block)),
        grid_blocks_(static_cast<int>(blocks)) {}

  DEUCE_DEVICE int thread() const { return thread_; }
  DEUCE_DEVICE int lane() const { return thread_ & 31; }
  DEUCE_DEVICE int warp() const { return __shfl_sync(kAllLanes, thread_ >> 5, 0); }
  DEUCE_DEVICE int block() const { return block_; }
  DEUCE_DEVICE int grid_blocks() const { return grid_blocks_; }

  template <class T>
  DEUCE_DEVICE T& shared() const {
    extern __shared__ __align__(1024) unsigned char storage[];
    return *reinterpret_cast<T*>(storage);
  }

  // --- warp ---
  DEUCE_DEVICE bool elect() const { return lane() == 0; }
  DEUCE_DEVICE void sync_warp() const { __syncwarp(); }
  template <class T>
  DEUCE_DEVICE T shuffle(T value, int lane) const {
    return __shfl_sync(kAllLanes, value, lane);
  }
  template <class T>
  DEUCE_DEVICE T shuffle_xor(T value, int mask) const {
    return __shfl_xor_sync(kAllLanes, value, mask);
  }
  template <class T>
  DEUCE_DEVICE T shuffle_up(T value, int delta) const {
    return __shfl_up_sync(kAllLanes, value, delta);
  }
  DEUCE_DEVICE bool any(bool predicate) const { return __any_sync(kAllLanes, predicate) != 0; }
  DEUCE_DEVICE uint32_t ballot(bool predicate) const { return __ballot_sync(kAllLanes, predicate); }
  DEUCE_DEVICE int lowest_lane(uint32_t lanes) const { return __ffs(static_cast<int>(lanes)) - 1; }

  // --- block ---
  DEUCE_DEVICE void sync_block() const { __syncthreads(); }
  DEUCE_DEVICE void arrive_named(int id, int threads) const {
    ptx::named_barrier_arrive(id, threads);
  }
  DEUCE_DEVICE void sync_named(int id, int threads) const { ptx::named_barrier_sync(id, threads); }

  // --- memory ---
  template <class T>
  DEUCE_DEVICE T load_shared(const T& word) const {
    return word;
  }
  template <class T, class V>
  DEUCE_DEVICE void store_shared(T& target, V value) const {
    target = value;
  }
  template <class T>
  DEUCE_DEVICE T load_global(const T* address) const {
    return *address;
  }
  template <class T>
  DEUCE_DEVICE T load_constant(const T* address) const {
    if constexpr (sizeof(T) == 16) {
      const uint4 value = __ldg(reinterpret_cast<const uint4*>(address));
      return *reinterpret_cast<const T*>(&value);
    } else if constexpr (sizeof(T) == 8) {
      const uint2 value = __ldg(reinterpret_cast<const uint2*>(address));
      return *reinterpret_cast<const T*>(&value);
    } else if constexpr (sizeof(T) == 4) {
      const unsigned value = __ldg(reinterpret_cast<const unsigned*>(address));
      return *reinterpret_cast<const T*>(&value);
    } else {
      return *address;
    }
  }
  template <class T, class V>
  DEUCE_DEVICE void store_global(T* address, V value) const {
    *address = value;
  }
  DEUCE_DEVICE uint32_t add_acq_rel(uint32_t* counter, uint32_t value) const {
    return ptx::atom_add_acq_rel(counter, value);
  }
  DEUCE_DEVICE uint32_t load_acquire(const uint32_t* word) const { return ptx::load_acquire(word); }
  DEUCE_DEVICE void store_release(uint32_t* word, uint32_t value) const {
    ptx::store_release(word, value);
  }

  DEUCE_DEVICE bool claim(uint32_t* word) const { return ptx::claim(word); }
  DEUCE_DEVICE void store_release_system(uint32_t* word, uint32_t value) const {
    ptx::store_release_system(word, value);
  }

  // --- mbarriers ---
  DEUCE_DEVICE void init(Barrier& barrier, int arrivals) const {
    ptx::mbarrier_init(address(barrier), static_cast<uint32_t>(arrivals));
  }
  DEUCE_DEVICE void fence_barrier_init() const { ptx::fence_mbarrier_init(); }
  DEUCE_DEVICE void arrive(Barrier& barrier) const { ptx::mbarrier_arrive(address(barrier)); }
  DEUCE_DEVICE void arrive_expect(Barrier& barrier, uint32_t bytes) const {
    ptx::mbarrier_arrive_expect_tx(address(barrier), bytes);
  }
  // Not try_wait: on an H200 one whose result is used later has been seen to report an arrival that
  // came after a later bar.sync of the same warp (tests/contract, not_before).
  DEUCE_DEVICE bool test(Barrier& barrier, Phase phase) const {
    return ptx::mbarrier_test_wait_parity(address(barrier), parity(phase));
  }
  DEUCE_DEVICE void wait(Barrier& barrier, Phase phase) const {
    while (!ptx::mbarrier_try_wait_parity(address(barrier), parity(phase))) {
    }
  }

  // --- asynchronous copies ---
  template <int kRank>
  DEUCE_DEVICE void copy_tensor(void* tile, const TensorMap& map,
                                const int32_t (&coordinate)[kRank], Barrier& barrier) const {
    ptx::bulk_tensor_copy(ptx::shared_address(tile), &map, coordinate, address(barrier));
  }
  DEUCE_DEVICE void copy_bulk(void* tile, const void* source, uint32_t bytes,
                              Barrier& barrier) const {
    ptx::bulk_copy(ptx::shared_address(tile), source, bytes, address(barrier));
  }
  DEUCE_DEVICE void prefetch(const void* address) const { ptx::prefetch_l2(address); }
  DEUCE_DEVICE void prefetch_map(const TensorMap& map) const { ptx::prefetch_tensor_map(&map); }
  DEUCE_DEVICE void fence_async() const { ptx::fence_proxy_async_shared(); }

  // --- programmatic dependent launch ---
  DEUCE_DEVICE void wait_previous_grid() const { ptx::griddepcontrol_wait(); }
  DEUCE_DEVICE void allow_next_grid() const { ptx::griddepcontrol_launch_dependents(); }

  // --- registers ---
  template <int kCount>
  DEUCE_DEVICE void grow_registers() const {
    ptx::setmaxnreg_increase<kCount>();
  }
  template <int kCount>
  DEUCE_DEVICE void shrink_registers() const {
    ptx::setmaxnreg_decrease<kCount>();
  }

  // --- matrix instructions ---
  DEUCE_DEVICE void load_matrices(uint32_t (&matrices)[4], const void* row) const {
    ptx::load_matrices(matrices, ptx::shared_address(row));
  }
  DEUCE_DEVICE void load_matrices_transposed(uint32_t (&matrices)[4], const void* row) const {
    ptx::load_matrices_transposed(matrices, ptx::shared_address(row));
  }
  template <class T>
  DEUCE_DEVICE void mma_16x8x16(float (&d)[4], const uint32_t (&a)[4],
                                const uint32_t (&b)[2]) const {
    if constexpr (std::same_as<T, Bf16>) {
      ptx::mma_m16n8k16_bf16(d, a, b);
    } else {
      ptx::mma_m16n8k16_f16(d, a, b);
    }
  }

  DEUCE_DEVICE void wgmma_fence() const { ptx::wgmma_fence(); }
  DEUCE_DEVICE void wgmma_commit() const { ptx::wgmma_commit_group(); }
  template <int kPending>
  DEUCE_DEVICE void wgmma_wait() const {
    ptx::wgmma_wait_group<kPending>();
  }

  // --- arithmetic ---
  DEUCE_DEVICE float exp2(float x) const { return ptx::exp2_approximate(x); }
  DEUCE_DEVICE float max(float a, float b) const { return ptx::max_nan(a, b); }
  DEUCE_DEVICE float log2(float x) const { return ptx::log2_approximate(x); }
  // 1 - 2 / (1 + exp(2x)): absolute error about 1e-7, where tanh.approx has 5e-4.
  DEUCE_DEVICE float tanh(float x) const {
    constexpr float kTwoLog2E = 2.885390081777927f;
    return 1.0f - 2.0f * ptx::reciprocal_approximate(1.0f + exp2(x * kTwoLog2E));
  }
  DEUCE_DEVICE float fma(float a, float b, float c) const { return __fmaf_rn(a, b, c); }
  DEUCE_DEVICE Float2 fma2(Float2 a, Float2 b, Float2 c) const {
    return {__fmaf_rn(a.x, b.x, c.x), __fmaf_rn(a.y, b.y, c.y)};
  }
  DEUCE_DEVICE Float2 add2(Float2 a, Float2 b) const {
    return {__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y)};
  }
  DEUCE_DEVICE Float2 mul2(Float2 a, Float2 b) const {
    return {__fmul_rn(a.x, b.x), __fmul_rn(a.y, b.y)};
  }
  DEUCE_DEVICE float add_round_down(float a, float b) const { return __fadd_rd(a, b); }
  template <class T>
  DEUCE_DEVICE uint32_t pack(float low, float high) const {
    if constexpr (std::same_as<T, Bf16>) {
      return ptx::pack_bf16(low, high);
    } else {
      return ptx::pack_half(low, high);
    }
  }
  DEUCE_DEVICE uint32_t swap_middle_bytes(uint32_t word) const {
    return __byte_perm(word, 0, 0x3120);
  }
  DEUCE_DEVICE uint32_t half_from_e4m3(uint16_t pair) const { return ptx::half_from_e4m3(pair); }
  DEUCE_DEVICE void charge(Work, int) const {}

  // --- provenance: the emulator's business ---
  DEUCE_DEVICE void mark_operand(char, int) const {}
  DEUCE_DEVICE void expect_operand(char, int) const {}
  DEUCE_DEVICE void at_block(int) const {}

  // --- trace ---
  DEUCE_DEVICE const Tracer& tracer() const { return tracer_; }
  DEUCE_DEVICE void trace_begin(trace::At at) { record(trace::Kind::begin, at); }
  DEUCE_DEVICE void trace_end(trace::At at) { record(trace::Kind::end, at); }
  DEUCE_DEVICE void trace_next(trace::At at) { record(trace::Kind::next, at); }
  DEUCE_DEVICE void trace_instant(trace::At at) { record(trace::Kind::instant, at); }
  DEUCE_DEVICE void trace_value(trace::Event event, uint32_t value) {
    if constexpr (kTraces) tracer_.record(trace::pack_value(event, value));
  }

 private:
  DEUCE_DEVICE void record(trace::Kind kind, trace::At at) {
    if constexpr (kTraces) {
      if (trace::level_of(at.event) > Tracer::kLevel) return;
      tracer_.record(trace::pack(kind, at.event, at.slot, at.phase, at.block));
    }
  }
  static constexpr unsigned kAllLanes = 0xffffffffu;
  DEUCE_DEVICE static uint32_t parity(Phase phase) { return static_cast<uint32_t>(phase) & 1u; }
  DEUCE_DEVICE static uint32_t address(Barrier& barrier) { return ptx::shared_address(&barrier); }

  [[no_unique_address]] Tracer tracer_;
  int thread_, block_, grid_blocks_;
};

using Sm90Machine = TracedSm90Machine<trace::NullTracer>;
static_assert(HopperMachine<Sm90Machine>);

}  // namespace deuce
