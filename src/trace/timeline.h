// SPDX-License-Identifier: Apache-2.0
// A trace as people read it: tracks with ranges and instants on one time axis, and arrows from the
// last arrival of a phase to the wait that it ends. Every exporter and figure draws this model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernel/edges.h"
#include "trace/trace_file.h"

namespace deuce::trace {

/// Time is in cycles since the first record of the run.
struct Range {
  Event event{};
  int slot = 0, block = 0;
  int32_t phase = 0;  // of waits: integer, -1 = the phase before the first
  double begin = 0, end = 0;
  bool cut = false;  // its end was not recorded
  int records = 0;   // written from its begin, included, to its end
};

struct Instant {
  Event event{};
  int slot = 0, block = 0;
  int32_t phase = 0;
  double at = 0;
};

struct Sample {
  Event event{};
  double at = 0;
  uint32_t value = 0;
};

struct Track {
  Agent agent = Agent::warp;
  Role role = Role::idle;
  uint32_t cta = 0;
  int sm = 0, unit = 0;
  std::string name;           // "softmax warp 2", "TMA slot 3", "tensor pipe"
  std::vector<Range> ranges;  // by begin, outer before inner
  std::vector<Instant> instants;
  std::vector<Sample> samples;
  uint32_t dropped = 0;
};

/// Ends of an arrow: a track and a time on it.
struct Arrow {
  std::string_view edge;
  int slot = 0, block = 0;
  int32_t phase = 0;
  std::size_t from_track = 0, to_track = 0;
  double from = 0, to = 0;
};

struct Timeline {
  Facts facts;
  std::vector<Track> tracks;
  std::vector<Arrow> arrows;
  double length = 0;     // cycles
  uint64_t dropped = 0;  // records, all tracks together
};

/// INVALID_ARGUMENT when ranges do not nest, a parity contradicts the count of its phases, or times
/// are those of no run.
Result<Timeline> make_timeline(const TraceFile& trace);

/// The edge that a copy completes; rings of Hopper have K and V on edges of their own.
std::string_view edge_of_copy(std::string_view kernel, Event event);

/// The n-th warp of a role, n = 0 for the first; null if there is none.
const Track* find_warp(const Timeline& timeline, Role role, int n = 0, uint32_t cta = 0);
const Track* find_agent(const Timeline& timeline, Agent agent, uint32_t cta = 0);
/// Ranges of one event on a track, in order.
std::vector<Range> ranges_of(const Track& track, Event event);
/// The first range of an event and KV block on a track; null if there is none.
const Range* find_range(const Track& track, Event event, int block);

}  // namespace deuce::trace
