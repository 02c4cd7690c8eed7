// SPDX-License-Identifier: Apache-2.0
// Recording of programs; see record.h.
#include "emulator/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "emulator/mma.h"

namespace deuce::emulator {
namespace {

constexpr uint32_t kColumnsPerCell = 16, kBytesPerCell = 128, kTileBytes = 1024;
constexpr uint32_t kTensorCells = 4 * 512 / kColumnsPerCell;

/// Cells of one slot of a shared range: a tile is one, small arrays go by 128 bytes.
uint32_t cells_per_slot(const NamedRange& range) {
  if (range.size >= kTileBytes) return 1;
  return (range.size + kBytesPerCell - 1) / kBytesPerCell;
}

bool is_named(const Op& op) {
  return op.kind == OpKind::arrive_named || op.kind == OpKind::sync_named;
}

}  // namespace

void Access::add(const Access& other) {
  reads |= other.reads;
  writes |= other.writes;
}

Cells Access::clash(const Access& other) const {
  return (writes & (other.reads | other.writes)) | (reads & other.writes);
}

std::string Recording::cell_name(std::size_t cell) const {
  if (cell < kTensorCells) {
    const auto column = static_cast<uint32_t>(cell % (512 / kColumnsPerCell)) * kColumnsPerCell;
    const std::size_t quarter = cell / (512 / kColumnsPerCell);
    for (const NamedRange& range : kernel->tensor_ranges) {
      if (column < range.first) continue;
      const uint32_t slot = (column - range.first) / range.size;
      if (slot >= static_cast<uint32_t>(range.slots)) continue;
      return fmt::format("{}[{}] columns {} and up, lane quarter {}", range.name, slot, column,
                         quarter);
    }
    return fmt::format("column {}, lane quarter {}", column, quarter);
  }
  std::size_t first = kTensorCells;
  for (const NamedRange& range : kernel->shared_ranges) {
    const std::size_t all = cells_per_slot(range) * static_cast<std::size_t>(range.slots);
    if (cell < first + all) {
      return fmt::format("{}[{}]", range.name, (cell - first) / cells_per_slot(range));
    }
    first += all;
  }
  return fmt::format("cell {}", cell);
}

Cells Recording::cells_of(std::string_view shared_range) const {
  Cells cells;
  std::size_t first = kTensorCells;
  for (const NamedRange& range : kernel->shared_ranges) {
    const std::size_t count = cells_per_slot(range) * static_cast<std::size_t>(range.slots);
    for (std::size_t i = 0; i < count && range.name == shared_range; ++i) cells.set(first + i);
    first += count;
  }
  return cells;
}

Recorder::Recorder(const KernelSpec& kernel, Decide decide) : decide_(std::move(decide)) {
  recording_.kernel = &kernel;
  recording_.warps.resize(static_cast<std::size_t>(kernel.threads / 32));
  started_.resize(static_cast<std::size_t>(kernel.threads));
  votes_.resize(static_cast<std::size_t>(kernel.threads));
  content_of_tile_.resize(Cells{}.size(), -1);
}

bool Recorder::pass(Op& op, const OpContext& context) {
  if (context.block != 0) return true;
  const auto thread = static_cast<std::size_t>(context.warp * 32 + context.lane);
  if (!started_[thread]) {
    started_[thread] = op.kind == OpKind::sync_block;
    return true;
  }
  if (op.kind == OpKind::ballot && context.role == Role::correction) {
    op.flag = decide_(context.warp, votes_[thread]++);
  }
  if (context.lane == 0) {
    first_lane(op, context);
  } else {
    other_lane(op, context);
  }
  return true;
}

void Recorder::add(const OpContext& context, Event event, const Op& op) {
  event.site = op.site;
  event.kv_block = context.kv_block;
  recording_.order.push_back(context.warp);
  recording_.warps[static_cast<std::size_t>(context.warp)].push_back(event);
}

// Accesses between two synchronisations count as one.
void Recorder::touch(const OpContext& context, const Op& op, const Access& access) {
  std::vector<Event>& events = recording_.warps[static_cast<std::size_t>(context.warp)];
  if (!events.empty() && events.back().kind == Event::Kind::access) {
    events.back().access.add(access);
    return;
  }
  add(context, {.kind = Event::Kind::access, .access = access}, op);
}

Recorder::Arrival Recorder::arrival_of(const Op& op, const OpContext& context, int barrier) {
  const int thread = context.warp * 32 + context.lane;
  const int n = seen_[{thread, op.site.file, op.site.line, barrier}]++;
  return {context.warp, op.site.file, op.site.line, barrier, n};
}

// An operation of the whole warp stands once in its program, as lane 0 sees it.
void Recorder::first_lane(const Op& op, const OpContext& context) {
  using Kind = Event::Kind;
  switch (op.kind) {
    case OpKind::wait:
      add(context, {.kind = Kind::wait, .barrier = barrier_of(op, context), .phase = op.index}, op);
      return;
    case OpKind::test: recording_.fault = "a program that tests barriers depends on time"; return;
    case OpKind::arrive:
    case OpKind::arrive_expect: {
      const int barrier = barrier_of(op, context);
      const Arrival arrival = arrival_of(op, context, barrier);
      ++lanes_[arrival];
      event_of_[arrival] = recording_.warps[static_cast<std::size_t>(context.warp)].size();
      add(context, {.kind = Kind::arrive, .barrier = barrier}, op);
      return;
    }
    case OpKind::arrive_named:
    case OpKind::sync_named: {
      const int barrier = barrier_of(op, context);
      add(context, {.kind = Kind::arrive, .barrier = barrier, .count = 32}, op);
      const Phase phase = named_phase_[{context.warp, barrier}]++;
      if (op.kind == OpKind::arrive_named) return;
      add(context, {.kind = Kind::wait, .barrier = barrier, .phase = phase}, op);
      return;
    }
    case OpKind::copy_tensor: copy(op, context); return;
    case OpKind::mma_shared:
    case OpKind::mma_tensor: mma(op, context); return;
    case OpKind::commit:
      add(context, {.kind = Kind::commit, .barrier = barrier_of(op, context)}, op);
      return;
    case OpKind::load_shared: touch(context, op, shared(op.source, context, false)); return;
    case OpKind::store_shared: touch(context, op, shared(op.target, context, true)); return;
    case OpKind::tensor_load:
    case OpKind::tensor_store: {
      const Cells cells = columns(1u << context.warp % 4, op.column & 0xffffu, op.bytes);
      const bool writes = op.kind == OpKind::tensor_store;
      touch(context, op, writes ? Access{{}, cells} : Access{cells, {}});
      return;
    }
    case OpKind::tensor_free: touch(context, op, {{}, columns(15, 0, op.bytes)}); return;
    default: return;
  }
}

void Recorder::other_lane(const Op& op, const OpContext& context) {
  switch (op.kind) {
    case OpKind::arrive: ++lanes_[arrival_of(op, context, barrier_of(op, context))]; return;
    case OpKind::copy_tensor:
      if (joins_copy(op, context)) return;
      [[fallthrough]];
    case OpKind::arrive_expect:
    case OpKind::copy_bulk:
    case OpKind::mma_shared:
    case OpKind::mma_tensor:
    case OpKind::commit:
      recording_.fault = fmt::format("lane {} of {} warp {} issues something asynchronous",
                                     context.lane, name_of(context.role), context.warp);
      return;
    default: return;
  }
}

void Recorder::copy(const Op& op, const OpContext& context) {
  std::vector<int64_t> what{reinterpret_cast<int64_t>(op.source)};
  what.insert(what.end(), op.coordinate.begin(), op.coordinate.begin() + op.rank);
  const int content = contents_.try_emplace(what, static_cast<int>(contents_.size())).first->second;
  const Access access = shared(op.target, context, true);
  const int tile = static_cast<int>(access.writes._Find_first());
  content_of_tile_[static_cast<std::size_t>(tile)] = content;
  add(context,
      {.kind = Event::Kind::copy,
       .barrier = barrier_of(op, context),
       .access = access,
       .tile = tile,
       .content = content},
      op);
}

/// Boxes that several lanes copy into one tile are one copy: its barrier waits for all of them.
bool Recorder::joins_copy(const Op& op, const OpContext& context) {
  const std::vector<Event>& events = recording_.warps[static_cast<std::size_t>(context.warp)];
  return !events.empty() && events.back().kind == Event::Kind::copy &&
         events.back().barrier == barrier_of(op, context) &&
         events.back().access.writes == shared(op.target, context, true).writes;
}

void Recorder::mma(const Op& op, const OpContext& context) {
  const auto tile_of = [&](uint64_t descriptor) {
    return static_cast<std::size_t>(shared_cell(decode_operand(descriptor).start));
  };
  const auto n = static_cast<uint32_t>(decode_instruction(op.instruction).columns);
  const std::size_t tile = tile_of(op.b_descriptor);
  Event event{.kind = Event::Kind::mma};
  event.access.reads.set(tile);
  event.access.writes = columns(15, op.column, n);
  if (op.kind == OpKind::mma_shared) {
    event.access.reads.set(tile_of(op.a_descriptor));
  } else {
    event.access.reads |= columns(15, op.a_column, 8);
  }
  event.tile = static_cast<int>(tile);
  event.content = content_of_tile_[tile];
  std::vector<Event>& events = recording_.warps[static_cast<std::size_t>(context.warp)];
  const bool continues =
      !events.empty() && events.back().kind == Event::Kind::mma && events.back().tile == event.tile;
  if (continues) {  // the next K step
    events.back().access.add(event.access);
  } else {
    add(context, event, op);
  }
}

EdgeSlot edge_of(const KernelSpec& kernel, const Op& op, const OpContext& context) {
  const bool named = is_named(op);
  if (!named && op.barrier == nullptr) return {};
  const auto offset =
      static_cast<std::size_t>(reinterpret_cast<const std::byte*>(op.barrier) - context.shared);
  for (std::size_t i = 0; i < kernel.edges.size(); ++i) {
    const Edge& edge = kernel.edges[i];
    const auto slots = static_cast<std::size_t>(edge.slots);
    if (named && edge.kind == EdgeKind::named && op.index >= edge.first_id &&
        op.index < edge.first_id + edge.slots) {
      return {static_cast<int>(i), op.index - edge.first_id};
    }
    if (!named && edge.kind == EdgeKind::barrier && offset >= edge.offset &&
        offset < edge.offset + sizeof(Barrier) * slots) {
      return {static_cast<int>(i), static_cast<int>((offset - edge.offset) / sizeof(Barrier))};
    }
  }
  return {};
}

int Recorder::barrier_of(const Op& op, const OpContext& context) {
  const KernelSpec& kernel = *recording_.kernel;
  const bool named = is_named(op);
  const auto [row, slot] = edge_of(kernel, op, context);
  const std::pair<int, int> key = row < 0 ? std::pair{-1, op.index} : std::pair{row, slot};
  const auto [place, is_new] =
      barrier_index_.try_emplace(key, static_cast<int>(recording_.barriers.size()));
  if (is_new) {
    RecordedBarrier barrier;
    barrier.edge = row;
    if (named) barrier.named = op.index;
    if (named) barrier.threads = static_cast<int>(op.bytes);
    barrier.name =
        row < 0 ? fmt::format("named barrier {}", op.index)
        : kernel.edges[static_cast<std::size_t>(row)].slots == 1
            ? std::string(kernel.edges[static_cast<std::size_t>(row)].name)
            : fmt::format("{}[{}]", kernel.edges[static_cast<std::size_t>(row)].name, slot);
    recording_.barriers.push_back(barrier);
  }
  recording_.barriers[static_cast<std::size_t>(place->second)].warps |= 1u << context.warp;
  return place->second;
}

int Recorder::shared_cell(uint32_t offset) const {
  uint32_t first = kTensorCells;
  for (const NamedRange& range : recording_.kernel->shared_ranges) {
    const auto slots = static_cast<uint32_t>(range.slots);
    if (offset >= range.first && offset < range.first + range.size * slots) {
      const uint32_t inside = offset - range.first;
      const uint32_t part = range.size >= kTileBytes ? 0 : inside % range.size / kBytesPerCell;
      return static_cast<int>(first + inside / range.size * cells_per_slot(range) + part);
    }
    first += cells_per_slot(range) * slots;
  }
  return -1;
}

Access Recorder::shared(const void* address, const OpContext& context, bool writes) const {
  const int cell =
      shared_cell(static_cast<uint32_t>(static_cast<const std::byte*>(address) - context.shared));
  Access access;
  if (cell >= 0) (writes ? access.writes : access.reads).set(static_cast<std::size_t>(cell));
  return access;
}

Cells Recorder::columns(uint32_t quarters, uint32_t first, uint32_t count) {
  Cells cells;
  for (uint32_t q = 0; q < 4; ++q) {
    if ((quarters >> q & 1u) == 0) continue;
    for (uint32_t c = first / kColumnsPerCell; c <= (first + count - 1) / kColumnsPerCell; ++c) {
      cells.set(q * (512 / kColumnsPerCell) + c);
    }
  }
  return cells;
}

Recording Recorder::take() {
  for (const auto& [arrival, lanes] : lanes_) {
    const auto event = event_of_.find(arrival);
    if (event == event_of_.end()) {
      recording_.fault = "an arrival that lane 0 has no part in";
      continue;
    }
    recording_.warps[static_cast<std::size_t>(std::get<0>(arrival))][event->second].count = lanes;
  }
  return std::move(recording_);
}

}  // namespace deuce::emulator
