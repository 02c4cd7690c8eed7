// SPDX-License-Identifier: Apache-2.0
// Findings in the kernel's own words and the checks at exit; see block.h.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "emulator/grid.h"
#include "emulator/words.h"

namespace deuce::emulator {
namespace {

// H number and sentence of a conflict with `other`.
std::pair<const char*, std::string> classify(Conflict conflict, const AccessRecord& other) {
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
        return {"H12",
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

const NamedRange* Block::range_at(uint32_t cell, bool tensor) const {
  const uint32_t at = tensor ? cell % 512 : cell;
  for (const NamedRange& range : tensor ? kernel_.tensor_ranges : kernel_.shared_ranges) {
    const uint32_t all = range.size * static_cast<uint32_t>(range.slots);
    if (at >= range.first && at < range.first + all) return &range;
  }
  return nullptr;
}

std::string Block::place(uint32_t cell, bool tensor) const {
  const uint32_t at = tensor ? cell % 512 : cell;
  const NamedRange* range = range_at(cell, tensor);
  if (range == nullptr)
    return tensor ? fmt::format("column {}", at) : fmt::format("shared {:#x}", at);
  if (range->slots == 1) return range->name;
  return fmt::format("{}[{}]", range->name, (at - range->first) / range->size);
}

/// The edges whose arrivals and waits should order accesses there.
std::string Block::edges_of(uint32_t cell, bool tensor) const {
  const NamedRange* range = range_at(cell, tensor);
  return range == nullptr ? "" : range->edges;
}

std::string Block::describe(const AccessRecord& record, const char* verb) const {
  return describe(record, verb, index_);
}

std::string Block::describe(const AccessRecord& record, const char* verb, int cta) const {
  std::string what = mnemonic(record.kind);
  if (record.columns > 0) {
    what += fmt::format(" columns {}-{}", record.column, record.column + record.columns - 1);
  }
  if (record.tensor != 0)
    what += fmt::format(" ({} of KV block {})", record.tensor, record.tensor_block);
  if (record.block >= 0) what += fmt::format("  KV block {}", record.block);
  return fmt::format("  {:<8} CTA {}  {}  {}  {}:{}", verb, cta, warp_name(record.warp), what,
                     file_name(record.site.file == nullptr ? "?" : record.site.file),
                     record.site.line);
}

void Block::fault(const char* check, const Warp* warp, const Op* call, const std::string& text,
                  Severity severity, const std::string& edge) {
  if (warp != nullptr && call != nullptr) {
    fault(check, record_of(*warp, *call), text, severity, edge);
    return;
  }
  grid_.report().add(
      {check, severity, edge, fmt::format("{}\n  replay: {}", text, replay_text(options_))});
  if (severity == Severity::error) grid_.stop();
}

void Block::fault(const char* check, const AccessRecord& at, const std::string& text,
                  Severity severity, const std::string& edge) {
  fault(check, nullptr, nullptr, fmt::format("{}\n{}", text, describe(at, "at")), severity, edge);
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
  const auto [check, sentence] = classify(found.conflict, other);
  Severity severity = Severity::error;
  if (found.conflict == Conflict::no_tensor_fence && !options_.strict) severity = Severity::note;
  if (found.conflict == Conflict::no_read_fence && !options_.strict) {
    note_slot_reuse(where.substr(0, where.find('[')), mine, other);
    return;
  }
  if (found.conflict == Conflict::no_read_fence) severity = Severity::review;
  const std::string edges = edges_of(found.cell, tensor);
  fault(check, nullptr, nullptr,
        fmt::format("{}: {}\n{}\n{}{}", where, sentence, describe(mine, "access"),
                    describe(other, "against"),
                    edges.empty() ? "" : fmt::format("\n  ordered by {}", edges)),
        severity, where);
}

// Practice everywhere, and as frequent as tiles are: once for a place in memory and in the source.
void Block::note_slot_reuse(const std::string& where, const AccessRecord& mine,
                            const AccessRecord& other) {
  const auto place_of = [](const AccessRecord& record) {
    return fmt::format("{} at {}:{}", mnemonic(record.kind), file_name(record.site.file),
                       record.site.line);
  };
  grid_.report().add({"H4", Severity::note, where,
                      fmt::format("{}: {}\n  {} against {}", where,
                                  classify(Conflict::no_read_fence, other).second, place_of(mine),
                                  place_of(other))});
}

// A commit or a copy must find its block alive, so somebody has to see its last phase.
void Block::check_observed(const BarrierState& barrier) {
  if (barrier.edge < 0 || barrier.phase == 0) return;
  const Edge& edge = kernel_.edges[static_cast<std::size_t>(barrier.edge)];
  const bool asynchronous = std::any_of(
      edge.arrives.begin(), edge.arrives.end(),
      [](const Arrival& arrival) { return arrival.by == By::commit || arrival.by == By::bytes; });
  if (!asynchronous) return;
  const auto has_seen = [&](const Warp& warp) {
    return barrier.observed[static_cast<std::size_t>(warp.index)] >= barrier.phase - 1;
  };
  if (edge.waits == Role::idle) {  // slots are dealt to some of the warps that may wait
    if (std::any_of(warps_.begin(), warps_.end(), has_seen)) return;
    fault("H11", nullptr, nullptr,
          fmt::format("{} completes phase {} by an asynchronous operation, and nobody has seen it",
                      barrier_name(barrier), barrier.phase - 1),
          Severity::error, std::string(edge.name));
    return;
  }
  for (const Warp& warp : warps_) {
    if (warp.role != edge.waits || has_seen(warp)) continue;
    fault("H11", nullptr, nullptr,
          fmt::format("{} completes phase {} by an asynchronous operation, and {} leaves without "
                      "having seen it",
                      barrier_name(barrier), barrier.phase - 1, warp_name(warp.index)),
          Severity::error, std::string(edge.name));
    return;
  }
}

void Block::check_exit() {
  check_wgmma_exit();
  if (tensor_columns_ != 0) {
    fault("H11", nullptr, nullptr,
          fmt::format("CTA {}: {} columns of tensor memory are still allocated at exit", index_,
                      tensor_columns_),
          Severity::error, "tensor memory");
  }
  for (const BarrierState& barrier : barriers_) {
    check_observed(barrier);
    if (barrier.pending == barrier.expected && barrier.bytes == 0) continue;
    const Edge* edge =
        barrier.edge < 0 ? nullptr : &kernel_.edges[static_cast<std::size_t>(barrier.edge)];
    if (edge != nullptr && edge->open_at_exit && barrier.bytes == 0) continue;
    fault("H11", nullptr, nullptr,
          fmt::format("CTA {}: {} is left in mid-phase {}: {} of {} arrivals and {} bytes missing",
                      index_, barrier_name(barrier), barrier.phase, barrier.pending,
                      barrier.expected, barrier.bytes),
          Severity::error, edge == nullptr ? "" : std::string(edge->name));
  }
  for (std::size_t id = 0; id < named_.size(); ++id) {
    if (named_[id].arrived == 0) continue;
    fault("H11", nullptr, nullptr,
          fmt::format("named barrier {} is left with {} of {} threads", id, named_[id].arrived,
                      named_[id].threads));
  }
}

void Block::count_phases(std::vector<EdgeUse>& per_edge) const {
  for (const BarrierState& barrier : barriers_) {
    if (barrier.edge < 0) continue;
    const auto phases = static_cast<uint64_t>(barrier.phase);
    per_edge[static_cast<std::size_t>(barrier.edge)].add({phases, barrier.waits, phases});
  }
  for (std::size_t i = 0; i < named_uses_.size(); ++i) per_edge[i].add(named_uses_[i]);
}

}  // namespace deuce::emulator
