// SPDX-License-Identifier: Apache-2.0
// The one definition of what a trace holds: events with their names, the 8-byte record, and the
// header in front of each warp's records. The kernels write it (on a GPU or in the emulator), every
// reader and exporter is built on it. Portable: no CUDA header, no allocation.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace deuce::trace {

/// How much is recorded. `edges`: waits, issues, arrivals and item borders. `full`: also the phases
/// inside softmax, whose probes cost more than they should on silicon.
enum class Level : uint8_t { edges, full };

/// `next` is an end and a begin in one record: the innermost range ends where this one begins.
enum class Kind : uint8_t { begin, end, instant, value, next };

constexpr bool begins_range(Kind kind) { return kind == Kind::begin || kind == Kind::next; }

/// What an event means to an edge of the kernel's barrier table. A range of a `wait` ends when the
/// phase is complete. `commit` is the issue of an arrival that the tensor pipe makes later, `bytes`
/// a copy that completes the phase.
enum class Flow : uint8_t { none, wait, arrive, commit, bytes };

/// Ids are part of the file format: append, never renumber. 6 bits.
enum class Event : uint8_t {
  warp_lifetime,
  prologue,
  work_item,
  fault,
  tma_wait,
  tma_wait_Q,
  tma_issue_K,
  tma_issue_V,
  tma_issue_Q,
  mma_wait_K,
  mma_wait_V,
  mma_wait_Q,
  mma_wait_PO,
  mma_wait_P_tail,
  mma_wait_O,
  mma_issue_QK,
  mma_issue_PV,
  commit_s_ready,
  commit_kv_released,
  commit_q_released,
  commit_o_ready,
  sm_wait_S,
  sm_compute,
  sm_wait_stats,
  sm_row_sum,
  arrive_po_ready,
  arrive_p_tail_ready,
  arrive_stats_ready,
  correction_wait_stats,
  correction_wait_O,
  correction_rescale,
  correction_final,
  correction_wait_stored,
  arrive_stats_taken,
  arrive_o_staged,
  epi_wait,
  epi_store,
  arrive_o_stored,
  merge_write_partial,
  merge_counter,
  merge_combine,
  merge_last,
  wait_piece,
  arrive_piece_taken,
  wait_piece_slot,
  arrive_piece_ready,
  wait_K,
  wait_V,
  arrive_kv_released,
  copy_K,
  copy_V,
  copy_Q,
  pipe_QK,
  pipe_PV,
  bytes_in_flight,
  sm_load,  // level `full`
  sm_max,
  sm_exp,
  mma_wait_QK,  // of level `edges` again
  mma_wait_PV,
  count
};
static_assert(static_cast<int>(Event::count) <= 64);

constexpr Level level_of(Event event) {
  return event >= Event::sm_load && event <= Event::sm_exp ? Level::full : Level::edges;
}

struct EventInfo {
  Event event;
  std::string_view name;           // as shown
  std::string_view argument = {};  // what tells events of one name apart
  Flow flow = Flow::none;
  std::string_view edge = {};  // of the barrier table
};

