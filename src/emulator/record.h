// SPDX-License-Identifier: Apache-2.0
// What each warp of a kernel does to barriers and memory, recorded while the emulator runs the
// kernel itself. Explorations start from these programs, so a model cannot drift from its kernel.
// A program must not depend on the schedule; tests compare recordings of different schedules.
#pragma once

#include <bitset>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "emulator/launch.h"

namespace deuce::emulator {

/// Pieces of memory that two sides must not touch at once: 16 columns of a lane quarter of tensor
/// memory, a tile, 128 bytes of anything else in shared memory.
using Cells = std::bitset<192>;

struct Access {
  Cells reads, writes;
  bool any() const { return reads.any() || writes.any(); }
  void add(const Access& other);
  /// Cells that one of the two writes while the other touches them.
  Cells clash(const Access& other) const;
};

/// Row of the edge table and slot; -1 without one.
struct EdgeSlot {
  int row = -1, slot = 0;
};
/// Which edge an operation is about.
EdgeSlot edge_of(const KernelSpec& kernel, const Op& op, const OpContext& context);

struct RecordedBarrier {
  std::string name;    // edge and slot
  int edge = -1;       // row of the table, -1: a named barrier the table does not list
  int named = -1;      // id of a named barrier
  int threads = 0;     // named barriers: of the block
  uint32_t warps = 0;  // named barriers: who takes part
};

struct Event {
  enum class Kind : uint8_t { wait, arrive, copy, mma, commit, access } kind;
  int barrier = -1;
  Phase phase = 0;   // of a wait
  int count = 0;     // lanes that arrive
  Access access{};   // of a copy, an MMA or the warp itself
  int tile = -1;     // copies: cell of the target; MMAs: of the K or V operand
  int content = -1;  // copies: what arrives there; MMAs: what must have arrived
  Site site{};
  int kv_block = -1;
};

struct Recording {
  const KernelSpec* kernel = nullptr;
  std::vector<RecordedBarrier> barriers;
  std::vector<std::vector<Event>> warps;
  std::vector<int> order;  // warps, in the order in which their events were submitted
  std::string fault;       // why this is no recording of a kernel that can be explored
  std::string cell_name(std::size_t cell) const;
  Cells cells_of(std::string_view shared_range) const;
};

/// Records block 0 of a run. `decide` answers each vote of a correction warp (warp, votes so far).
class Recorder final : public OpFilter {
 public:
  using Decide = std::function<bool(int, int)>;
  Recorder(const KernelSpec& kernel, Decide decide);
  bool pass(Op& op, const OpContext& context) override;
  Recording take();

 private:
  void first_lane(const Op& op, const OpContext& context);
  void other_lane(const Op& op, const OpContext& context);
  void add(const OpContext& context, Event event, const Op& op);
  void touch(const OpContext& context, const Op& op, const Access& access);
  void copy(const Op& op, const OpContext& context);
  bool joins_copy(const Op& op, const OpContext& context);
  void mma(const Op& op, const OpContext& context);
  int barrier_of(const Op& op, const OpContext& context);
  int shared_cell(uint32_t offset) const;
  Access shared(const void* address, const OpContext& context, bool writes) const;
  static Cells columns(uint32_t quarters, uint32_t first, uint32_t count);

  /// The n-th arrival of a lane at one place on one barrier.
  using Arrival = std::tuple<int, const char*, int, int, int>;  // warp, file, line, barrier, n
  Arrival arrival_of(const Op& op, const OpContext& context, int barrier);

  Recording recording_;
  Decide decide_;
  std::vector<bool> started_;                         // by thread: past the first block barrier
  std::vector<int> votes_;                            // by thread
  std::map<std::pair<int, int>, int> barrier_index_;  // (edge or named id, slot)
  std::map<std::tuple<int, const char*, int, int>, int> seen_;  // thread, file, line, barrier
  std::map<Arrival, int> lanes_;
  std::map<Arrival, std::size_t> event_of_;
  std::map<std::pair<int, int>, Phase> named_phase_;  // (warp, barrier)
  std::map<std::vector<int64_t>, int> contents_;
  std::vector<int> content_of_tile_;
};

}  // namespace deuce::emulator
