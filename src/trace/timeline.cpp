// SPDX-License-Identifier: Apache-2.0
// From records to tracks and arrows; see timeline.h.
#include "trace/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "trace/slice_extra.h"

namespace deuce::trace {
namespace {

/// Phases of an edge's slot that a track has met, in order.
using PhaseKey = std::pair<std::string_view, int>;

/// The kernel keeps no phase of these: a hardware barrier, and arrivals made once a block.
bool knows_parity(Event event) {
  return event != Event::arrive_stats_ready && event != Event::correction_wait_stats &&
         event != Event::arrive_stats_taken;
}

class TrackReader {
 public:
  TrackReader(const Slice& slice, Track& track) : slice_(slice), track_(track) {}

  Status read() {
    for (const Record& record : slice_.records) {
      advance(record);
      ++number_;
      Status status;
      switch (kind_of(record.word)) {
        case Kind::begin: open(record.word); break;
        case Kind::end: status = close(record.word); break;
        case Kind::instant: status = instant(record.word); break;
        case Kind::value:
          track_.samples.push_back({event_of(record.word), clock_, value_of(record.word)});
      }
      if (!status.ok()) return status;
    }
    for (const std::size_t index : stack_) {
      track_.ranges[index].end = last_;
      track_.ranges[index].cut = true;
      track_.ranges[index].records += number_;
    }
    sort();
    return phases();
  }

 private:
  // Units of the emulator write ranges when they know them, so a clock may also step back.
  void advance(const Record& record) {
    if (!started_) {
      clock_ = static_cast<double>(record.clock);
      started_ = true;
    } else {
      clock_ += static_cast<int32_t>(record.clock - before_);
    }
    before_ = record.clock;
    last_ = std::max(last_, clock_);
  }

  int unwrap_block(uint32_t word) {
    constexpr int kModulus = 1 << kBlockBits;
    int step = (block_of(word) - block_) % kModulus;
    if (step >= kModulus / 2) step -= kModulus;
    if (step < -kModulus / 2) step += kModulus;
    return block_ += step;
  }

  void open(uint32_t word) {
    stack_.push_back(track_.ranges.size());
    track_.ranges.push_back({event_of(word), slot_of(word), unwrap_block(word),
                             static_cast<int32_t>(parity_of(word)), clock_, clock_});
    track_.ranges.back().records = -number_;
  }

  Status close(uint32_t word) {
    const Event event = event_of(word);
    if (stack_.empty() && lost_its_begin()) return {};  // so is the begin of this range
    if (stack_.empty() || track_.ranges[stack_.back()].event != event) {
      return invalid("trace", "{}: {} ends, which is not the innermost open range", track_.name,
                     info(event).name);
    }
    track_.ranges[stack_.back()].end = clock_;
    track_.ranges[stack_.back()].records += number_;
    stack_.pop_back();
    return {};
  }

  bool lost_its_begin() const {
    return slice_.header.policy == kKeepNewest && slice_.dropped() > 0;
  }

  Status instant(uint32_t word) {
    track_.instants.push_back({event_of(word), slot_of(word), unwrap_block(word),
                               static_cast<int32_t>(parity_of(word)), clock_});
    return {};
  }

  void sort() {
    std::stable_sort(track_.ranges.begin(), track_.ranges.end(),
                     [](const Range& a, const Range& b) { return a.begin < b.begin; });
    std::stable_sort(track_.instants.begin(), track_.instants.end(),
                     [](const Instant& a, const Instant& b) { return a.at < b.at; });
  }

  /// Records hold a parity; the phase is how often the track has met this slot of the edge. A first
  /// wait with parity 1 is that of a producer, for the phase before the first.
  template <class Item>
  Status count(Item& item, std::map<PhaseKey, int32_t>& next) {
    const EventInfo& row = info(item.event);
    const bool waits = row.flow == Flow::wait;
    const int32_t parity = item.phase;
    // Where the first phases are lost, counting begins at the parity that comes first.
    const int32_t first = waits && parity == 1 ? -1 : lost_its_begin() ? parity : 0;
    const auto [found, fresh] = next.try_emplace({row.edge, item.slot}, first);
    item.phase = found->second++;
    if (!knows_parity(item.event) || (item.phase & 1) == parity) return {};
    return invalid("trace", "{}: {} of slot {}, phase {}, was recorded with parity {}", track_.name,
                   row.name, item.slot, item.phase, parity);
  }

  Status phases() {
    std::map<PhaseKey, int32_t> waits, bytes, arrivals;
    for (Range& range : track_.ranges) {
      const Flow flow = info(range.event).flow;
      Status status;
      if (flow == Flow::wait) status = count(range, waits);
      if (flow == Flow::bytes) status = count(range, bytes);
      if (!status.ok()) return status;
    }
    for (Instant& instant : track_.instants) {
      if (info(instant.event).edge.empty()) continue;
      const Status status = count(instant, arrivals);
      if (!status.ok()) return status;
    }
    return {};
  }

  const Slice& slice_;
  Track& track_;
  std::vector<std::size_t> stack_;
  bool started_ = false;
  int number_ = 0;  // of the record at hand, from 1
  uint32_t before_ = 0;
  double clock_ = 0, last_ = 0;
  int block_ = 0;
};

std::string track_name(const Track& track, int number) {
  switch (track.agent) {
    case Agent::warp: return fmt::format("{} warp {}", name_of(track.role), number);
    case Agent::copy: {
      const bool q = !track.ranges.empty() && track.ranges.front().event == Event::copy_Q;
      return fmt::format("TMA {} slot {}", q ? "Q" : "KV", slot_of_copy_unit(track.unit));
    }
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
      const EventInfo& row = info(range.event);
      if (row.flow == Flow::bytes) note(t, row.edge, range.slot, range.phase, range.end, false);
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
    track.name = track_name(track, numbers[{header.cta, header.agent, header.role}]);
    const Status status = TrackReader(slice, track).read();
    if (!status.ok()) return status;
    track.name = track_name(track, numbers[{header.cta, header.agent, header.role}]++);
    if (!slice.records.empty()) {
      const auto low = static_cast<double>(slice.records.front().clock);
      shift(track, first_clock(slice) - low + offsets.at(header.sm));
    }
    timeline.dropped += track.dropped;
    timeline.tracks.push_back(std::move(track));
  }
  place(timeline);
  draw_arrows(timeline);
  return timeline;
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

const Range* find_range(const Track& track, Event event, int block) {
  for (const Range& range : track.ranges) {
    if (range.event == event && range.block == block) return &range;
  }
  return nullptr;
}

}  // namespace deuce::trace
