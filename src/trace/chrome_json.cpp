// SPDX-License-Identifier: Apache-2.0
// Timelines as JSON of Chrome's tracing: a process for each CTA of a run, a thread for each track;
// ranges as complete events, arrows as flows. See perfetto.h.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "trace/perfetto.h"

namespace deuce::trace {
namespace {

using nlohmann::json;

class ChromeWriter {
 public:
  std::string write(const std::vector<Timeline>& runs) {
    for (const Timeline& run : runs) add(run);
    json document = {{"traceEvents", std::move(events_)}, {"displayTimeUnit", "ns"}};
    for (const Timeline& run : runs) document["metadata"].push_back(run_title(run.facts));
    return document.dump();
  }

 private:
  // Microseconds with three decimals, as the format wants them.
  double time(double cycles) const { return std::round(cycles / clock_hz_ * 1e9) / 1e3; }
  static json place(const char* type, std::string_view name, int pid, std::size_t tid, double at) {
    return {{"ph", type}, {"name", name}, {"pid", pid}, {"tid", tid}, {"ts", at}};
  }
  template <class Item>
  static json details(const Item& item) {
    const EventInfo& row = info(item.event);
    json values = {{"block", item.block}, {"slot", item.slot}};
    if (row.flow != Flow::none) {
      values["phase"] = item.phase;
      values["parity"] = item.phase & 1;
    }
    if (!row.argument.empty()) values["of"] = row.argument;
    return values;
  }

  void add(const Timeline& run) {
    clock_hz_ = run.facts.clock_hz;
    const int first = next_pid_;
    for (std::size_t t = 0; t < run.tracks.size(); ++t) {
      const Track& track = run.tracks[t];
      const int pid = first + static_cast<int>(track.cta);
      if (pid >= next_pid_) {
        next_pid_ = pid + 1;
        events_.push_back(
            {{"ph", "M"},
             {"name", "process_name"},
             {"pid", pid},
             {"args", {{"name", fmt::format("{}, CTA {}", run_title(run.facts), track.cta)}}}});
      }
      events_.push_back({{"ph", "M"},
                         {"name", "thread_name"},
                         {"pid", pid},
                         {"tid", t},
                         {"args", {{"name", track.name}}}});
      events_.push_back({{"ph", "M"},
                         {"name", "thread_sort_index"},
                         {"pid", pid},
                         {"tid", t},
                         {"args", {{"sort_index", t}}}});
      write_track(track, pid, t);
    }
    for (const Arrow& arrow : run.arrows) write_arrow(run, arrow, first);
  }

  void write_track(const Track& track, int pid, std::size_t tid) {
    for (const Range& range : track.ranges) {
      json event = place("X", info(range.event).name, pid, tid, time(range.begin));
      event["dur"] = time(range.end) - time(range.begin);
      event["args"] = details(range);
      events_.push_back(std::move(event));
    }
    for (const Instant& instant : track.instants) {
      json event = place("i", info(instant.event).name, pid, tid, time(instant.at));
      event["s"] = "t";
      event["args"] = details(instant);
      events_.push_back(std::move(event));
    }
    if (track.agent != Agent::memory_queue) return;
    for (const Sample& sample : track.samples) {
      json event = place("C", info(sample.event).name, pid, tid, time(sample.at));
      event["args"] = {{"bytes", sample.value}};
      events_.push_back(std::move(event));
    }
  }

  void write_arrow(const Timeline& run, const Arrow& arrow, int first_pid) {
    const int pid = first_pid + static_cast<int>(run.tracks[arrow.from_track].cta);
    json from = place("s", arrow.edge, pid, arrow.from_track, time(arrow.from));
    json to = place("f", arrow.edge, pid, arrow.to_track, time(arrow.to));
    from["id"] = to["id"] = ++last_flow_;
    from["cat"] = to["cat"] = "edge";
    to["bp"] = "e";
    events_.push_back(std::move(from));
    events_.push_back(std::move(to));
  }

  double clock_hz_ = 1e9;
  int next_pid_ = 1;
  uint64_t last_flow_ = 0;
  json events_ = json::array();
};

}  // namespace

std::string chrome_trace(const std::vector<Timeline>& runs) { return ChromeWriter().write(runs); }

}  // namespace deuce::trace
