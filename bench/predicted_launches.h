// SPDX-License-Identifier: Apache-2.0
// Launches that hopper_bench has timed on an H200, beside what the timing model says about them.
// Used by hopper_predicted and by the test that holds the model to its rule.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/hopper_timing.h"
#include "emulator/timing.h"

namespace deuce::bench {

/// A launch in which every CTA has the same number of whole requests.
struct Launch {
  std::string name;
  emulator::HopperTimingCase timed;
  double measured_us = 0, launch_us = 0;  // launch_us: of an empty kernel in the same graph
  double clock_hz = 0;                    // of the SMs while it was measured
  bool fits = false;                      // its half fits the model, the other half judges
  /// Judges, and nothing was read off it before: costs were read off traces of kTraced; of launches
  /// of more than 16 rows, by mma.sync and by warpgroups, errors were known when the rules of
  /// KernelSpec::loads_ahead and of SharedPipe were chosen.
  bool blind() const {
    constexpr std::array<std::string_view, 3> kTraced{"132x256 kv1 g8 q1 hd128 linear hnd",
                                                      "132x1024 kv1 g4 q1 hd64 linear hnd",
                                                      "396x256 kv1 g4 q1 hd64 linear hnd"};
    return !fits && timed.rows <= 16 &&
           std::find(kTraced.begin(), kTraced.end(), name) == kTraced.end();
  }
  double tiles() const { return timed.requests * timed.tiles; }
  double measured() const { return cycles(measured_us) / tiles(); }
  double cycles(double us) const { return us * 1e-6 * clock_hz; }
};

/// Whether numbers of these names are there, all above 0 but for `page_size`.
inline Status check_numbers(const nlohmann::json& object, const std::string& where,
                            std::initializer_list<const char*> names) {
  for (const std::string name : names) {
    if (!object.contains(name) || !object.at(name).is_number()) {
      return invalid(name, "{} has no {}: of an older hopper_bench? Measure again", where, name);
    }
    if (name != "page_size" && !(object.at(name).get<double>() > 0)) {
      return invalid(name, "{}: {} is not above 0", where, name);
    }
  }
  return {};
}

inline Status check_report(const nlohmann::json& report) {
  Status status = check_numbers(report, "the measurement", {"sms", "empty_kernel_us"});
  if (!status.ok()) return status;
  if (!report.contains("cases") || !report.at("cases").is_array()) {
    return invalid("cases", "the measurement has no cases");
  }
  for (const nlohmann::json& entry : report.at("cases")) {
    if (!entry.contains("name") || !entry.at("name").is_string()) {
      return invalid("name", "a case has no name");
    }
    status = check_numbers(entry, entry.at("name").get<std::string>(),
                           {"batch", "kv_heads", "tokens", "kv_bytes", "head_dim", "us", "clock_hz",
                            "group", "q_len", "page_size"});
    if (!status.ok()) return status;
  }
  return {};
}

/// The launches of a report of `hopper_bench --set predicted`; every second one is for the fit.
inline Result<std::vector<Launch>> read_launches(const nlohmann::json& report) {
  if (Status bad = check_report(report); !bad.ok()) return bad;
  std::vector<Launch> launches;
  const int workers = report.at("sms");
  for (const nlohmann::json& entry : report.at("cases")) {
    const int batch = entry.at("batch"), kv_heads = entry.at("kv_heads");
    const int64_t tokens = entry.at("tokens"), bytes = entry.at("kv_bytes");
    const int head_dim = entry.at("head_dim");
    Launch launch;
    launch.name = entry.at("name");
    launch.measured_us = entry.at("us");
    launch.launch_us = report.at("empty_kernel_us");
    launch.clock_hz = entry.at("clock_hz");
    launch.fits = launches.size() % 2 == 0;
    launch.timed = {
        .head_dim = head_dim,
        .e4m3 = bytes == 2 * tokens * kv_heads * head_dim,
        .rows = static_cast<int>(entry.at("group")) * static_cast<int>(entry.at("q_len")),
        .page_size = entry.at("page_size"),
        .requests = batch * kv_heads / workers,
        .tiles = static_cast<int>(tokens / batch / 64),
        .score_slots = entry.value("score_slots", report.value("score_slots", 0))};
    if (batch * kv_heads % workers != 0 || tokens % (int64_t{64} * batch) != 0) {
      return Status(
          DEUCE_INVALID_ARGUMENT, "cases",
          fmt::format("{}: not the same whole requests for each of {} CTAs", launch.name, workers));
    }
    launches.push_back(launch);
  }
  return launches;
}

/// Cycles per KV tile, the launch itself included.
inline Result<double> predict(const Launch& launch, const emulator::FittedCosts* fitted,
                              emulator::Band band = emulator::Band::best) {
  const Result<double> cycles = emulator::predict_hopper_cycles(launch.timed, band, fitted);
  if (!cycles.ok()) return cycles.status();
  return (cycles.value() + launch.cycles(launch.launch_us)) / launch.tiles();
}

}  // namespace deuce::bench
