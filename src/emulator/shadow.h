// SPDX-License-Identifier: Apache-2.0
// Shadow of shared and tensor memory: who wrote and read each cell last, and whether the next
// access is ordered behind that. Cells are 16 bytes of shared memory, or one column of a lane
// quarter; arrays of single words have a cell for each word. Checks depend on clocks only, so a
// missing edge is found in every schedule that runs both accesses.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "emulator/clock.h"
#include "emulator/op.h"

namespace deuce::emulator {

/// Who did what where: the long form of an access, kept once per operation.
struct AccessRecord {
  OpKind kind;
  int16_t warp;
  int16_t slot = -1;   // of a ring or score slot, if any
  int32_t block = -1;  // KV block the warp stood at
  char tensor = 0;     // provenance of copied bytes
  int32_t tensor_block = -1;
  uint32_t column = 0, columns = 0;
  Site site{};
};

/// An access about to be made. `clock` is what is certainly ordered before it.
struct Accessor {
  const Clock* clock;
  Component component;
  uint32_t epoch;
  uint32_t record;
  bool async_proxy = false;    // shared memory only
  bool generic_proxy = false;  // a thread's own load or store
  // Tensor memory only: tcgen05 operations of other threads that a fence has ordered before it.
  const TensorOrder* tensor_order = nullptr;
  bool echo = false;  // a store of the bytes that are there already, where that is allowed
};

/// The last access of one component to a cell.
struct Mark {
  uint32_t epoch = 0;
  uint32_t record = 0;
  Component component = -1;
  uint8_t words = 15;
};

enum class Conflict : uint8_t {
  none,
  no_tensor_fence,   // tcgen05 operations of two threads, ordered but not by tcgen05 fences
  no_read_fence,     // generic read, asynchronous overwrite, ordered but no proxy fence between
  uninitialised,     // read of a cell nobody wrote
  read_after_write,  // not ordered behind the last write
  not_visible,       // ordered, but the generic write is not visible to a generic read
  no_proxy_fence,    // generic write, asynchronous read, no fence between
  write_after_read,
  write_after_write
};

struct Clash {
  Conflict conflict = Conflict::none;
  uint32_t record = 0;  // of the other access
  uint32_t cell = 0;    // byte address, or quarter * 512 + column
};

class Shadow {
 public:
  /// One that does not watch finds nothing: for runs that ask for time alone.
  Shadow(uint32_t shared_bytes, bool watches);
  /// From now on each word of these bytes (multiples of 16) has a cell of its own.
  void watch_words(uint32_t address, uint32_t bytes);
  uint32_t add_record(const AccessRecord& record);
  /// The long form of an access, or a blank one when it was too long ago.
  const AccessRecord& record(uint32_t index) const {
    static constexpr AccessRecord kForgotten{.kind = OpKind::sync_warp, .warp = 0};
    return remembers(index) ? records_[index % kRecords] : kForgotten;
  }

  Clash read_shared(uint32_t address, uint32_t bytes, const Accessor& by);
  Clash write_shared(uint32_t address, uint32_t bytes, const Accessor& by);
  /// Columns first .. first + count - 1 of the quarters in `quarters` (bit q = lanes 32q ..).
  Clash read_tensor(uint32_t quarters, uint32_t first, uint32_t count, const Accessor& by);
  Clash write_tensor(uint32_t quarters, uint32_t first, uint32_t count, const Accessor& by);
  /// Forgets the columns: allocated anew.
  void clear_tensor();
  /// The record of the last write to the cell at `address`, or nullptr.
  const AccessRecord* writer(uint32_t address) const;
  /// Clash of freeing tensor memory: any access that `clock` does not contain.
  Clash free_tensor(const Clock& clock) const;

 private:
  static constexpr uint32_t kRecords = 1u << 18;
  bool remembers(uint32_t record) const { return next_record_ - record <= kRecords; }
  struct Cell {
    Mark write;
    std::array<Mark, 3> reads;
  };

  /// Calls `visit(cell, words, address)` for every cell that the bytes touch.
  template <class F>
  void each_cell(uint32_t address, uint32_t bytes, F&& visit);
  Conflict read(Cell& cell, uint8_t words, const Accessor& by, uint32_t* other);
  Conflict write(Cell& cell, uint8_t words, const Accessor& by, uint32_t* other);
  void note_read(Cell& cell, uint8_t words, const Accessor& by);
  bool note_echo(Cell& cell, uint8_t words, const Accessor& by);
  Conflict behind_own_echo(const Cell& cell, const Accessor& by) const;

  bool watches_;
  std::vector<Cell> shared_, tensor_;
  uint32_t words_first_ = 0;  // cell of shared_ whose words come first in words_
  std::vector<Cell> words_;
  std::unordered_map<const Cell*, std::vector<Mark>> more_reads_;
  std::unordered_map<const Cell*, std::vector<Mark>> echoes_;
  std::vector<AccessRecord> records_;
  uint32_t next_record_ = 0;
};

}  // namespace deuce::emulator
