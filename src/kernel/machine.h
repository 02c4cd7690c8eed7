// SPDX-License-Identifier: Apache-2.0
// The machine: every operation the portable kernels may use, with its contract.
// Kernels are templates over a Machine; src/gpu implements it in PTX, src/emulator on a CPU. The
// text above each operation is the specification of both. What another thread can see (shared,
// tensor and global memory, barriers) goes through the machine; registers are plain variables.
//
// "Each thread" = may be called by any subset of lanes. "Warp" = all 32 lanes, converged, same
// call. "Warpgroup" = four warps starting at a multiple of four. An elected lane's release covers
// the work of its warp's other lanes only up to the last sync_warp.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "kernel/numbers.h"
#include "trace/event.h"

#ifdef __CUDACC__
#define DEUCE_DEVICE __device__ __forceinline__
#define DEUCE_UNROLL _Pragma("unroll")
#define DEUCE_ROLLED _Pragma("unroll 1")  // code that runs once is fetched cold and must stay short
#else
#define DEUCE_DEVICE inline
#define DEUCE_UNROLL
#define DEUCE_ROLLED
#endif

namespace deuce {

/// An mbarrier: 8 opaque bytes in shared memory. The emulator keeps its state elsewhere.
struct alignas(8) Barrier {
  uint64_t opaque;
};
static_assert(sizeof(Barrier) == 8);

/// Whole phase number of a barrier, counted from 0; -1 is "the phase before the first", which has
/// passed already. A GPU looks at bit 0 only, the emulator checks that bit 0 was enough.
using Phase = int32_t;

/// A tensor map, opaque: made by the driver for a GPU, by the emulator for itself.
struct alignas(64) TensorMap {
  unsigned char bytes[128];
};

/// What register arithmetic is charged as in the emulator's clock (`charge`); free on a GPU. A
/// packed pair counts as two. `dependent`: steps of a chain that nothing else hides; kernels take
/// their number from the schedule that ptxas made of them.
enum class Work : uint8_t { fma, exp2, alu, convert, dependent };

/// Everything that sm_90 and sm_100 share.
template <class M>
concept CoreMachine = requires(M machine, Barrier& barrier, const TensorMap& map, Phase phase,
                               void* tile, int index, uint32_t word, float x, Float2 pair,
                               const float& shared_word, float& shared_target, float* global,
                               uint32_t* counter, const int32_t (&coordinate)[4], trace::At at) {
  // --- indices: known at launch, the same for the whole life of a thread -------------------------
  { machine.thread() } -> std::same_as<int>;       // 0 .. threads - 1 in the block
  { machine.lane() } -> std::same_as<int>;         // thread % 32
  { machine.warp() } -> std::same_as<int>;         // thread / 32, uniform in a warp
  { machine.block() } -> std::same_as<int>;        // block in a one-dimensional grid
  { machine.grid_blocks() } -> std::same_as<int>;  // blocks in the grid
  // `shared<T>()`: the block's shared memory as a T; uninitialised at start, 1024-byte aligned.

  // --- warp (all lanes; values of lanes that have exited are never read) -------------------------
  // One lane, the same one at every call: true there.
  { machine.elect() } -> std::same_as<bool>;
  // Orders the memory accesses of all lanes before it before those of all lanes after it.
  machine.sync_warp();
  { machine.shuffle(word, index) } -> std::same_as<uint32_t>;  // value of lane `index`
  { machine.shuffle(x, index) } -> std::same_as<float>;
  { machine.shuffle_xor(x, index) } -> std::same_as<float>;  // value of lane ^ index
  { machine.shuffle_xor(word, index) } -> std::same_as<uint32_t>;
  { machine.shuffle_up(word, index) } -> std::same_as<uint32_t>;  // lane - index, else own value
  { machine.any(true) } -> std::same_as<bool>;
  { machine.ballot(true) } -> std::same_as<uint32_t>;
  { machine.lowest_lane(word) } -> std::same_as<int>;  // of a ballot that is not 0

  // --- block and named barriers (converged warps) ------------------------------------------------
  machine.sync_block();  // all threads; joins all their memory accesses
  // Named barrier `index` of `threads` threads (a multiple of 32). arrive does not block and
  // releases, sync blocks until all have arrived and acquires. Generic proxy.
  machine.arrive_named(index, 64);
  machine.sync_named(index, 64);

  // --- generic-proxy access (each thread; T trivially copyable, 1 to 16 bytes, aligned) ----------
  { machine.load_shared(shared_word) } -> std::same_as<float>;
  machine.store_shared(shared_target, x);
  { machine.load_global(global) } -> std::same_as<float>;    // coherent with this launch's writes
  { machine.load_constant(global) } -> std::same_as<float>;  // nobody writes it during the launch
  machine.store_global(global, x);

  // --- device scope (each thread) ----------------------------------------------------------------
  // Adds and returns the old value: acquire and release at device scope. Cumulative: whatever
  // happened before it in this thread, also by other threads through block barriers or mbarriers,
  // is visible to whoever reads the new value.
  { machine.add_acq_rel(counter, word) } -> std::same_as<uint32_t>;
  { machine.load_acquire(counter) } -> std::same_as<uint32_t>;
  machine.store_release(counter, word);

  // --- mbarriers (each thread) -------------------------------------------------------------------
  machine.init(barrier, 1);      // expected arrivals per phase; once, before anybody uses it
  machine.fence_barrier_init();  // makes inits visible to copies and commits; then sync_block
  machine.arrive(barrier);       // one arrival, releases this thread's accesses
  // One arrival and `bytes` more to come by copies in this phase; the phase completes when all
  // arrivals and all bytes are in.
  machine.arrive_expect(barrier, word);
  // Blocks until `phase` is complete; acquires what its arrivals released. The caller must know
  // that phase - 1 is complete and must not be two phases late: parity cannot tell more.
  machine.wait(barrier, phase);
  { machine.test(barrier, phase) } -> std::same_as<bool>;  // one try; true acquires like wait

  // --- asynchronous copies, global to shared (each thread; async proxy) --------------------------
  // One box of the map at the coordinates (inner to outer, signed; elements outside the tensor
  // arrive as zeros and are not read). Writes box bytes at `tile` (128-byte aligned, swizzled by
  // shared address) and then completes the whole box's bytes on `barrier`. Ordered after the
  // caller's earlier operations, with nothing else; generic writes to the tile need fence_async.
  machine.copy_tensor(tile, map, coordinate, barrier);
  // `bytes` (multiple of 16) of global memory, both addresses 16-byte aligned.
  machine.copy_bulk(tile, global, word, barrier);
  machine.prefetch_map(map);  // a hint
  // Generic-proxy writes to shared memory before it become visible to the async proxy (copies, MMA
  // operands) after it. By the writer before its release, or by the issuer after its acquire.
  machine.fence_async();

  // --- programmatic dependent launch (each thread) -----------------------------------------------
  // Blocks until the grid before this one in the stream has ended and what it wrote is visible; at
  // once where the launch did not ask for an early start. Every block of a grid that starts early
  // must wait, or the next grid would not know that the grids before both have ended.
  machine.wait_previous_grid();
  machine.allow_next_grid();  // grids behind this one may start early, once all blocks say so

  // --- registers (warpgroup, the same value in all four warps; 24 to 256, multiple of 8) ---------
  machine.template grow_registers<200>();  // blocks until the block's pool has them
  machine.template shrink_registers<48>();

  // --- arithmetic (each thread; one stated approximation each) -----------------------------------
  { machine.exp2(x) } -> std::same_as<float>;  // 2 ulp, subnormal results become zero
  { machine.log2(x) } -> std::same_as<float>;
  { machine.tanh(x) } -> std::same_as<float>;
  { machine.max(x, x) } -> std::same_as<float>;                // NaN if either is
  { machine.fma(x, x, x) } -> std::same_as<float>;             // one rounding
  { machine.fma2(pair, pair, pair) } -> std::same_as<Float2>;  // one instruction on sm_100
  { machine.add2(pair, pair) } -> std::same_as<Float2>;
  { machine.mul2(pair, pair) } -> std::same_as<Float2>;
  { machine.add_round_down(x, x) } -> std::same_as<float>;          // rounded toward minus infinity
  { machine.template pack<Bf16>(x, x) } -> std::same_as<uint32_t>;  // first value in the low half
  { machine.template pack<Half>(x, x) } -> std::same_as<uint32_t>;
  machine.charge(Work::fma, index);  // `index` operations of this kind per thread, for the clock

  // --- provenance: compiles to nothing on a GPU --------------------------------------------------
  // The copies that this thread issues next bring tensor `kind` ('q', 'k', 'v') of KV block
  // `index`; the MMAs it issues next must read that. The emulator reports an MMA that reads
  // something else.
  machine.mark_operand('k', index);
  machine.expect_operand('k', index);
  machine.at_block(index);  // this warp now works on that KV block: for messages

  // --- trace ------------------------------------------------------------------------------------
  // A machine whose Tracer records nothing says so here, and kernels then leave the calls out: an
  // argument that nobody reads is enough to make a compiler order its code differently.
  { M::kTraces } -> std::convertible_to<bool>;
  // Warp. Records of this warp, by its elected lane; they order nothing and change no value. The
  // ranges of a warp nest. An arrival is noted before it is made, a commit when it is issued.
  machine.trace_begin(at);
  machine.trace_end(at);   // the event alone counts
  machine.trace_next(at);  // the innermost range ends and this one begins, in one record
  machine.trace_instant(at);
  machine.trace_value(at.event, word);  // 23 bits
};

/// sm_90a: matrix instructions with accumulators in registers.
template <class M>
concept HopperMachine = CoreMachine<M> &&
    requires(M machine, float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
             uint32_t (&matrices)[4], const void* row, void* tile, const TensorMap& map,
             const int32_t (&coordinate)[5], Barrier& barrier, uint32_t word, uint32_t* global) {
  // Each thread. As with four coordinates; the bytes are read once, caches need not keep them.
  machine.copy_tensor(tile, map, coordinate, barrier);
  // Each thread. Lowest lane of a ballot that is not empty.
  { machine.lowest_lane(word) } -> std::same_as<int>;
  // Each thread. Bytes 0, 2, 1, 3 of a word; two e4m3 values as two halves, exact, NaN stays NaN.
  { machine.swap_middle_bytes(word) } -> std::same_as<uint32_t>;
  { machine.half_from_e4m3(uint16_t{}) } -> std::same_as<uint32_t>;
  // Each thread. Sets a word of host memory from 0 to 1: true for the one thread of the device that
  // did. A release store that the host sees after everything this thread wrote before.
  { machine.claim(global) } -> std::same_as<bool>;
  machine.store_release_system(global, word);
  // Warp. d += A B for a 16 x 8 x 16 tile; synchronous, registers in the PTX fragment layout.
  machine.template mma_16x8x16<Bf16>(d, a, b);
  machine.template mma_16x8x16<Half>(d, a, b);
  // Warp. Four 8 x 8 matrices of 16-bit elements; lanes 8i .. 8i+7 give the row addresses (16-byte
  // aligned) of matrix i. Generic proxy. The second form transposes each matrix.
  machine.load_matrices(matrices, row);
  machine.load_matrices_transposed(matrices, row);
  // Warpgroup. Asynchronous, reads shared operands by the async proxy. fence before the first
  // MMA and after any access to accumulator or A registers; those stay untouched until a wait.
  machine.wgmma_fence();
  machine.wgmma_commit();
  machine.template wgmma_wait<0>();  // at most that many committed groups are still running
};

/// sm_100a: tensor memory and tcgen05. Columns are 32 bits wide, 128 lanes; lane = row of the tile.
template <class M>
concept BlackwellMachine = CoreMachine<M> &&
    requires(M machine, Barrier& barrier, uint32_t column, uint32_t& address, uint64_t descriptor,
             uint32_t (&in)[32], const uint32_t (&out)[16], const void* tile, uint32_t* global) {
  // Each thread: as for Hopper.
  { machine.claim(global) } -> std::same_as<bool>;
  machine.store_release_system(global, column);
  // Warp. Takes `columns` (power of two, at least 32) and writes their first address by a plain
  // store: publish it by a barrier. One warp allocates, gives up the right to, and frees.
  machine.allocate_tensor_memory(address, 512);
  machine.relinquish_tensor_memory();
  machine.free_tensor_memory(column, 512);
  // Warp. Thread l <-> lane 32 (warp % 4) + l, register j <-> column + j. Asynchronous:
  // registers are valid, and the columns may be given away, only after wait_tensor_loads;
  // stores are complete, and may be signalled, only after wait_tensor_stores.
  machine.load_tensor(in, column);
  machine.store_tensor(column, out);
  machine.wait_tensor_loads();
  machine.wait_tensor_stores();
  // Each thread. Before an arrival that hands over tensor memory; after the wait that took it.
  machine.fence_before_sync();
  machine.fence_after_sync();
  // One thread, always the same. D[128 x N] (+)= A B, one K step of 32 bytes, asynchronous, in
  // issue order on one accumulator. D starts at `column`; accumulate = false overwrites all of D.
  // A and B by shared-memory descriptor (async proxy), or A in tensor memory at a column.
  machine.mma_shared(column, descriptor, descriptor, column, true);
  machine.mma_tensor(column, column, descriptor, column, true);
  // One arrival on `barrier` when all earlier MMAs of this thread have finished. Releases those
  // MMAs, not the thread's own generic writes. Implies fence_before_sync for them.
  machine.commit(barrier);
  { machine.shared_address(tile) } -> std::same_as<uint32_t>;  // for descriptors
};

}  // namespace deuce
