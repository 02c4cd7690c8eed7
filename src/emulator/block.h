// SPDX-License-Identifier: Apache-2.0
// One emulated CTA: its warps, barriers, memories and asynchronous operations.
// Driven by grid.cpp, one event at a time; a warp instruction executes once all lanes that take
// part have arrived at it, as one event with a lane mask.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator/clock.h"
#include "emulator/fiber.h"
#include "emulator/launch.h"
#include "emulator/mma.h"
#include "emulator/shadow.h"
#include "emulator/shared_pipe.h"
#include "emulator/tensor_map.h"
#include "emulator/wgmma.h"

namespace deuce::emulator {

class Block;
class Grid;

/// Kinds of Work, and behind them what the machine counts by itself.
inline constexpr std::size_t kWorkFromE4m3 = 5, kWorkKinds = 6;

/// One CUDA thread.
struct Lane {
  Fiber fiber;
  Block* block = nullptr;
  int thread = 0;
  Op* pending = nullptr;
  bool done = false;
  std::array<uint32_t, kWorkKinds> work{};  // charged arithmetic since the last operation, by kind

  /// From kernel code: hands the operation over and returns when it has been executed.
  void submit(Op& op);
};

struct Warp {
  int index = 0;
  Role role = Role::idle;
  uint32_t lanes = 0;  // that run: all, or the elected one
  uint32_t live = 0, waiting = 0, runnable = 0, blocked = 0;
  uint32_t woken = 0;  // lanes that a completed phase has woken: their wait has been paid for
  bool queued = false;
  Clock clock;
  uint32_t sequence = 0;  // warp instructions so far = this warp's own component
  uint32_t unsynced = 0;  // lanes with accesses since the last sync_warp
  std::array<uint32_t, 32> first_unsynced{};
  uint32_t synced_loads = 0, synced_stores = 0;
  uint32_t last_load = 0, last_store = 0;  // tensor memory, sequence at issue
  double loads_done = 0, stores_done = 0;  // time at which they are complete
  double values_at = 0;  // when what loads and matrix instructions have left in registers is there
  bool in_matrices = false;  // the last instruction was ldmatrix or mma.sync
  double works_until = 0;    // of the step at hand: when its shared work ends
  double behind_work = -1;   // of the cost it is queued behind, what follows shared work; -1: none
  const PlainCode* plain = nullptr;  // beside the last operation
  WarpMmas mmas;                     // wgmma
  int kv_block = -1;
  char mark = 0, expected = 0;
  int32_t mark_block = -1, expected_block = -1;
  int registers = 0;
  int mma_lane = -1;
  TensorOrder after_fence{};  // tcgen05 operations of others, known at the last fence_after_sync
  trace::Slice* slice = nullptr;  // takes the warp's records, if somebody records
};

struct BarrierState {
  bool alive = false, init_fenced = false;
  int edge = -1, slot = 0;
  uint32_t offset = 0;
  int expected = 0, pending = 0;
  int64_t bytes = 0;
  Phase phase = 0;  // completed phases
  Clock gathering, completed;
  uint32_t copies = 0;  // epoch of the copies component
  // Of the phase, for traces: the first copy's issue, and what the copies bring.
  double copy_begin = -1;
  char copy_tensor = 0;
  int copy_block = 0;
  int init_warp = 0;
  uint32_t init_sequence = 0;
  uint64_t waits = 0;          // that had to block
  uint32_t waiters = 0;        // warps blocked in a wait
  uint32_t arrived_warps = 0;  // in the phase at hand
  std::array<Phase, kMaxWarps>
      observed;  // last phase each warp has seen complete, -2: never waited
  std::array<uint32_t, kMaxWarps> observed_at{};
  AccessRecord completed_by{};  // what ended the last phase
};

/// Warps that wait for each other, or the ones that wait for somebody who is gone.
struct WaitCycle {
  std::string text;
  std::set<std::string> edges;  // that they wait on
};

struct NamedState {
  int threads = 0, arrived = 0;
  uint32_t arrived_warps = 0;
  uint32_t blocked_warps = 0;
  Clock gathering;
};

struct AsyncOp {
  enum class Kind : uint8_t { copy, mma, commit, wgmma } kind;
  Clock clock;
  int barrier = -1;
  TensorMapSpec map;
  std::array<int32_t, 5> coordinate{};
  uint32_t address = 0, bytes = 0;
  const void* source = nullptr;  // bulk copies
  bool accumulate = false, from_tensor = false;
  uint32_t column = 0, a_column = 0;
  MmaShape shape;
  SharedOperand a, b;
  AccessRecord by{};  // copies, commits and wgmma: their issue
};

/// Lanes of one warp at the same call.
struct Group {
  uint32_t mask = 0;
  Op* first = nullptr;
};

class Block {
 public:
  Block(Grid& grid, const Launch& launch, const Options& options, int index);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void start();
  void step(int warp);
  void complete(AsyncOp& op);
  bool finished() const { return live_warps_ == 0; }
  int async_in_flight() const { return in_flight_; }
  /// One line per blocked warp and the cycle they form, whose edges are added to `edges`.
  std::string wait_for_graph(std::set<std::string>& edges) const;
  void check_exit();
  /// What is still held back for the trace.
  void end_trace() { flush_pipe(); }
  void count_phases(std::vector<EdgeUse>& per_edge) const;
  uint64_t rescales() const { return rescales_; }

