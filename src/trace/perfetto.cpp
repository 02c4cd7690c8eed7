// SPDX-License-Identifier: Apache-2.0
// Perfetto's TrackEvent protobuf by a small encoder of its own; see perfetto.h.
// Field numbers from protos/perfetto/trace/ of google/perfetto at ec5d16b1 (2026-08-22). The tree
// is built from plain tracks: children of a track that is a thread or a process would not nest.
#include "trace/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace deuce::trace {
namespace {

/// A protobuf message in the making.
class Message {
 public:
  void integer(int field, uint64_t value) {
    varint(static_cast<uint64_t>(field) << 3);
    varint(value);
  }
  void fixed64(int field, uint64_t value) {
    varint(static_cast<uint64_t>(field) << 3 | 1);
    for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
  }
  void text(int field, std::string_view value) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes_ += value;
  }
  void message(int field, const Message& inner) { text(field, inner.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

constexpr uint64_t kSequence = 1;
enum Type : uint64_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };

/// An event packet waits for the order of time.
struct Packet {
  uint64_t at;
  std::string bytes;
};

class Writer {
 public:
  explicit Writer(TimeUnit unit) : unit_(unit) {}

  std::string write(const std::vector<Timeline>& runs) {
    const uint64_t root = track(
        0, "Deuce" + std::string(unit_ == TimeUnit::cycles ? ", one time unit is one cycle" : ""),
        {});
    for (const Timeline& run : runs) add(run, root);
    std::stable_sort(packets_.begin(), packets_.end(),
                     [](const Packet& a, const Packet& b) { return a.at < b.at; });
    std::string out = descriptors_;
    for (const Packet& packet : packets_) append(out, packet.bytes);
    return out;
  }

 private:
  // Trace.packet = 1
  static void append(std::string& out, const std::string& packet) {
    Message trace;
    trace.text(1, packet);
    out += trace.bytes();
  }

  uint64_t time(double cycles) const {
    const double unit = unit_ == TimeUnit::cycles ? 1 : 1e9 / clock_hz_;
    return static_cast<uint64_t>(std::llround(std::max(0.0, cycles) * unit));
  }

  /// A plain track below `parent`; 0 = none.
  uint64_t track(uint64_t parent, const std::string& name, const std::string& note,
                 bool counts_bytes = false) {
    const uint64_t uuid = ++last_uuid_;
    Message descriptor;
    descriptor.integer(1, uuid);
    descriptor.text(2, name);
    if (parent != 0) descriptor.integer(5, parent);
    if (counts_bytes) {
      Message counter;
      counter.integer(3, 3);  // unit: bytes
      descriptor.message(8, counter);
    }
    descriptor.integer(11, 3);  // children in explicit order
    descriptor.integer(12, uuid);
    if (!note.empty()) descriptor.text(14, note);
    descriptor.integer(15, 2);  // siblings of one name stay apart
    Message packet;
    packet.integer(8, 0);
    packet.integer(10, kSequence);
    if (uuid == 1) packet.integer(13, 1);  // incremental state starts here
    packet.message(60, descriptor);
    append(descriptors_, packet.bytes());
    return uuid;
  }

  void event(double at, const Message& body) {
    Message packet;
    packet.integer(8, time(at));
    packet.integer(10, kSequence);
    packet.message(11, body);
    packets_.push_back({time(at), packet.bytes()});
  }

  static Message body(Type type, uint64_t uuid) {
    Message event;
    event.integer(9, type);
    event.integer(11, uuid);
    return event;
  }

  static void annotate(Message& event, std::string_view name, int64_t value) {
    Message note;
    note.text(10, name);
    note.integer(4, static_cast<uint64_t>(value));
    event.message(4, note);
  }
  template <class Item>
  static void describe(Message& event, const Item& item) {
    const EventInfo& row = info(item.event);
    annotate(event, "block", item.block);
    annotate(event, "slot", item.slot);
    if (row.flow != Flow::none) {
      annotate(event, "phase", item.phase);
      annotate(event, "parity", item.phase & 1);
    }
    if (!row.argument.empty()) {
      Message note;
      note.text(10, row.edge.empty() ? "operand" : row.flow == Flow::commit ? "edge" : "operand");
      note.text(6, row.argument);
      event.message(4, note);
    }
  }

  void add(const Timeline& run, uint64_t root) {
    clock_hz_ = run.facts.clock_hz;
    const uint64_t top = track(root, run_title(run.facts), run.facts.problem);
    std::map<uint32_t, uint64_t> blocks;
    std::map<std::pair<uint32_t, Role>, uint64_t> roles;
    std::vector<uint64_t> uuids;
    for (const Track& source : run.tracks) {
      uint64_t& block = blocks[source.cta];
      if (block == 0) block = track(top, fmt::format("CTA {} on SM {}", source.cta, source.sm), {});
      uint64_t parent = block;
      if (source.agent == Agent::warp) {
        uint64_t& role = roles[{source.cta, source.role}];
        if (role == 0) role = track(block, std::string(name_of(source.role)), {});
        parent = role;
      }
      uuids.push_back(
          track(parent, source.name, track_note(source), source.agent == Agent::memory_queue));
      write_track(source, uuids.back());
    }
    write_arrows(run, uuids);
  }

  void write_track(const Track& source, uint64_t uuid) {
    std::vector<const Range*> open;
    const auto close_until = [&](double at) {
      while (!open.empty() && open.back()->end <= at) {
        event(open.back()->end, body(kEnd, uuid));
        open.pop_back();
      }
    };
    for (const Range& range : source.ranges) {
      close_until(range.begin);
      Message begin = body(kBegin, uuid);
      begin.text(23, info(range.event).name);
      describe(begin, range);
      event(range.begin, begin);
      open.push_back(&range);
    }
    close_until(1e300);
    for (const Instant& instant : source.instants) {
      if (info(instant.event).flow == Flow::arrive) continue;  // drawn with its arrow, or below
      Message mark = body(kInstant, uuid);
      mark.text(23, info(instant.event).name);
      describe(mark, instant);
      event(instant.at, mark);
    }
    for (const Sample& sample : source.samples) {
      if (source.agent != Agent::memory_queue) continue;
      Message count = body(kCounter, uuid);
      count.integer(30, sample.value);
      event(sample.at, count);
    }
  }

  // Arrows run between instants of no length: a slice would give its end as the start of the arrow.
  // A flow cannot fork, so each waiting warp has a number of its own and the arrival lists them
  // all.
  void write_arrows(const Timeline& run, const std::vector<uint64_t>& uuids) {
    std::map<std::pair<std::size_t, double>, std::vector<const Arrow*>> sources;
    for (const Arrow& arrow : run.arrows) sources[{arrow.from_track, arrow.from}].push_back(&arrow);
    for (const auto& [from, arrows] : sources) {
      std::map<std::string_view, std::vector<const Arrow*>> edges;
      for (const Arrow* arrow : arrows) edges[arrow->edge].push_back(arrow);
      for (const auto& [edge, same] : edges) {
        Message source = body(kInstant, uuids[from.first]);
        source.text(23, fmt::format("arrive_{}", edge));
        place(source, *same.front());
        for (const Arrow* arrow : same) {
          source.fixed64(47, ++last_flow_);
          Message target = body(kInstant, uuids[arrow->to_track]);
          target.text(23, fmt::format("pass_{}", edge));
          place(target, *arrow);
          target.fixed64(48, last_flow_);
          event(arrow->to, target);
        }
        event(from.second, source);
      }
    }
  }
  static void place(Message& event, const Arrow& arrow) {
    annotate(event, "slot", arrow.slot);
    annotate(event, "phase", arrow.phase);
  }

  TimeUnit unit_;
  double clock_hz_ = 1e9;
  uint64_t last_uuid_ = 0, last_flow_ = 0;
  std::string descriptors_;
  std::vector<Packet> packets_;
};

}  // namespace

std::string run_title(const Facts& facts) {
  return fmt::format("{}: {}, {} at {:.3f} GHz", facts.label, origin(facts), facts.chip,
                     facts.clock_hz * 1e-9);
}

std::string track_note(const Track& track) {
  switch (track.agent) {
    case Agent::warp:
      return "The warp's own time: an issue range ends when the work is issued, not when it is "
             "done.";
    case Agent::copy:
      return "From the issue of a tile's first box to the arrival of its last byte.";
    case Agent::tensor_pipe: return "MMAs as they execute, and commits as they arrive.";
    case Agent::memory_queue: return "Bytes of copies that have been issued and have not arrived.";
  }
  return {};
}

std::string perfetto_trace(const std::vector<Timeline>& runs, TimeUnit unit) {
  return Writer(unit).write(runs);
}

}  // namespace deuce::trace
