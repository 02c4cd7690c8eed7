// SPDX-License-Identifier: Apache-2.0
// The HTML page of a timeline; see page.h.
#include "trace/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "trace/figures.h"
#include "trace/page_script.h"
#include "trace/perfetto.h"

namespace deuce::trace {
namespace {

using nlohmann::json;

double rounded(double cycles) { return std::round(cycles * 10) / 10; }

/// Where two kernels are compared, a copy has no one edge to tell.
json events(const std::vector<Timeline>& runs) {
  const std::string& kernel = runs.front().facts.kernel;
  const bool one_kernel = std::all_of(
      runs.begin(), runs.end(), [&](const Timeline& run) { return run.facts.kernel == kernel; });
  json list = json::array();
  for (const EventInfo& row : kEvents) {
    json event = {
        {"name", row.name}, {"kind", color_of(row.event)}, {"short", short_name(row.event)}};
    if (row.flow == Flow::wait) event["edge"] = row.edge;
    if (row.flow == Flow::bytes && one_kernel) event["edge"] = edge_of_copy(kernel, row.event);
    if (!row.argument.empty()) event["argument"] = row.argument;
    list.push_back(std::move(event));
  }
  return list;
}

/// Tracks shown at once: what is alike or rarely read waits for "all warps and units".
bool is_main(const Timeline& run, const Track& track) {
  if (track.cta != 0) return false;
  if (track.agent == Agent::copy) return false;
  if (track.agent != Agent::warp) return true;
  if (track.role == Role::schedule || track.role == Role::load_q || track.role == Role::epilogue) {
    return false;
  }
  return track.role == Role::attend || &track == find_warp(run, track.role);
}

/// Place among the rows of a CTA: as data flow, units behind the warp that feeds them.
int order_of(const Track& track) {
  const int agent = track.agent == Agent::copy           ? 3
                    : track.agent == Agent::memory_queue ? 4
                    : track.agent == Agent::tensor_pipe  ? 25
                                                         : 10 * static_cast<int>(track.role);
  return 1000 * static_cast<int>(track.cta) + agent;
}

/// The shown track that stands for one that is not.
int stand_in(const Timeline& run, const Track& track) {
  const Track* first =
      track.agent == Agent::warp ? find_warp(run, track.role, 0, track.cta) : &track;
  return static_cast<int>(first - run.tracks.data());
}

json track_json(const Timeline& run, const Track& track) {
  json ranges = json::array(), samples = json::array();
  for (const Range& range : track.ranges) {
    if (range.event == Event::warp_lifetime || range.event == Event::work_item) continue;
    ranges.push_back({static_cast<int>(range.event), rounded(range.begin), rounded(range.end),
                      range.block, range.slot, range.phase});
  }
  if (track.agent == Agent::memory_queue) {
    for (const Sample& sample : track.samples)
      samples.push_back({rounded(sample.at), sample.value});
  }
  return {
      {"name", track.cta == 0 ? track.name : fmt::format("{} of CTA {}", track.name, track.cta)},
      {"main", is_main(run, track)},
      {"order", order_of(track)},
      {"stand", stand_in(run, track)},
      {"ranges", std::move(ranges)},
      {"samples", std::move(samples)}};
}

json run_json(const Timeline& run) {
  json tracks = json::array(), arrows = json::array();
  for (const Track& track : run.tracks) tracks.push_back(track_json(run, track));
  for (const Arrow& arrow : run.arrows) {
    arrows.push_back({arrow.from_track, rounded(arrow.from), arrow.to_track, rounded(arrow.to)});
  }
  const Window window = steady_window(run);
  return {{"label", run.facts.label},         {"origin", origin(run.facts)},
          {"caption", caption_of(run.facts)}, {"clock", run.facts.clock_hz},
          {"length", rounded(run.length)},    {"align", rounded(window.begin)},
          {"window", rounded(window.length)}, {"tracks", std::move(tracks)},
          {"arrows", std::move(arrows)}};
}

}  // namespace

std::string timeline_page(const std::vector<Timeline>& runs) {
  json data = {{"events", events(runs)}, {"runs", json::array()}};
  for (const Timeline& run : runs) data["runs"].push_back(run_json(run));
  data["note"] =
      "Wheel zooms, drag moves, hover tells. Every run counts from the start of a steady block. A "
      "warp's issue ends when the work is issued, not when it is done; the tensor pipe and TMA "
      "rows "
      "show execution and exist only in simulated runs.";
  std::string text = data.dump();
  // "</" would end the script.
  for (std::size_t at = 0; (at = text.find("</", at)) != std::string::npos; at += 3) {
    text.replace(at, 2, "<\\/");
  }
  return kPageHead + text + kPageTail;
}

}  // namespace deuce::trace