inline constexpr std::array kEvents{
    EventInfo{Event::warp_lifetime, "warp_lifetime"},
    EventInfo{Event::prologue, "prologue"},
    EventInfo{Event::work_item, "work_item"},
    EventInfo{Event::fault, "fault"},
    EventInfo{Event::tma_wait, "tma_wait", "KV", Flow::wait, "kv_released"},
    EventInfo{Event::tma_wait_Q, "tma_wait", "Q", Flow::wait, "q_released"},
    EventInfo{Event::tma_issue_K, "tma_issue", "K"},
    EventInfo{Event::tma_issue_V, "tma_issue", "V"},
    EventInfo{Event::tma_issue_Q, "tma_issue", "Q"},
    EventInfo{Event::mma_wait_K, "mma_wait_K", "", Flow::wait, "kv_arrived"},
    EventInfo{Event::mma_wait_V, "mma_wait_V", "", Flow::wait, "kv_arrived"},
    EventInfo{Event::mma_wait_Q, "mma_wait_Q", "", Flow::wait, "q_arrived"},
    EventInfo{Event::mma_wait_PO, "mma_wait_PO", "", Flow::wait, "po_ready"},
    EventInfo{Event::mma_wait_P_tail, "mma_wait_P_tail", "", Flow::wait, "p_tail_ready"},
    EventInfo{Event::mma_wait_O, "mma_wait_O", "", Flow::wait, "o_ready"},
    EventInfo{Event::mma_issue_QK, "mma_issue_QK"},
    EventInfo{Event::mma_issue_PV, "mma_issue_PV"},
    EventInfo{Event::commit_s_ready, "mma_commit", "s_ready", Flow::commit, "s_ready"},
    EventInfo{Event::commit_kv_released, "mma_commit", "kv_released", Flow::commit, "kv_released"},
    EventInfo{Event::commit_q_released, "mma_commit", "q_released", Flow::commit, "q_released"},
    EventInfo{Event::commit_o_ready, "mma_commit", "o_ready", Flow::commit, "o_ready"},
    EventInfo{Event::sm_wait_S, "sm_wait_S", "", Flow::wait, "s_ready"},
    EventInfo{Event::sm_compute, "sm_compute"},
    EventInfo{Event::sm_wait_stats, "sm_wait_stats", "", Flow::wait, "stats_taken"},
    EventInfo{Event::sm_row_sum, "sm_row_sum"},
    EventInfo{Event::arrive_po_ready, "arrive_po_ready", "", Flow::arrive, "po_ready"},
    EventInfo{Event::arrive_p_tail_ready, "arrive_p_tail_ready", "", Flow::arrive, "p_tail_ready"},
    EventInfo{Event::arrive_stats_ready, "arrive_stats_ready", "", Flow::arrive, "stats_ready"},
    EventInfo{Event::correction_wait_stats, "correction_wait_stats", "", Flow::wait, "stats_ready"},
    EventInfo{Event::correction_wait_O, "correction_wait_O", "", Flow::wait, "o_ready"},
    EventInfo{Event::correction_rescale, "correction_rescale"},
    EventInfo{Event::correction_final, "correction_final"},
    EventInfo{Event::correction_wait_stored, "correction_wait_stored", "", Flow::wait, "o_stored"},
    EventInfo{Event::arrive_stats_taken, "arrive_stats_taken", "", Flow::arrive, "stats_taken"},
    EventInfo{Event::arrive_o_staged, "arrive_o_staged", "", Flow::arrive, "o_staged"},
    EventInfo{Event::epi_wait, "epi_wait", "", Flow::wait, "o_staged"},
    EventInfo{Event::epi_store, "epi_store"},
    EventInfo{Event::arrive_o_stored, "arrive_o_stored", "", Flow::arrive, "o_stored"},
    EventInfo{Event::merge_write_partial, "merge_write_partial"},
    EventInfo{Event::merge_counter, "merge_counter"},
    EventInfo{Event::merge_combine, "merge_combine"},
    EventInfo{Event::merge_last, "merge_last"},
    EventInfo{Event::wait_piece, "wait_piece", "", Flow::wait, "piece_ready"},
    EventInfo{Event::arrive_piece_taken, "arrive_piece_taken", "", Flow::arrive, "piece_taken"},
    EventInfo{Event::wait_piece_slot, "wait_piece_slot", "", Flow::wait, "piece_taken"},
    EventInfo{Event::arrive_piece_ready, "arrive_piece_ready", "", Flow::arrive, "piece_ready"},
    EventInfo{Event::wait_K, "wait_K", "", Flow::wait, "k_arrived"},
    EventInfo{Event::wait_V, "wait_V", "", Flow::wait, "v_arrived"},
    EventInfo{Event::arrive_kv_released, "arrive_kv_released", "", Flow::arrive, "kv_released"},
    EventInfo{Event::copy_K, "TMA", "K", Flow::bytes, "kv_arrived"},
    EventInfo{Event::copy_V, "TMA", "V", Flow::bytes, "kv_arrived"},
    EventInfo{Event::copy_Q, "TMA", "Q", Flow::bytes, "q_arrived"},
    EventInfo{Event::pipe_QK, "QK"},
    EventInfo{Event::pipe_PV, "PV"},
    EventInfo{Event::bytes_in_flight, "bytes_in_flight"},
    EventInfo{Event::sm_load, "sm_load"},
    EventInfo{Event::sm_max, "sm_max"},
    EventInfo{Event::sm_exp, "sm_exp"},
    EventInfo{Event::mma_wait_QK, "mma_wait_QK"},
    EventInfo{Event::mma_wait_PV, "mma_wait_PV"},
};
static_assert([] {
  if (kEvents.size() != static_cast<std::size_t>(Event::count)) return false;
  for (std::size_t i = 0; i < kEvents.size(); ++i) {
    if (kEvents[i].event != static_cast<Event>(i)) return false;
  }
  return true;
}());