  std::byte* shared() { return shared_.data() + shared_skip_; }
  const Launch& launch() const { return launch_; }
  const Options& options() const { return options_; }
  int index() const { return index_; }
  OpContext context(const Lane& lane) const;
  Warp& warp_of(const Lane& lane) { return warps_[static_cast<std::size_t>(lane.thread / 32)]; }
  /// What a kernel tells its tracer about the tile that a warp copies, reads or works on.
  void note_operands(const Lane& lane, const trace::At& at);

 private:
  // block.cpp: lanes, groups and dispatch
  Group choose(Warp& warp);
  double execute(Warp& warp, const Group& group);
  double fence(Warp& warp, const Group& group);
  void finish_lanes(Warp& warp, uint32_t mask);
  void wake(Warp& warp, double cost);
  double take_work(Warp& warp, uint32_t mask);
  bool still_works(Warp& warp);
  Op& op(const Warp& warp, int lane) const;
  template <class F>
  void each_lane(uint32_t mask, F&& f) const {
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) f(__builtin_ctz(rest));
  }
  void resume_lanes(Warp& warp);
  void stuck(const Warp& warp);

  // block_sync.cpp: warps and named barriers
  double shuffle(Warp& warp, const Group& group);
  double sync_block(Warp& warp, const Group& group);
  double named(Warp& warp, const Group& group);
  double registers(Warp& warp, const Group& group);
  void synchronised(Warp& warp);
  const Clock& released(const Warp& warp, uint32_t mask);
  const Edge* named_edge(int id) const;

  // block_barrier.cpp: mbarriers
  double init_barrier(Warp& warp, const Group& group);
  double arrive(Warp& warp, const Group& group);
  double wait(Warp& warp, const Group& group);
  // `by` is what brings the arrival or the bytes: findings name it.
  void arrive_on(int barrier, const AccessRecord& by, int arrivals, const Clock& clock,
                 bool order_only);
  void complete_bytes(int barrier, const AccessRecord& by, uint32_t bytes);
  void maybe_complete(int barrier, const AccessRecord& by);
  int barrier_index(const void* address, const Op& op, const Warp& warp);
  void check_waiters(BarrierState& barrier, const AccessRecord& by);
  bool phase_is_certain(const Warp& warp, const Op& call, int barrier);
  std::string edge_name(const BarrierState& barrier) const;
  bool role_arrives(const Edge& edge, Role role) const;
  int arrivals_of(const Warp& warp, uint32_t mask, const BarrierState& barrier) const;
  bool role_waits(const Edge& edge, Role role) const;

  // block_memory.cpp: shared and global memory, copies
  double shared_access(Warp& warp, const Group& group);
  double global_access(Warp& warp, const Group& group);
  double prefetch(Warp& warp, const Group& group);
  bool allows_equal_stores(uint32_t offset) const;
  double line_at(const GlobalRange& range, const void* address);
  void check_global(const Warp& warp, const Op& call, uint32_t record, const GlobalRange& range);
  double atomic(Warp& warp, const Group& group);
  double copy(Warp& warp, const Group& group);
  void issue_copy(Warp& warp, Op& op);
  bool describe_copy(const Warp& warp, const Op& op, AsyncOp& async);
  uint32_t shared_offset(const void* address, uint32_t bytes, const Op& op, const Warp& warp);
  void note_access(Warp& warp, uint32_t mask);

  // block_tensor.cpp: tensor memory and tcgen05
  double tensor_allocation(Warp& warp, const Group& group);
  double tensor_access(Warp& warp, const Group& group);
  double tensor_wait(Warp& warp, const Group& group);
  struct MmaCall {
    bool from_tensor = false;
    MmaShape shape;
    SharedOperand a, b;
    std::size_t stream = 0;
  };
  bool issued_by_one_thread(Warp& warp, const Group& group);
  std::optional<MmaCall> decode_mma(const Warp& warp, const Op& call);
  void shadow_mma(Warp& warp, const Op& call, const MmaCall& mma);
  double mma(Warp& warp, const Group& group);
  double commit(Warp& warp, const Group& group);
  bool allocated(uint32_t column, uint32_t count, const Op& op, const Warp& warp);
  void shadow_operand(Warp& warp, const Op& op, const SharedOperand& operand, bool mn_major,
                      int rows, const Accessor& by, char tensor, int tensor_block);
  std::size_t stream_of(uint32_t column, int columns);
  double occupy_pipe(bool from_tensor, int columns, bool accumulates);
  void run_mma(const AsyncOp& op);

  // block_matrix.cpp: ldmatrix and mma.sync
  double wait_for_values(Warp& warp, OpKind next);
  double code_between(Warp& warp, const Op& call);
  double load_cost(Warp& warp, double latency);
  double load_matrices(Warp& warp, const Group& group);
  double mma_sync(Warp& warp, const Group& group);
  bool holds_operand(const Warp& warp, uint32_t address, const Op& call);

