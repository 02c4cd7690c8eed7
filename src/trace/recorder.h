// SPDX-License-Identifier: Apache-2.0
// Keeps the records of a run in memory, one bounded slice for each warp or unit. The emulator
// writes here directly; what a GPU left in its buffers is copied in slice by slice.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "trace/event.h"

namespace deuce::trace {

/// Number of the copy unit that fills slot `slot` of row `edge` of the edge table.
inline constexpr int kSlotsOfAnEdge = 32;
constexpr int copy_unit(int edge, int slot) { return kSlotsOfAnEdge * (edge + 1) + slot; }
constexpr int slot_of_copy_unit(int unit) { return unit % kSlotsOfAnEdge; }

struct Slice {
  SliceHeader header{};
  std::vector<Record> records;

  /// Keep-first: a full slice only counts.
  void add(uint64_t clock, uint32_t word) {
    if (header.wanted++ < header.capacity) {
      records.push_back({static_cast<uint32_t>(clock), word});
    }
  }
  uint32_t dropped() const {
    return header.wanted > header.capacity ? header.wanted - header.capacity : 0;
  }
};

class Recorder {
 public:
  Recorder(Level level, uint32_t capacity) : level_(level), capacity_(capacity) {}

  bool takes(Event event) const { return level_of(event) <= level_; }
  Level level() const { return level_; }

  /// The slice of a warp or unit, made at the first call. Stays where it is.
  Slice& slice(uint32_t cta, Agent agent, int unit, int role = 0) {
    auto [found, fresh] = slices_.try_emplace({cta, agent, unit});
    if (fresh) {
      SliceHeader& header = found->second.header;
      header.magic = kSliceMagic;
      header.version = kFormatVersion;
      header.agent = agent;
      header.role = static_cast<uint8_t>(role);
      header.cta = cta;
      header.sm = static_cast<uint16_t>(cta);
      header.unit = static_cast<uint16_t>(unit);
      header.capacity = capacity_;
      header.policy = Policy::keep_first;
    }
    return found->second;
  }

  /// Anchors of a run whose clocks all count from 0 at one rate.
  void close(double cycles, double hz) {
    for (auto& [key, slice] : slices_) {
      slice.header.begin = {0, 0};
      slice.header.end = {static_cast<uint64_t>(cycles),
                          static_cast<uint64_t>(cycles / hz * 1e9 + 0.5)};
    }
  }

  /// All slices, by block, agent and unit.
  std::vector<Slice> take() {
    std::vector<Slice> all;
    for (auto& [key, slice] : slices_) all.push_back(std::move(slice));
    slices_.clear();
    return all;
  }

 private:
  Level level_;
  uint32_t capacity_;
  std::map<std::tuple<uint32_t, Agent, int>, Slice> slices_;
};

}  // namespace deuce::trace
