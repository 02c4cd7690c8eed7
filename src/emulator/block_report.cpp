// SPDX-License-Identifier: Apache-2.0
// Findings in the kernel's own words, deadlock graphs and the checks at exit; see block.h.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "emulator/grid.h"

namespace deuce::emulator {
namespace {

const char* mnemonic(OpKind kind) {
  switch (kind) {
    case OpKind::load_shared: return "shared load";
    case OpKind::store_shared: return "shared store";
    case OpKind::copy_tensor: return "tensor copy to";
    case OpKind::copy_bulk: return "bulk copy to";
    case OpKind::tensor_load: return "tcgen05.ld of";
    case OpKind::tensor_store: return "tcgen05.st to";
    case OpKind::mma_shared:
    case OpKind::mma_tensor: return "tcgen05.mma";
    case OpKind::tensor_alloc: return "tcgen05.alloc";
    case OpKind::wait: return "wait";
    case OpKind::sync_named: return "named barrier";
    case OpKind::sync_block: return "block barrier";
    case OpKind::registers: return "setmaxnreg";
    default: return "operation";
  }
}

const char* file_name(const char* path) {
  const char* kernel = std::strstr(path, "kernel/");
  return kernel != nullptr ? kernel + std::strlen("kernel/") : path;
}

// H number and sentence of a conflict between `mine` and `other`.
std::pair<const char*, std::string> classify(Conflict conflict, const AccessRecord& mine,
                                             const AccessRecord& other) {
  const bool same_warp = mine.warp == other.warp;
  switch (conflict) {
    case Conflict::no_tensor_fence:
      return {"H14", "tcgen05 work of another thread is handed over without tcgen05 fences"};
    case Conflict::no_read_fence:
      return {"H4", "the async proxy overwrites what a generic load has read, without fence_async"};
    case Conflict::uninitialised: return {"H5", "read before anything was written there"};
    case Conflict::read_after_write:
      if (other.kind == OpKind::tensor_store) {
        return {"H13", "reads what a tensor-memory store may not have written yet"};
      }
      return {"H1", "reads what is not ordered behind its write"};
    case Conflict::not_visible:
      return {"H1", "reads a write that only an asynchronous completion orders before it"};
    case Conflict::no_proxy_fence:
      return {"H3", "the async proxy meets a generic write without fence_async between them"};
    case Conflict::write_after_read:
      if (other.kind == OpKind::tensor_load) {
        return {same_warp ? "H12" : "H12",
                "overwrites columns that a load without "
                "wait_tensor_loads may still read"};
      }
      return {"H2", "overwrites what may still be read"};
    case Conflict::write_after_write:
      if (other.kind == OpKind::tensor_store) {
        return {"H13", "overwrites columns that a tensor-memory store may still write"};
      }
      return {"H2", "overwrites what may still be written"};
    case Conflict::none: break;
  }
  return {"", ""};
}

}  // namespace

std::string replay_text(const Options& options) {
  if (!options.replay.empty()) return options.replay;
  return fmt::format("--replay {} --seed {}{}{}", options.run.text(), options.run.seed,
                     options.strict ? " --strict" : "",
                     options.strict_order ? " --strict-order" : "");
}

AccessRecord Block::record_of(const Warp& warp, const Op& call) const {
  AccessRecord record;
  record.kind = call.kind;
  record.warp = static_cast<int16_t>(warp.index);
  record.block = warp.kv_block;
  record.site = call.site;
  return record;
}

std::string Block::warp_name(int warp) const {
  return fmt::format("{} warp {}", name_of(warps_[static_cast<std::size_t>(warp)].role), warp);
}

std::string Block::barrier_name(const BarrierState& barrier) const {
  if (barrier.edge < 0) return fmt::format("the barrier at shared {:#x}", barrier.offset);
  const Edge& edge = kernel_.edges[static_cast<std::size_t>(barrier.edge)];
  return edge.slots == 1 ? std::string(edge.name) : fmt::format("{}[{}]", edge.name, barrier.slot);
}

std::string Block::place(uint32_t cell, bool tensor) const {
  const uint32_t at = tensor ? cell % 512 : cell;
  for (const NamedRange& range : tensor ? kernel_.tensor_ranges : kernel_.shared_ranges) {
    const uint32_t all = range.size * static_cast<uint32_t>(range.slots);
    if (at < range.first || at >= range.first + all) continue;
    if (range.slots == 1) return range.name;
    return fmt::format("{}[{}]", range.name, (at - range.first) / range.size);
  }
  return tensor ? fmt::format("column {}", at) : fmt::format("shared {:#x}", at);
}

std::string Block::describe(const AccessRecord& record, const char* verb) const {
  std::string what = mnemonic(record.kind);
  if (record.columns > 0) {
    what += fmt::format(" columns {}-{}", record.column, record.column + record.columns - 1);
  }
  if (record.tensor != 0)
    what += fmt::format(" ({} of block {})", record.tensor, record.tensor_block);
  if (record.block >= 0) what += fmt::format("  block {}", record.block);
  return fmt::format("  {:<8} {}  {}  {}:{}", verb, warp_name(record.warp), what,
                     file_name(record.site.file == nullptr ? "?" : record.site.file),
                     record.site.line);
}

void Block::fault(const char* check, const Warp* warp, const Op* call, const std::string& text,
                  Severity severity, const std::string& edge) {
  std::string full = text;
  if (warp != nullptr && call != nullptr) {
    full += fmt::format("\n{}", describe(record_of(*warp, *call), "at"));
  }
  full += fmt::format("\n  replay: {}", replay_text(options_));
  grid_.report().add({check, severity, edge, std::move(full)});
  if (severity == Severity::error) grid_.stop();
}

void Block::clash(const Clash& found, uint32_t record, bool tensor) {
  if (found.conflict == Conflict::none) return;
  const AccessRecord& mine = shadow_.record(record);
  const std::string where = place(found.cell, tensor);
  if (found.conflict == Conflict::uninitialised) {
    fault("H5", nullptr, nullptr,
          fmt::format("{} is read before anything was written there\n{}", where,
                      describe(mine, "read")),
          Severity::review, where);
    return;
  }
  const AccessRecord& other = shadow_.record(found.record);
  const auto [check, sentence] = classify(found.conflict, mine, other);
  Severity severity = Severity::error;
  if (found.conflict == Conflict::no_tensor_fence && !options_.strict) severity = Severity::note;
  if (found.conflict == Conflict::no_read_fence) {
    severity = options_.strict ? Severity::review : Severity::note;
  }
  fault(check, nullptr, nullptr,
        fmt::format("{}: {}\n{}\n{}", where, sentence, describe(mine, "access"),
                    describe(other, "against")),
        severity, where);
}

std::string Block::blocked_line(const Warp& warp) const {
  const Op& call = op(warp, __builtin_ctz(warp.waiting));
  std::string line = fmt::format("  block {} {:<20} ", index_, warp_name(warp.index));
  if (call.kind == OpKind::wait) {
    const auto offset = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(call.barrier) -
                                                 (shared_.data() + shared_skip_));
    const BarrierState& barrier = barriers_[static_cast<std::size_t>(barrier_at_[offset / 8])];
    line += fmt::format("waits {} phase {} ({} complete): {} of {} arrivals and {} bytes missing",
                        barrier_name(barrier), call.index, barrier.phase, barrier.pending,
                        barrier.expected, barrier.bytes);
    if (barrier.edge >= 0) {
      line += "  ->";
      for (const Arrival& arrival : kernel_.edges[static_cast<std::size_t>(barrier.edge)].arrives) {
        if (arrival.by != By::nobody) line += fmt::format(" {}", name_of(arrival.role));
      }
    }
  } else if (call.kind == OpKind::registers) {
    line += fmt::format("wants {} registers a thread, {} are free in the block", call.index,
                        registers_free_);
  } else {
    line += fmt::format("at a {} {}", mnemonic(call.kind), call.index);
    const Edge* edge = call.kind == OpKind::sync_named ? named_edge(call.index) : nullptr;
    if (edge != nullptr) line += fmt::format(", {}", edge->name);
  }
  line += fmt::format("  {}:{}", file_name(call.site.file), call.site.line);
  if (warp.kv_block >= 0) line += fmt::format(", block {}", warp.kv_block);
  return line + "\n";
}