constexpr const EventInfo& info(Event event) { return kEvents[static_cast<std::size_t>(event)]; }

/// One record as it lies in memory and in a file, little endian.
struct Record {
  uint32_t clock;  // cycles of the SM, low 32 bits; virtual cycles in the emulator
  uint32_t word;   // kind 3 | event 6 | slot 5 | parity 1 | block 17, or kind | event | value 23
};
static_assert(sizeof(Record) == 8);

inline constexpr int kBlockBits = 17, kValueBits = 23;

constexpr uint32_t pack(Kind kind, Event event, int slot, int32_t phase, int block) {
  return static_cast<uint32_t>(kind) << 29 | static_cast<uint32_t>(event) << 23 |
         (static_cast<uint32_t>(slot) & 31u) << 18 | (static_cast<uint32_t>(phase) & 1u) << 17 |
         (static_cast<uint32_t>(block) & ((1u << kBlockBits) - 1));
}
constexpr uint32_t pack_value(Event event, uint32_t value) {
  return static_cast<uint32_t>(Kind::value) << 29 | static_cast<uint32_t>(event) << 23 |
         (value & ((1u << kValueBits) - 1));
}
constexpr Kind kind_of(uint32_t word) { return static_cast<Kind>(word >> 29); }
constexpr Event event_of(uint32_t word) { return static_cast<Event>(word >> 23 & 63u); }
constexpr int slot_of(uint32_t word) { return static_cast<int>(word >> 18 & 31u); }
constexpr int parity_of(uint32_t word) { return static_cast<int>(word >> 17 & 1u); }
constexpr int block_of(uint32_t word) { return static_cast<int>(word & ((1u << kBlockBits) - 1)); }
constexpr uint32_t value_of(uint32_t word) { return word & ((1u << kValueBits) - 1); }

/// Where an event belongs, as kernels say it.
struct At {
  Event event;
  int slot = 0;       // of S/P, of a ring or of a barrier
  int32_t phase = 0;  // of the slot's barrier
  int block = 0;      // running count of KV blocks in this CTA
};

/// Who wrote a slice of records: a warp, or in the emulator a unit that no warp can observe.
enum class Agent : uint8_t { warp, copy, tensor_pipe, memory_queue };

/// A point at which the SM's clock and the timer of the whole device were read together.
struct Anchor {
  uint64_t clock;  // cycles of the SM
  uint64_t ns;     // device timer
};

/// What is done when a slice is full. `keep_first`: later records are counted, not stored.
/// `keep_newest`: the oldest is overwritten, for hangs and long runs; capacity: a power of two.
enum class Policy : uint8_t { keep_first, keep_newest };

inline constexpr uint32_t kSliceMagic = 0x54637544;  // "DucT"
inline constexpr uint16_t kFormatVersion = 2;

/// In front of the records of one slice; the same on the device and in a file.
struct SliceHeader {
  uint32_t magic;
  uint16_t version;
  Agent agent;
  uint8_t role;               // deuce::Role of a warp
  uint32_t cta;               // block in the grid
  uint16_t sm;                // %smid; the block's number in the emulator
  uint16_t unit;              // warp in the block, or number of the unit
  uint32_t capacity, wanted;  // records; wanted - capacity were dropped if positive
  Policy policy;
  uint8_t padding[7];
  Anchor begin, end;
};
static_assert(sizeof(SliceHeader) == 64);

/// The tracer of a machine that does not trace: it has no calls, so the machine emits no code.
struct NullTracer {};

}  // namespace deuce::trace
