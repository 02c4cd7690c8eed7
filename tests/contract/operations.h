// SPDX-License-Identifier: Apache-2.0
// What a machine promises, as small kernels of 128 threads: written once, for the emulator and for
// a Hopper GPU, which must give the same words.
#pragma once

#include <bit>
#include <cstdint>

#include "kernel/hopper/group_descriptors.h"
#include "kernel/machine.h"

namespace deuce::contract {

enum class Operation : uint8_t {
  phases,          // an mbarrier of 128 arrivals goes round, and orders what lies before it
  not_before,      // a phase is not complete while an arrival is missing
  bytes,           // nor while bytes are missing; bytes may come before they are announced
  box,             // a tensor copy: swizzle, zero fill outside the tensor, over fenced stores
  named_barriers,  // arrive does not block, sync does, and both hand memory over
  shuffles,        // shuffles and votes
  matrices,        // ldmatrix, plain and transposed: which lane gets which elements
  mma_sync,        // mma.sync m16n8k16 of both types: which register holds which element
  wgmma_keys,      // wgmma with B as K lies in shared memory, two steps from zero
  wgmma_values,    // and with B as V lies there, onto an accumulator
  e4m3             // every e4m3 value as half, and bytes of a word changing places
};

inline constexpr int kThreads = 128;
inline constexpr uint32_t kTileBytes = 4096;
inline constexpr int kOutWords = kTileBytes / 4;
inline constexpr uint32_t kStale = 0xdeadbeefu;    // what a tile holds before a copy
inline constexpr uint32_t kScatter = 2654435761u;  // i * kScatter: words that differ in every byte
inline constexpr uint32_t kNan = 0x7fffu;          // as half

struct Params {
  TensorMap map;           // of `box`
  int32_t coordinate[4];   // inner to outer
  const uint32_t* source;  // of `bytes`: 64 words
  uint32_t* out;           // kOutWords words
};

struct Storage {
  alignas(1024) uint32_t tile[kOutWords];
  alignas(1024) uint32_t operand[2048];  // 64 rows of 128 bytes, swizzled
  uint32_t words[kThreads];
  Barrier first, second;
};

template <class M>
DEUCE_DEVICE void init(M& machine, Storage& shared, int first, int second) {
  if (machine.thread() == 0) {
    machine.init(shared.first, first);
    machine.init(shared.second, second);
    machine.fence_barrier_init();
  }
  machine.sync_block();
}

template <class M>
DEUCE_DEVICE void phases(M& machine, Storage& shared, const Params& params) {
  init(machine, shared, kThreads, kThreads);
  const int thread = machine.thread();
  uint32_t sum = 0;
  for (Phase phase = 0; phase < 6; ++phase) {
    machine.store_shared(shared.words[thread], static_cast<uint32_t>(10 * thread + phase));
    machine.arrive(shared.first);
    machine.wait(shared.first, phase);
    sum += machine.load_shared(shared.words[(thread + 1) % kThreads]);
    machine.arrive(shared.second);
    machine.wait(shared.second, phase);
  }
  machine.store_global(params.out + thread, sum);
}

template <class M>
DEUCE_DEVICE void not_before(M& machine, Storage& shared, const Params& params) {
  init(machine, shared, 2, 1);
  machine.wait(shared.first, -1);  // the phase before the first has passed
  const uint32_t early = machine.test(shared.first, 0) ? 1 : 0;
  machine.sync_block();
  if (machine.thread() == 0) machine.arrive(shared.first);
  machine.sync_block();
  const uint32_t half = machine.test(shared.first, 0) ? 2 : 0;
  machine.sync_block();
  if (machine.thread() == 0) machine.arrive(shared.first);
  machine.sync_warp();
  machine.wait(shared.first, 0);
  machine.store_global(params.out + machine.thread(), early | half | 4u);
}

template <class M>
DEUCE_DEVICE void bytes(M& machine, Storage& shared, const Params& params) {
  init(machine, shared, 1, 1);
  const int thread = machine.thread();
  if (thread == 0) {
    machine.arrive_expect(shared.first, 256);
    machine.copy_bulk(shared.tile, params.source, 128, shared.first);
  }
  machine.sync_block();
  const uint32_t half = machine.test(shared.first, 0) ? 1 : 0;
  machine.sync_block();
  if (thread == 0) machine.copy_bulk(shared.tile + 32, params.source + 32, 128, shared.first);
  machine.sync_warp();
  machine.wait(shared.first, 0);
  machine.store_global(params.out + thread, machine.load_shared(shared.tile[thread % 64]));
  machine.fence_async();
  machine.sync_block();
  if (thread == 0) {  // the copy may land before its bytes are announced: the arrival is missing
    machine.copy_bulk(shared.tile, params.source + 32, 128, shared.first);
    machine.arrive_expect(shared.first, 128);
  }
  machine.sync_warp();
  machine.wait(shared.first, 1);
  machine.store_global(params.out + kThreads + thread,
                       half + machine.load_shared(shared.tile[thread % 32]));
}

template <class M>
DEUCE_DEVICE void box(M& machine, Storage& shared, const Params& params) {
  init(machine, shared, 1, 1);
  const int thread = machine.thread();
  for (int i = thread; i < kOutWords; i += kThreads) machine.store_shared(shared.tile[i], kStale);
  machine.fence_async();
  machine.sync_block();
  if (thread == 0) {
    const int32_t at[4] = {params.coordinate[0], params.coordinate[1], params.coordinate[2],
                           params.coordinate[3]};
    machine.arrive_expect(shared.first, kTileBytes);
    machine.copy_tensor(shared.tile, params.map, at, shared.first);
  }
  machine.sync_warp();
  machine.wait(shared.first, 0);
  for (int i = thread; i < kOutWords; i += kThreads) {
    machine.store_global(params.out + i, machine.load_shared(shared.tile[i]));
  }
}

template <class M>
DEUCE_DEVICE void named_barriers(M& machine, Storage& shared, const Params& params) {
  const int thread = machine.thread();
  const bool gives = machine.warp() < 2;
  uint32_t sum = 0;
  for (uint32_t round = 1; round <= 3; ++round) {
    if (gives) {
      machine.store_shared(shared.words[thread], 100 * round + static_cast<uint32_t>(thread));
      machine.arrive_named(1, kThreads);
      machine.sync_named(2, kThreads);
    } else {
      machine.sync_named(1, kThreads);
      sum += machine.load_shared(shared.words[thread - 64]);
      machine.arrive_named(2, kThreads);
    }
  }
  machine.store_global(params.out + thread, sum);
}

template <class M>
DEUCE_DEVICE void shuffles(M& machine, const Params& params) {
  const int lane = machine.lane();
  const int warp = machine.warp();  // itself a shuffle: all lanes must call it
  const auto value = static_cast<uint32_t>(100 * warp + lane);
  uint32_t* out = params.out + 5 * machine.thread();
  machine.store_global(out, machine.shuffle(value, (lane + 5) % 32));
  machine.store_global(out + 1, machine.shuffle_xor(value, 9));
  machine.store_global(out + 2, machine.shuffle_up(value, 3));
  machine.store_global(out + 3, machine.ballot(lane % 3 == 0));
  machine.store_global(out + 4, machine.any(lane == 7 && warp == 2) ? 1u : 0u);
}

/// 16-byte row r of the tile goes to lane r ^ 5 of its warp as an address.
template <class M>
DEUCE_DEVICE void matrices(M& machine, Storage& shared, const Params& params) {
  const int thread = machine.thread();
  for (int i = thread; i < kOutWords; i += kThreads) {
    machine.store_shared(shared.tile[i], static_cast<uint32_t>(i) * kScatter);
  }
  machine.sync_block();
  const uint32_t* row = shared.tile + 4 * (thread ^ 5);
  uint32_t plain[4], transposed[4];
  machine.load_matrices(plain, row);
  machine.load_matrices_transposed(transposed, row);
  for (int i = 0; i < 4; ++i) {
    machine.store_global(params.out + 4 * thread + i, plain[i]);
    machine.store_global(params.out + 4 * (kThreads + thread) + i, transposed[i]);
  }
}

// Elements of the matrices of mma_sync: whole numbers, so that every sum is exact.
DEUCE_DEVICE float a_element(int warp, int row, int k) {
  return static_cast<float>((3 * row + 5 * k + warp) % 7 - 3);
}
DEUCE_DEVICE float b_element(int k, int column) {
  return static_cast<float>((2 * k + 3 * column) % 5 - 2);
}
DEUCE_DEVICE float d_element(int row, int column) { return static_cast<float>(8 * row + column); }

template <class T, class M>
DEUCE_DEVICE void multiply(M& machine, uint32_t* out) {
  const int warp = machine.warp(), group = machine.lane() / 4, pair = 2 * (machine.lane() % 4);
  uint32_t a[4], b[2];
  float d[4];
  for (int i = 0; i < 4; ++i) {
    const int row = group + 8 * (i % 2), k = pair + 8 * (i / 2);
    a[i] = machine.template pack<T>(a_element(warp, row, k), a_element(warp, row, k + 1));
    d[i] = d_element(group + 8 * (i / 2), pair + i % 2);
  }
  for (int i = 0; i < 2; ++i) {
    const int k = pair + 8 * i;
    b[i] = machine.template pack<T>(b_element(k, group), b_element(k + 1, group));
  }
  machine.template mma_16x8x16<T>(d, a, b);
  for (int i = 0; i < 4; ++i) {
    machine.store_global(out + 4 * machine.thread() + i, std::bit_cast<uint32_t>(d[i]));
  }
}

template <class M>
DEUCE_DEVICE void mma_sync(M& machine, const Params& params) {
  multiply<Bf16>(machine, params.out);
  multiply<Half>(machine, params.out + 4 * kThreads);
}

/// D[64 x 64] = A B, transposed D += A B, over 32 elements of depth. B has a row of 128 bytes for
/// every column of D, as K has for every key; transposed, for every element of depth, as V. A
/// thread writes one element of each of its eight 8-column tiles.
template <class T, bool kTransposed, class M>
DEUCE_DEVICE void group_multiply(M& machine, Storage& shared, const Params& params) {
  using Descriptors = hopper::GroupDescriptors<hopper::Config{.head_dim = 64}>;
  const int thread = machine.thread(), warp = machine.warp();
  for (int i = thread; i < 2048; i += kThreads) {
    const int row = i / 32, column = 2 * (i % 32), chunk = i % 32 / 4;
    const uint32_t pair =
        kTransposed ? machine.template pack<T>(b_element(row, column), b_element(row, column + 1))
                    : machine.template pack<T>(b_element(column, row), b_element(column + 1, row));
    machine.store_shared(shared.operand[32 * row + 4 * (chunk ^ row % 8) + i % 4], pair);
  }
  machine.fence_async();
  machine.sync_block();
  const int group = machine.lane() / 4, pair = 2 * (machine.lane() % 4);
  uint32_t a[2][4];
  float d[8][4];
  DEUCE_UNROLL
  for (int i = 0; i < 8; ++i) {
    const int row = group + 8 * (i % 2), k = 16 * (i / 4) + pair + 8 * (i / 2 % 2);
    a[i / 4][i % 4] =
        machine.template pack<T>(a_element(warp, row, k), a_element(warp, row, k + 1));
    DEUCE_UNROLL
    for (int e = 0; e < 4; ++e) d[i][e] = d_element(group + 8 * (e / 2), 8 * i + pair + e % 2);
  }
  const uint32_t address = machine.shared_address(shared.operand);
  const uint64_t b = kTransposed ? Descriptors::values(address) : Descriptors::keys(address);
  machine.wgmma_pin(d);
  machine.wgmma_fence();
  DEUCE_UNROLL
  for (int step = 0; step < 2; ++step) {
    const uint64_t offset =
        kTransposed ? Descriptors::value_step(step) : Descriptors::key_step(step);
    machine.template wgmma<T, kTransposed>(d, a[step], b + offset, kTransposed || step > 0);
  }
  machine.wgmma_commit();
  machine.template wgmma_wait<0>();
  machine.wgmma_pin(d);
  DEUCE_UNROLL
  for (int i = 0; i < 8; ++i) {
    const float pick = (thread + i) % 4 == 0   ? d[i][0]
                       : (thread + i) % 4 == 1 ? d[i][1]
                       : (thread + i) % 4 == 2 ? d[i][2]
                                               : d[i][3];
    machine.store_global(params.out + 8 * thread + i, std::bit_cast<uint32_t>(pick));
  }
}

/// NaN has one form here: which of its bits are set is nobody's business.
DEUCE_DEVICE uint32_t one_nan(uint32_t half) { return (half & 0x7fffu) > 0x7c00u ? kNan : half; }

template <class M>
DEUCE_DEVICE void e4m3(M& machine, const Params& params) {
  const auto thread = static_cast<uint32_t>(machine.thread());
  const uint32_t codes = 2 * thread | (2 * thread + 1) << 8;
  const uint32_t halves = machine.half_from_e4m3(static_cast<uint16_t>(codes));
  machine.store_global(params.out + thread, one_nan(halves & 0xffffu) | one_nan(halves >> 16)
                                                                            << 16);
  machine.store_global(params.out + kThreads + thread,
                       machine.swap_middle_bytes((thread + 1) * kScatter));
}

template <class M>
DEUCE_DEVICE void run(M& machine, Operation operation, const Params& params) {
  auto& shared = machine.template shared<Storage>();
  switch (operation) {
    case Operation::phases: phases(machine, shared, params); break;
    case Operation::not_before: not_before(machine, shared, params); break;
    case Operation::bytes: bytes(machine, shared, params); break;
    case Operation::box: box(machine, shared, params); break;
    case Operation::named_barriers: named_barriers(machine, shared, params); break;
    case Operation::shuffles: shuffles(machine, params); break;
    case Operation::matrices: matrices(machine, shared, params); break;
    case Operation::mma_sync: mma_sync(machine, params); break;
    case Operation::wgmma_keys: group_multiply<Bf16, false>(machine, shared, params); break;
    case Operation::wgmma_values: group_multiply<Half, true>(machine, shared, params); break;
    case Operation::e4m3: e4m3(machine, params); break;
  }
}

}  // namespace deuce::contract
