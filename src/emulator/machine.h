// SPDX-License-Identifier: Apache-2.0
// The machine as the emulator implements it: each operation becomes an Op for the scheduler.
// One object per fiber; contracts are those of kernel/machine.h. Register arithmetic runs in place.
#pragma once

#include <cmath>
#include <cstring>
#include <type_traits>

#include "emulator/block.h"
#include "emulator/matrix.h"
#include "kernel/hopper/machine.h"

namespace deuce::emulator {

class Machine {
 public:
  static constexpr bool kTraces = true;  // if Options::recorder asks for it

  explicit Machine(Lane& lane) : lane_(lane) {}

  int thread() const { return lane_.thread; }
  int lane() const { return lane_.thread % 32; }
  int warp() const { return lane_.thread / 32; }
  int block() const { return lane_.block->index(); }
  int grid_blocks() const { return lane_.block->launch().blocks; }
  template <class T>
  T& shared() {
    return *reinterpret_cast<T*>(lane_.block->shared());
  }

  bool elect() const { return lane() == 0; }
  void sync_warp(Site site = Site::here()) { run(OpKind::sync_warp, site); }
  uint32_t shuffle(uint32_t value, int source, Site site = Site::here()) {
    return exchange(OpKind::shuffle_index, value, source, site);
  }
  float shuffle(float value, int source, Site site = Site::here()) {
    return as_float(exchange(OpKind::shuffle_index, as_word(value), source, site));
  }
  float shuffle_xor(float value, int mask, Site site = Site::here()) {
    return as_float(exchange(OpKind::shuffle_xor, as_word(value), mask, site));
  }
  uint32_t shuffle_xor(uint32_t value, int mask, Site site = Site::here()) {
    return exchange(OpKind::shuffle_xor, value, mask, site);
  }
  uint32_t shuffle_up(uint32_t value, int distance, Site site = Site::here()) {
    return exchange(OpKind::shuffle_up, value, distance, site);
  }
  uint32_t ballot(bool vote, Site site = Site::here()) {
    Op op = make(OpKind::ballot, site);
    op.flag = vote;
    lane_.submit(op);
    return op.value;
  }
  static int lowest_lane(uint32_t lanes) { return __builtin_ctz(lanes); }
  bool any(bool vote, Site site = Site::here()) { return ballot(vote, site) != 0; }

  void sync_block(Site site = Site::here()) { run(OpKind::sync_block, site); }
  void arrive_named(int id, int threads, Site site = Site::here()) {
    named(OpKind::arrive_named, id, threads, site);
  }
  void sync_named(int id, int threads, Site site = Site::here()) {
    named(OpKind::sync_named, id, threads, site);
  }

  template <class T>
  T load_shared(const T& from, Site site = Site::here()) {
    return load<T>(OpKind::load_shared, &from, site);
  }
  template <class T>
  void store_shared(T& to, const std::type_identity_t<T>& value, Site site = Site::here()) {
    store(OpKind::store_shared, &to, value, site);
  }
  template <class T>
  T load_global(const T* from, Site site = Site::here()) {
    return load<T>(OpKind::load_global, from, site);
  }
  template <class T>
  T load_constant(const T* from, Site site = Site::here()) {
    return load<T>(OpKind::load_constant, from, site);
  }
  template <class T>
  void store_global(T* to, const std::type_identity_t<T>& value, Site site = Site::here()) {
    store(OpKind::store_global, to, value, site);
  }
  uint32_t add_acq_rel(uint32_t* counter, uint32_t value, Site site = Site::here()) {
    return atomic(OpKind::atomic_add, counter, value, site);
  }
  uint32_t load_acquire(const uint32_t* word, Site site = Site::here()) {
    return atomic(OpKind::load_acquire, const_cast<uint32_t*>(word), 0, site);
  }
  void store_release(uint32_t* word, uint32_t value, Site site = Site::here()) {
    atomic(OpKind::store_release, word, value, site);
  }

  bool claim(uint32_t* word, Site site = Site::here()) {
    return atomic(OpKind::claim, word, 1, site) == 0;
  }
  void store_release_system(uint32_t* word, uint32_t value, Site site = Site::here()) {
    atomic(OpKind::store_release, word, value, site);
  }