// Roles whose arrival a blocked warp waits for; empty where that is not a barrier of the table.
std::vector<Role> Block::suppliers(const Warp& warp) const {
  std::vector<Role> roles;
  if (warp.live == 0 || warp.waiting == 0) return roles;
  const Op& call = op(warp, __builtin_ctz(warp.waiting));
  const Edge* edge = nullptr;
  if (call.kind == OpKind::wait) {
    const auto offset = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(call.barrier) -
                                                 (shared_.data() + shared_skip_));
    const BarrierState& barrier = barriers_[static_cast<std::size_t>(barrier_at_[offset / 8])];
    if (barrier.edge >= 0) edge = &kernel_.edges[static_cast<std::size_t>(barrier.edge)];
  } else if (call.kind == OpKind::sync_named) {
    edge = named_edge(call.index);
  }
  if (edge == nullptr) return roles;
  for (const Arrival& arrival : edge->arrives) {
    if (arrival.by != By::nobody) roles.push_back(arrival.role);
  }
  return roles;
}

// Follows suppliers from the first blocked warp of each role until a role comes again, or one has
// left: "cycle: mma -> correction -> mma".
std::string Block::wait_cycle() const {
  const auto first_blocked = [&](Role role) -> const Warp* {
    for (const Warp& warp : warps_) {
      if (warp.role == role && warp.live != 0 && warp.waiting != 0) return &warp;
    }
    return nullptr;
  };
  for (const Warp& start : warps_) {
    std::vector<Role> path;
    const Warp* at = &start;
    while (at != nullptr && at->live != 0) {
      const bool again = std::find(path.begin(), path.end(), at->role) != path.end();
      path.push_back(at->role);
      if (again) {
        std::string text;
        for (auto role = std::find(path.begin(), path.end(), at->role); role != path.end();
             ++role) {
          text += fmt::format("{}{}", text.empty() ? "" : " -> ", name_of(*role));
        }
        return fmt::format("  block {} cycle: {}\n", index_, text);
      }
      const Warp* next = nullptr;
      for (const Role role : suppliers(*at)) {
        if (next == nullptr && role != at->role) next = first_blocked(role);
      }
      at = next;
    }
  }
  return {};
}

