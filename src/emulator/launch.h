// SPDX-License-Identifier: Apache-2.0
// What the emulator must know about a kernel and a launch of it.
// Filled by whoever starts a kernel (backend, tests, `deuce check`); everything about barriers
// comes from the kernel's own edge table.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/finding.h"
#include "emulator/op.h"
#include "emulator/schedule.h"
#include "emulator/timing.h"
#include "kernel/edges.h"
#include "trace/recorder.h"

namespace deuce::emulator {

class Machine;

/// A named part of shared or tensor memory, in bytes or columns, for messages.
struct NamedRange {
  std::string name;
  uint32_t first, size;
  int slots = 1;
  /// Threads may store the same bytes here without order, if each reads behind a store of its own.
  bool equal_stores = false;
  std::string edges = {};  // that order its accesses, for findings
};

/// Arithmetic that stands beside an operation of a source file and that the source does not charge.
struct PlainCode {
  std::string_view file;  // end of its path
  OpKind kind;
  const Cost* cost;     // of each such operation, beside its own
  bool of_run = false;  // of operations that follow each other, only of the first
};

struct KernelSpec {
  std::string name;
  Chip chip = Chip::b200;  // whose costs its runs take
  int threads = 0;
  uint32_t shared_bytes = 0;
  int launch_registers = 128;  // per thread
  std::vector<WarpRange> roles;
  std::vector<Edge> edges;
  std::vector<Role> uniform_roles;  // lanes differ in values alone, but for the elected one
  std::vector<NamedRange> shared_ranges, tensor_ranges;
  std::vector<PlainCode> plain_code = {};
  /// Registers suffice to issue ldmatrix while MMAs of an earlier one run. Fitted for Hopper: read
  /// off the errors of both halves of the measured launches, by no measurement of its own.
  bool loads_ahead = true;
  bool traces_operands = false;  // says to its tracer which tile it copies, reads and works on
};

/// So many copies of something, so many bytes apart.
struct Repeat {
  int64_t count = 1, stride_bytes = 0;
};

/// Global memory that the kernel may touch: `bytes` at `base`, and again along each repeat. What
/// lies between the runs may belong to another range. As for_strides() makes it, no stride is
/// negative and the largest comes first.
struct GlobalRange {
  std::string name;
  const void* base;
  std::size_t bytes;
  bool writable;
  std::array<Repeat, 3> repeats{};

  bool contains(const void* address, std::size_t count) const;
};

/// Who submits an operation.
struct OpContext {
  int block, warp, lane;
  Role role;
  int kv_block;
  const std::byte* shared;  // the block's shared memory
};

/// Sees every operation before the machine does: may alter it, or drop it by returning false.
/// Mutants are made this way; the kernel is never touched.
class OpFilter {
 public:
  virtual ~OpFilter() = default;
  virtual bool pass(Op& op, const OpContext& context) = 0;
};

struct Launch {
  const KernelSpec* kernel = nullptr;
  int blocks = 1;
  std::vector<GlobalRange> memory;
  std::function<void(Machine&)> entry;  // runs once per thread
};

struct Options {
  RunName run;
  bool strict = false;        // ptx-strict: only what the ISA text promises
  bool strict_order = false;  // the variant of the kernel that does not rely on the pipe's order
  bool table_counts = true;   // barriers must expect what the edge table says
  int kv_slots = 0;           // the variant with that many K/V tiles; 0 = as many as fit
  int only_block = -1;  // for time alone: the one block that runs, which must wait for no other
  bool values = true;   // false: barriers and time only, one lane of uniform warps
  Band band = Band::best;
  const FittedCosts* fitted = nullptr;  // entries of the timing table with other values
  OpFilter* filter = nullptr;
  trace::Recorder* recorder = nullptr;  // takes the trace of the run
  uint64_t step_limit = 400'000'000;
  std::string replay = {};  // how a finding says to repeat the run; empty = options of deuce check
};

/// What stands behind "replay:" in a finding.
std::string replay_text(const Options& options);

/// How often an edge was used, of all its slots.
struct EdgeUse {
  uint64_t phases = 0;  // completed
  uint64_t waits = 0;   // that had to block
  uint64_t laps = 0;    // most phases of one barrier; of a named edge, phases

  void add(const EdgeUse& other);
};

struct RunResult {
  Report report;
  double cycles = 0;
  uint64_t steps = 0;
  std::vector<EdgeUse> edges;
  uint64_t rescales = 0;  // of O, by one warp for one KV block
};

/// Runs the grid under one schedule. The first error ends the run.
RunResult run(const Launch& launch, const Options& options);

}  // namespace deuce::emulator