  void init(Barrier& barrier, int arrivals, Site site = Site::here()) {
    Op op = make(OpKind::init, site, &barrier);
    op.value = static_cast<uint32_t>(arrivals);
    lane_.submit(op);
  }
  void fence_barrier_init(Site site = Site::here()) { run(OpKind::fence_barrier_init, site); }
  void arrive(Barrier& barrier, Site site = Site::here()) {
    Op op = make(OpKind::arrive, site, &barrier);
    lane_.submit(op);
  }
  void arrive_expect(Barrier& barrier, uint32_t bytes, Site site = Site::here()) {
    Op op = make(OpKind::arrive_expect, site, &barrier);
    op.bytes = bytes;
    lane_.submit(op);
  }
  void wait(Barrier& barrier, Phase phase, Site site = Site::here()) {
    Op op = make(OpKind::wait, site, &barrier);
    op.index = phase;
    lane_.submit(op);
  }
  bool test(Barrier& barrier, Phase phase, Site site = Site::here()) {
    Op op = make(OpKind::test, site, &barrier);
    op.index = phase;
    lane_.submit(op);
    return op.flag;
  }

  template <std::size_t kRank>
  void copy_tensor(void* tile, const TensorMap& map, const int32_t (&coordinate)[kRank],
                   Barrier& barrier, Site site = Site::here()) {
    Op op = make(OpKind::copy_tensor, site, &barrier);
    op.target = tile;
    op.source = &map;
    op.rank = static_cast<int32_t>(kRank);
    for (std::size_t i = 0; i < kRank; ++i) op.coordinate[i] = coordinate[i];
    lane_.submit(op);
  }
  void copy_bulk(void* tile, const void* from, uint32_t bytes, Barrier& barrier,
                 Site site = Site::here()) {
    Op op = make(OpKind::copy_bulk, site, &barrier);
    op.target = tile;
    op.source = from;
    op.bytes = bytes;
    lane_.submit(op);
  }
  void prefetch(const void* address, Site site = Site::here()) {
    Op op = make(OpKind::prefetch, site);
    op.source = address;
    lane_.submit(op);
  }
  void prefetch_map(const TensorMap&, Site site = Site::here()) { run(OpKind::prefetch_map, site); }
  void fence_async(Site site = Site::here()) { run(OpKind::fence_async, site); }

  // One grid at a time: nothing runs before it or behind it.
  static void wait_previous_grid() {}
  static void allow_next_grid() {}

  template <int kRegisters>
  void grow_registers(Site site = Site::here()) {
    change_registers(kRegisters, true, site);
  }
  template <int kRegisters>
  void shrink_registers(Site site = Site::here()) {
    change_registers(kRegisters, false, site);
  }

  static float exp2(float x) {
    const float result = ::exp2f(x);
    return result < 0x1p-126f ? 0.0f : result;
  }
  static float log2(float x) { return ::log2f(x); }
  static float tanh(float x) { return ::tanhf(x); }
  static float max(float a, float b) { return a > b || a != a ? a : b; }
  static float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
  static Float2 fma2(Float2 a, Float2 b, Float2 c) {
    return {fma(a.x, b.x, c.x), fma(a.y, b.y, c.y)};
  }
  static Float2 add2(Float2 a, Float2 b) { return {a.x + b.x, a.y + b.y}; }
  static Float2 mul2(Float2 a, Float2 b) { return {a.x * b.x, a.y * b.y}; }
  static float add_round_down(float a, float b) {
    const float sum = a + b;  // nearest; one step down where that was above the exact sum
    const double exact = static_cast<double>(a) + static_cast<double>(b);
    return static_cast<double>(sum) > exact ? ::nextafterf(sum, -INFINITY) : sum;
  }
  template <class Element>
  static uint32_t pack(float low, float high) {
    return from_float<Element>(low).bits | static_cast<uint32_t>(from_float<Element>(high).bits)
                                               << 16;
  }
  void charge(Work work, int count) {
    lane_.work[static_cast<std::size_t>(work)] += static_cast<uint32_t>(count);
  }

  void mark_operand(char tensor, int block) {
    Warp& warp = lane_.block->warp_of(lane_);
    warp.mark = tensor;
    warp.mark_block = block;
  }
  void expect_operand(char tensor, int block) {
    Warp& warp = lane_.block->warp_of(lane_);
    warp.expected = tensor;
    warp.expected_block = block;
  }
  void at_block(int block) { lane_.block->warp_of(lane_).kv_block = block; }