std::string Block::wait_for_graph() const {
  std::string out;
  for (const Warp& warp : warps_) {
    if (warp.live == 0) {
      if (warp.role != Role::idle) {
        out +=
            fmt::format("  block {} {:<20} has left the kernel\n", index_, warp_name(warp.index));
      }
      continue;
    }
    if (warp.waiting != 0) out += blocked_line(warp);
  }
  out += wait_cycle();
  out += fmt::format("  replay: {}\n", replay_text(options_));
  return out;
}

// A commit or a copy must find its block alive, so somebody has to see its last phase.
void Block::check_observed(const BarrierState& barrier) {
  if (barrier.edge < 0 || barrier.phase == 0) return;
  const Edge& edge = kernel_.edges[static_cast<std::size_t>(barrier.edge)];
  const bool asynchronous = std::any_of(
      edge.arrives.begin(), edge.arrives.end(),
      [](const Arrival& arrival) { return arrival.by == By::commit || arrival.by == By::bytes; });
  if (!asynchronous) return;
  for (const Warp& warp : warps_) {
    const auto w = static_cast<std::size_t>(warp.index);
    if (warp.role != edge.waits || barrier.observed[w] >= barrier.phase - 1) continue;
    fault("H11", nullptr, nullptr,
          fmt::format("{} completes phase {} by an asynchronous operation, and {} leaves without "
                      "having seen it",
                      barrier_name(barrier), barrier.phase - 1, warp_name(warp.index)),
          Severity::error, std::string(edge.name));
    return;
  }
}

void Block::check_exit() {
  if (tensor_columns_ != 0) {
    fault("H11", nullptr, nullptr,
          fmt::format("{} columns of tensor memory are still allocated at exit", tensor_columns_),
          Severity::error, "tensor memory");
  }
  for (const BarrierState& barrier : barriers_) {
    check_observed(barrier);
    if (barrier.pending == barrier.expected && barrier.bytes == 0) continue;
    const Edge* edge =
        barrier.edge < 0 ? nullptr : &kernel_.edges[static_cast<std::size_t>(barrier.edge)];
    if (edge != nullptr && edge->open_at_exit && barrier.bytes == 0) continue;
    fault("H11", nullptr, nullptr,
          fmt::format("{} is left in mid-phase {}: {} of {} arrivals and {} bytes missing",
                      barrier_name(barrier), barrier.phase, barrier.pending, barrier.expected,
                      barrier.bytes),
          Severity::error, edge == nullptr ? "" : std::string(edge->name));
  }
  for (std::size_t id = 0; id < named_.size(); ++id) {
    if (named_[id].arrived == 0) continue;
    fault("H11", nullptr, nullptr,
          fmt::format("named barrier {} is left with {} of {} threads", id, named_[id].arrived,
                      named_[id].threads));
  }
}

void Block::count_phases(std::vector<uint64_t>& per_edge) const {
  for (const BarrierState& barrier : barriers_) {
    if (barrier.edge >= 0) per_edge[static_cast<std::size_t>(barrier.edge)] += barrier.phase;
  }
  for (std::size_t i = 0; i < named_phases_.size(); ++i) per_edge[i] += named_phases_[i];
}

}  // namespace deuce::emulator
