// SPDX-License-Identifier: Apache-2.0
// From records to a track; see track_reader.h.
#include "trace/track_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace deuce::trace {
namespace {

/// Phases of an edge's slot that a track has met, in order.
using PhaseKey = std::pair<std::string_view, int>;

/// The kernel keeps no phase of these: a hardware barrier, and arrivals made once a block.
bool knows_parity(Event event) {
  return event != Event::arrive_stats_ready && event != Event::correction_wait_stats &&
         event != Event::arrive_stats_taken;
}

/// Hopper's two score slots ask for the keys of their last tile twice, the second time for nothing.
bool may_repeat(Event event, int score_slots) { return event == Event::wait_K && score_slots > 1; }

/// The phase that a slot of an edge was met with last, and the KV block it was met for.
struct Counted {
  int32_t phase;
  int block;
};

class TrackReader {
 public:
  TrackReader(const Slice& slice, int score_slots, Track& track)
      : slice_(slice), score_slots_(score_slots), track_(track) {}

  Status read() {
    for (const Record& record : slice_.records) {
      advance(record);
      ++number_;
      Status status;
      switch (kind_of(record.word)) {
        case Kind::begin: open(record.word); break;
        case Kind::next: status = replace(record.word); break;
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
    if (!knows_block_) block_ = block_of(word);  // the oldest kept may be any
    knows_block_ = true;
    int step = (block_of(word) - block_ % kModulus) % kModulus;
    if (step >= kModulus / 2) step -= kModulus;
    if (step < -kModulus / 2) step += kModulus;
    // Unsigned: a file that lies may step on without end.
    block_ = static_cast<int>(static_cast<uint32_t>(block_) + static_cast<uint32_t>(step));
    return block_;
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
    close_innermost();
    return {};
  }

  void close_innermost() {
    track_.ranges[stack_.back()].end = clock_;
    track_.ranges[stack_.back()].records += number_;
    stack_.pop_back();
  }

  Status replace(uint32_t word) {
    if (!stack_.empty()) {
      close_innermost();
    } else if (!lost_its_begin()) {
      return invalid("trace", "{}: {} begins at the end of a range, but none is open", track_.name,
                     info(event_of(word)).name);
    }
    open(word);
    return {};
  }

  bool lost_its_begin() const {
    return slice_.header.policy == Policy::keep_newest && slice_.dropped() > 0;
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
  Status count(Item& item, std::map<PhaseKey, Counted>& next) {
    const EventInfo& row = info(item.event);
    const bool waits = row.flow == Flow::wait;
    const int32_t parity = item.phase;
    // Where the first phases are lost, counting begins at the parity that comes first.
    const int32_t first = waits && parity == 1 ? -1 : lost_its_begin() ? parity : 0;
    const auto [found, fresh] = next.try_emplace({row.edge, item.slot}, Counted{first, item.block});
    Counted& counted = found->second;
    if (!fresh && !(may_repeat(item.event, score_slots_) && counted.block == item.block))
      ++counted.phase;
    counted.block = item.block;
    item.phase = counted.phase;
    if (!knows_parity(item.event) || (item.phase & 1) == parity) return {};
    return invalid("trace", "{}: {} of slot {}, phase {}, was recorded with parity {}", track_.name,
                   row.name, item.slot, item.phase, parity);
  }

  Status phases() {
    std::map<PhaseKey, Counted> waits, bytes, arrivals;
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
  const int score_slots_;
  Track& track_;
  std::vector<std::size_t> stack_;
  bool started_ = false;
  int number_ = 0;  // of the record at hand, from 1
  uint32_t before_ = 0;
  double clock_ = 0, last_ = 0;
  int block_ = 0;
  bool knows_block_ = false;
};

}  // namespace

Status read_track(const Slice& slice, int score_slots, Track& track) {
  return TrackReader(slice, score_slots, track).read();
}

}  // namespace deuce::trace