  void trace_begin(trace::At at, Site site = Site::here()) {
    lane_.block->note_operands(lane_, at);
    record(trace::Kind::begin, at, site);
  }
  void trace_end(trace::At at, Site site = Site::here()) { record(trace::Kind::end, at, site); }
  void trace_next(trace::At at, Site site = Site::here()) {
    lane_.block->note_operands(lane_, at);
    record(trace::Kind::next, at, site);
  }
  void trace_instant(trace::At at, Site site = Site::here()) {
    record(trace::Kind::instant, at, site);
  }
  void trace_value(trace::Event event, uint32_t value, Site site = Site::here()) {
    record(event, trace::pack_value(event, value), site);
  }

  void allocate_tensor_memory(uint32_t& address, uint32_t columns, Site site = Site::here()) {
    Op op = make(OpKind::tensor_alloc, site);
    op.target = &address;
    op.bytes = columns;
    lane_.submit(op);
  }
  void relinquish_tensor_memory(Site site = Site::here()) { run(OpKind::tensor_relinquish, site); }
  void free_tensor_memory(uint32_t, uint32_t columns, Site site = Site::here()) {
    Op op = make(OpKind::tensor_free, site);
    op.bytes = columns;
    lane_.submit(op);
  }
  template <class Word, std::size_t kCount>
  void load_tensor(Word (&to)[kCount], uint32_t column, Site site = Site::here()) {
    static_assert(sizeof(Word) == 4);
    tensor_access(OpKind::tensor_load, to, nullptr, column, kCount, site);
  }
  template <class Word, std::size_t kCount>
  void store_tensor(uint32_t column, const Word (&from)[kCount], Site site = Site::here()) {
    static_assert(sizeof(Word) == 4);
    tensor_access(OpKind::tensor_store, nullptr, from, column, kCount, site);
  }
  void wait_tensor_loads(Site site = Site::here()) { run(OpKind::wait_loads, site); }
  void wait_tensor_stores(Site site = Site::here()) { run(OpKind::wait_stores, site); }
  void fence_before_sync(Site site = Site::here()) { run(OpKind::fence_before, site); }
  void fence_after_sync(Site site = Site::here()) { run(OpKind::fence_after, site); }
  void mma_shared(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction, bool accumulate,
                  Site site = Site::here()) {
    Op op = make(OpKind::mma_shared, site);
    op.column = d;
    op.a_descriptor = a;
    op.b_descriptor = b;
    op.instruction = instruction;
    op.flag = accumulate;
    lane_.submit(op);
  }
  void mma_tensor(uint32_t d, uint32_t a_column, uint64_t b, uint32_t instruction, bool accumulate,
                  Site site = Site::here()) {
    Op op = make(OpKind::mma_tensor, site);
    op.column = d;
    op.a_column = a_column;
    op.b_descriptor = b;
    op.instruction = instruction;
    op.flag = accumulate;
    lane_.submit(op);
  }
  void commit(Barrier& barrier, Site site = Site::here()) {
    Op op = make(OpKind::commit, site, &barrier);
    lane_.submit(op);
  }
  void load_matrices(uint32_t (&matrices)[4], const void* row, Site site = Site::here()) {
    matrix_load(matrices, row, false, site);
  }
  void load_matrices_transposed(uint32_t (&matrices)[4], const void* row,
                                Site site = Site::here()) {
    matrix_load(matrices, row, true, site);
  }
  template <class Element>
  void mma_16x8x16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                   Site site = Site::here()) {
    Op op = make(OpKind::mma_sync, site);
    op.flag = std::is_same_v<Element, Bf16>;
    op.target = d;
    op.source = a;
    op.words = {b[0], b[1]};
    lane_.submit(op);
  }
  template <class Element, bool kTransposed, std::size_t kTiles>
  void wgmma(float (&d)[kTiles][4], const uint32_t (&a)[4], uint64_t b, bool accumulate,
             Site site = Site::here()) {
    Op op = make(OpKind::wgmma, site);
    op.target = d;
    op.source = a;
    op.b_descriptor = b;
    op.flag = accumulate;
    op.bf16 = std::is_same_v<Element, Bf16>;
    op.transposed = kTransposed;
    op.index = static_cast<int32_t>(kTiles);
    lane_.submit(op);
  }
  template <std::size_t kTiles>
  void wgmma_pin(float (&d)[kTiles][4], Site site = Site::here()) {
    Op op = make(OpKind::wgmma_pin, site);
    op.target = d;
    lane_.submit(op);
  }
  void wgmma_fence(Site site = Site::here()) { run(OpKind::wgmma_fence, site); }
  void wgmma_commit(Site site = Site::here()) { run(OpKind::wgmma_commit, site); }
  template <int kPending>
  void wgmma_wait(Site site = Site::here()) {
    Op op = make(OpKind::wgmma_wait, site);
    op.index = kPending;
    lane_.submit(op);
  }
  static uint32_t swap_middle_bytes(uint32_t word) {
    return (word & 0xff0000ffu) | (word & 0xff00u) << 8 | (word >> 8 & 0xff00u);
  }
  uint32_t half_from_e4m3(uint16_t pair) {
    ++lane_.work[kWorkFromE4m3];
    return kHalfFromE4m3[pair & 0xffu] | static_cast<uint32_t>(kHalfFromE4m3[pair >> 8]) << 16;
  }
  uint32_t shared_address(const void* at) const {
    return static_cast<uint32_t>(static_cast<const std::byte*>(at) - lane_.block->shared());
  }

