// SPDX-License-Identifier: Apache-2.0
// From slices to one time axis with arrows; see timeline.h.
#include "trace/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "trace/track_reader.h"

namespace deuce::trace {
namespace {

/// Of the rings: Blackwell's holds K and V in turn, Hopper has one of each.
std::string_view copied_by(const Track& track, std::string_view kernel) {
  const Event first = track.ranges.empty() ? Event::copy_K : track.ranges.front().event;
  if (first == Event::copy_Q) return "Q";
  if (kernel != "hopper") return "KV";
  return first == Event::copy_V ? "V" : "K";
}

std::string track_name(const Track& track, int number, std::string_view kernel) {
  switch (track.agent) {
    case Agent::warp: return fmt::format("{} warp {}", name_of(track.role), number);
    case Agent::copy:
      return fmt::format("TMA {} slot {}", copied_by(track, kernel), slot_of_copy_unit(track.unit));
    case Agent::tensor_pipe: return "tensor pipe";
    case Agent::memory_queue: return "bytes in flight";
  }
  return {};
}

/// Clocks of SMs are unrelated: each is placed by the median of its warps' first anchors. The
/// device timer counts from 1970, where a double has steps of 256 ns: only its distance from the
/// first anchor is taken.
std::map<int, double> sm_offsets(const TraceFile& trace) {
  std::map<int, std::vector<double>> starts;
  uint64_t first = ~uint64_t{0};
  for (const Slice& slice : trace.slices) first = std::min(first, slice.header.begin.ns);
  for (const Slice& slice : trace.slices) {
    const Anchor& begin = slice.header.begin;
    starts[slice.header.sm].push_back(static_cast<double>(begin.ns - first) * 1e-9 *
                                          trace.facts.clock_hz -
                                      static_cast<double>(begin.clock));
  }
  std::map<int, double> offsets;
  for (auto& [sm, values] : starts) {
    std::nth_element(values.begin(),
                     values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    offsets[sm] = values[values.size() / 2];
  }
  return offsets;
}

void shift(Track& track, double by) {
  for (Range& range : track.ranges) {
    range.begin += by;
    range.end += by;
  }
  for (Instant& instant : track.instants) instant.at += by;
  for (Sample& sample : track.samples) sample.at += by;
}

/// The whole clock of a slice's first record: low word as recorded, the rest from the anchor.
double first_clock(const Slice& slice) {
  const uint64_t anchor = slice.header.begin.clock;
  if (slice.records.empty()) return static_cast<double>(anchor);
  const uint32_t low = slice.records.front().clock;
  return static_cast<double>(anchor) +
         static_cast<double>(static_cast<int32_t>(low - static_cast<uint32_t>(anchor)));
}

/// A warp's clock that is read as one that runs backwards, or slices that no run can hold together:
/// pictures and viewers would fail on such times, each in its own way.
Status check_times(const Timeline& timeline) {
  double furthest = timeline.length;
  for (const Track& track : timeline.tracks) {
    for (const Range& range : track.ranges) {
      if (range.end >= range.begin) continue;
      return invalid("trace", "{}: {} ends before it begins", track.name, info(range.event).name);
    }
    for (const Instant& instant : track.instants) {
      furthest = std::max(furthest, std::abs(instant.at));
    }
    for (const Sample& sample : track.samples) furthest = std::max(furthest, std::abs(sample.at));
  }
  if (furthest <= kMostCycles) return {};
  return invalid("trace", "its records lie {:.0e} cycles apart, further than those of a run",
                 furthest);
}

void place(Timeline& timeline) {
  double first = 1e300, last = -1e300;
  for (const Track& track : timeline.tracks) {
    for (const Range& range : track.ranges) {
      first = std::min(first, range.begin);
      last = std::max(last, range.end);
    }
  }
  if (last < first) return;
  for (Track& track : timeline.tracks) shift(track, -first);
  timeline.length = last - first;
}

// --- arrows ---

struct Arrival {
  std::size_t track;
  double at;
};
using ArrivalKey = std::tuple<uint32_t, std::string_view, int, int32_t>;  // cta, edge, slot, phase

/// What completes phases: instants of warps, ends of copies; of commits the arrival where a unit of
/// the emulator has recorded it, else the issue.
std::map<ArrivalKey, Arrival> last_arrivals(const Timeline& timeline) {
  std::map<ArrivalKey, Arrival> last;
  const auto note = [&](std::size_t track, std::string_view edge, int slot, int32_t phase,
                        double at, bool replace) {
    const ArrivalKey key{timeline.tracks[track].cta, edge, slot, phase};
    const auto [found, fresh] = last.try_emplace(key, Arrival{track, at});
    if (!fresh && (replace || found->second.at <= at)) found->second = {track, at};
  };
  for (std::size_t t = 0; t < timeline.tracks.size(); ++t) {
    const Track& track = timeline.tracks[t];
    for (const Instant& instant : track.instants) {
      const EventInfo& row = info(instant.event);
      if (row.flow != Flow::arrive && row.flow != Flow::commit) continue;
      note(t, row.edge, instant.slot, instant.phase, instant.at, track.agent != Agent::warp);
    }
    for (const Range& range : track.ranges) {
      if (info(range.event).flow != Flow::bytes) continue;
      note(t, edge_of_copy(timeline.facts.kernel, range.event), range.slot, range.phase, range.end,
           false);
    }
  }
  return last;
}

void draw_arrows(Timeline& timeline) {
  const auto last = last_arrivals(timeline);
  for (std::size_t t = 0; t < timeline.tracks.size(); ++t) {
    for (const Range& range : timeline.tracks[t].ranges) {
      const EventInfo& row = info(range.event);
      if (row.flow != Flow::wait || range.cut) continue;
      const auto found = last.find({timeline.tracks[t].cta, row.edge, range.slot, range.phase});
      if (found == last.end()) continue;
      timeline.arrows.push_back({row.edge, range.slot, range.block, range.phase,
                                 found->second.track, t, found->second.at, range.end});
    }
  }
}

}  // namespace

Result<Timeline> make_timeline(const TraceFile& trace) {
  Timeline timeline;
  timeline.facts = trace.facts;
  const std::map<int, double> offsets = sm_offsets(trace);
  std::map<std::tuple<uint32_t, Agent, uint8_t>, int> numbers;
  for (const Slice& slice : trace.slices) {
    const SliceHeader& header = slice.header;
    Track track;
    track.agent = header.agent;
    track.role = static_cast<Role>(header.role);
    track.cta = header.cta;
    track.sm = header.sm;
    track.unit = header.unit;
    track.dropped = slice.dropped();
    int& number = numbers[{header.cta, header.agent, header.role}];
    track.name = track_name(track, number, trace.facts.kernel);  // for a refusal
    const Status status = read_track(slice, trace.facts.score_slots, track);
    if (!status.ok()) return status;
    track.name = track_name(track, number++, trace.facts.kernel);
    if (!slice.records.empty()) {
      const auto low = static_cast<double>(slice.records.front().clock);
      shift(track, first_clock(slice) - low + offsets.at(header.sm));
    }
    timeline.dropped += track.dropped;
    timeline.tracks.push_back(std::move(track));
  }
  place(timeline);
  if (Status bad = check_times(timeline); !bad.ok()) return bad;
  draw_arrows(timeline);
  return timeline;
}

std::string_view edge_of_copy(std::string_view kernel, Event event) {
  if (kernel == "hopper" && event == Event::copy_K) return info(Event::wait_K).edge;
  if (kernel == "hopper" && event == Event::copy_V) return info(Event::wait_V).edge;
  return info(event).edge;
}

const Track* find_warp(const Timeline& timeline, Role role, int n, uint32_t cta) {
  for (const Track& track : timeline.tracks) {
    if (track.cta != cta || track.agent != Agent::warp || track.role != role) continue;
    if (n-- == 0) return &track;
  }
  return nullptr;
}

const Track* find_agent(const Timeline& timeline, Agent agent, uint32_t cta) {
  for (const Track& track : timeline.tracks) {
    if (track.cta == cta && track.agent == agent) return &track;
  }
  return nullptr;
}

std::vector<Range> ranges_of(const Track& track, Event event) {
  std::vector<Range> ranges;
  std::copy_if(track.ranges.begin(), track.ranges.end(), std::back_inserter(ranges),
               [event](const Range& range) { return range.event == event; });
  return ranges;
}

const Range* find_range(const Track& track, Event event, int block) {
  for (const Range& range : track.ranges) {
    if (range.event == event && range.block == block) return &range;
  }
  return nullptr;
}

}  // namespace deuce::trace