  // block_wgmma.cpp: warpgroup matrices
  double wgmma(Warp& warp, const Group& group);
  bool shadow_wgmma(Warp& warp, const Op& call);
  bool hold_accumulator(Warp& warp, const Group& group);
  double wgmma_wait(Warp& warp, const Group& group);
  double wgmma_pin(Warp& warp, const Group& group);
  bool settle(Warp& warp);
  bool write_back(const Warp& warp, RunningAccumulator& accumulator);
  void run_wgmma(int first_warp);
  void check_wgmma_exit();

  // block_trace.cpp: records, only with Options::recorder
  void record(Warp& warp, const Group& group, double work);
  void trace_copy_issue(BarrierState& barrier, const Warp& warp, uint32_t bytes);
  void trace_bytes(int64_t change);
  void trace_copies_done(BarrierState& barrier);
  void trace_mma(const Warp& warp, const Op& call, bool from_tensor, double begin);
  void trace_commit(const AsyncOp& commit);
  void flush_pipe();

  // block_report.cpp: words
  AccessRecord record_of(const Warp& warp, const Op& op) const;
  void clash(const Clash& clash, uint32_t record, bool tensor);
  void note_slot_reuse(const std::string& where, const AccessRecord& mine,
                       const AccessRecord& other);
  void fault(const char* check, const Warp* warp, const Op* op, const std::string& text,
             Severity severity = Severity::error, const std::string& edge = {});
  void fault(const char* check, const AccessRecord& at, const std::string& text,
             Severity severity = Severity::error, const std::string& edge = {});
  std::string describe(const AccessRecord& record, const char* verb) const;
  std::string describe(const AccessRecord& record, const char* verb, int cta) const;
  std::string warp_name(int warp) const;
  std::string barrier_name(const BarrierState& barrier) const;
  const NamedRange* range_at(uint32_t cell, bool tensor) const;
  std::string place(uint32_t cell, bool tensor) const;
  std::string edges_of(uint32_t cell, bool tensor) const;
  std::string blocked_line(const Warp& warp) const;
  std::string gone_line() const;
  void check_observed(const BarrierState& barrier);

  // block_deadlock.cpp: who waits for whom
  struct Missing {
    const Edge* edge = nullptr;  // that a blocked warp waits on
    std::vector<int> warps;      // whose arrival is missing
  };
  struct Path {
    uint32_t visited = 0;
    std::vector<int> warps;                    // from the first one to the one being followed
    std::vector<int> cycle;                    // empty: none found
    std::vector<std::pair<int, int>> starved;  // a warp, and one gone that it waits for
  };
  const BarrierState& barrier_of(const Op& wait) const;
  Missing missing(const Warp& warp) const;
  void missing_on_named(int id, Missing& found) const;
  void missing_of(const Arrival& arrival, const BarrierState& barrier, Missing& found) const;
  void missing_of_warpgroup(const Warp& warp, Missing& found) const;
  void follow(int warp, Path& path) const;
  WaitCycle wait_cycle() const;

  Grid& grid_;
  const Launch& launch_;
  const KernelSpec& kernel_;
  const Options& options_;
  int index_;
  int live_warps_ = 0, in_flight_ = 0;
  std::vector<std::byte> shared_;
  std::size_t shared_skip_ = 0;
  std::vector<uint32_t> tensor_;  // [128 lanes][512 columns]
  uint32_t tensor_columns_ = 0;
  bool tensor_relinquished_ = false;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Warp> warps_;
  std::vector<BarrierState> barriers_;
  std::vector<int16_t> barrier_at_;   // by offset / 8
  std::array<NamedState, 17> named_;  // 16: the whole block
  std::vector<EdgeUse> named_uses_;   // per edge
  uint64_t rescales_ = 0;
  Shadow shadow_;
  Clock scratch_;
  // Tensor pipe: one component per accumulator, all of one issuing thread.
  struct Stream {
    uint32_t column;
    int columns;
    uint32_t epoch;
  };
  std::vector<Stream> streams_;
  double pipe_free_ = 0;
  std::array<GroupMmas, kMaxWarps / 4> group_mmas_;
  bool last_from_tensor_ = false;  // the MMA issued last is TS
  struct PipeRange {               // of MMAs that ran without a gap for one KV block
    trace::At at{trace::Event::pipe_QK, 0, 0, 0};
    double begin = 0, end = -1;
  } pipe_range_;
  int64_t bytes_in_flight_ = 0;
  std::unordered_map<uint64_t, double> constant_lines_;  // when L1 holds them; none is evicted
  double copy_issue_free_ = 0, copy_rate_free_ = 0;
  int registers_free_ = 0;
  std::map<std::pair<const char*, int>, const PlainCode*>
      sites_;  // reached so far: their plain code
  double matrix_port_free_ = 0;
  std::array<double, 4> mma_free_{};  // of each sub-partition
  std::array<SharedPipe, 4> pipes_;   // MUFU and FMA of each sub-partition, one figure
  std::unique_ptr<Panel> panel_a_, panel_b_;
};

}  // namespace deuce::emulator