 private:
  void record(trace::Kind kind, trace::At at, Site site) {
    record(at.event, trace::pack(kind, at.event, at.slot, at.phase, at.block), site);
  }
  // An operation only where somebody records, and of the elected lane alone.
  void record(trace::Event event, uint32_t word, Site site) {
    const trace::Recorder* recorder = lane_.block->options().recorder;
    if (recorder == nullptr || !elect() || !recorder->takes(event)) return;
    Op op = make(OpKind::trace, site);
    op.value = word;
    lane_.submit(op);
  }
  static Op make(OpKind kind, Site site, Barrier* barrier = nullptr) {
    Op op;
    op.kind = kind;
    op.site = site;
    op.barrier = barrier;
    return op;
  }
  void run(OpKind kind, Site site) {
    Op op = make(kind, site);
    lane_.submit(op);
  }
  void named(OpKind kind, int id, int threads, Site site) {
    Op op = make(kind, site);
    op.index = id;
    op.bytes = static_cast<uint32_t>(threads);
    lane_.submit(op);
  }
  uint32_t exchange(OpKind kind, uint32_t value, int argument, Site site) {
    Op op = make(kind, site);
    op.value = value;
    op.bytes = static_cast<uint32_t>(argument);
    lane_.submit(op);
    return op.value;
  }
  template <class T>
  T load(OpKind kind, const T* from, Site site) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16);
    T value;
    Op op = make(kind, site);
    op.target = &value;
    op.source = from;
    op.bytes = sizeof(T);
    lane_.submit(op);
    return value;
  }
  template <class T>
  void store(OpKind kind, T* to, const T& value, Site site) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16);
    Op op = make(kind, site);
    op.target = to;
    op.source = &value;
    op.bytes = sizeof(T);
    lane_.submit(op);
  }
  uint32_t atomic(OpKind kind, uint32_t* word, uint32_t value, Site site) {
    Op op = make(kind, site);
    op.target = word;
    op.value = value;
    lane_.submit(op);
    return op.value;
  }
  void matrix_load(uint32_t (&matrices)[4], const void* row, bool transposed, Site site) {
    Op op = make(OpKind::load_matrices, site);
    op.flag = transposed;
    op.target = matrices;
    op.source = row;
    lane_.submit(op);
  }
  void change_registers(int count, bool grow, Site site) {
    Op op = make(OpKind::registers, site);
    op.index = count;
    op.flag = grow;
    lane_.submit(op);
  }
  void tensor_access(OpKind kind, void* to, const void* from, uint32_t column, std::size_t count,
                     Site site) {
    Op op = make(kind, site);
    op.target = to;
    op.source = from;
    op.column = column + (static_cast<uint32_t>(warp() % 4 * 32) << 16);
    op.bytes = static_cast<uint32_t>(count);
    lane_.submit(op);
  }
  static uint32_t as_word(float value) {
    uint32_t word;
    std::memcpy(&word, &value, sizeof word);
    return word;
  }
  static float as_float(uint32_t word) {
    float value;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }

  Lane& lane_;
};

static_assert(BlackwellMachine<Machine> && WarpgroupMachine<Machine>);

}  // namespace deuce::emulator
