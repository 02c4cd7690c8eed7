// SPDX-License-Identifier: Apache-2.0
// What hopper_predicted says: predictions beside measurements as a table and as JSON, with the
// errors of all launches, of those that judge, and of those that judge blindly.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "predicted_launches.h"

namespace deuce::bench {

struct Entry {
  const char* name;
  const emulator::Cost* cost;
  double low, high;  // a fit stays within
};
/// What no unit measurement has settled; everything else keeps its value.
inline constexpr std::array kEntries{
    Entry{"kDependent", &emulator::cost::kDependent, 1, 6},
    Entry{"kTileIssue", &emulator::cost::kTileIssue, 100, 600},
    Entry{"kMmaSync", &emulator::cost::kMmaSync, 6.06, 16},
    Entry{"kCopyBox", &emulator::cost::kCopyBox, 0, 60},
    Entry{"kFromE4m3", &emulator::cost::kFromE4m3, 0.5, 8},
};
using Values = std::array<double, kEntries.size()>;

struct Row {
  Launch launch;
  double low, best, high, fitted;  // predicted cycles per KV tile
  double error(double predicted) const { return 100 * (predicted / launch.measured() - 1); }
};

struct Score {
  double mean = 0, worst = 0;  // of absolute errors, percent
};
enum class Part { all, judges, blind };
inline Score score(const std::vector<Row>& rows, bool fitted, Part part) {
  Score result;
  int count = 0;
  for (const Row& row : rows) {
    if (part != Part::all && row.launch.fits) continue;
    if (part == Part::blind && !row.launch.blind()) continue;
    const double error = std::fabs(row.error(fitted ? row.fitted : row.best));
    result.mean += error;
    result.worst = std::max(result.worst, error);
    ++count;
  }
  if (count > 0) result.mean /= count;
  return result;
}

inline constexpr std::array kParts{std::pair{Part::all, "all"}, std::pair{Part::judges, "judges"},
                                   std::pair{Part::blind, "blind"}};

inline const char* half_of(const Launch& launch) {
  return launch.fits ? "fits" : launch.blind() ? "judges, blind" : "judges";
}

inline std::string scores_of(const std::vector<Row>& rows, bool fitted) {
  std::string text;
  for (const auto& [part, name] : kParts) {
    const Score one = score(rows, fitted, part);
    text += fmt::format("{}{} {:.1f} % and {:.1f} %", text.empty() ? "" : "; ", name, one.mean,
                        one.worst);
  }
  return text;
}

/// Without values of a fit there are no columns of one.
inline std::string markdown(const std::vector<Row>& rows, const Values* values) {
  std::string text =
      "| case | KV tiles a CTA | measured | model as it stands (low to high) | error |";
  std::string rule = "\n|---|--:|--:|--:|--:|";
  if (values != nullptr) {
    text += " fitted | error |";
    rule += "--:|--:|";
  }
  text += " half |" + rule + "---|\n";
  for (const Row& row : rows) {
    text += fmt::format("| {} | {} | {:.0f} | {:.0f} ({:.0f} to {:.0f}) | {:+.1f} % |",
                        row.launch.name, row.launch.tiles(), row.launch.measured(), row.best,
                        row.low, row.high, row.error(row.best));
    if (values != nullptr) {
      text += fmt::format(" {:.0f} | {:+.1f} % |", row.fitted, row.error(row.fitted));
    }
    text += fmt::format(" {} |\n", half_of(row.launch));
  }
  text += fmt::format(
      "\nCycles per KV tile of 64 keys, launch included. Absolute errors, mean and worst, as it "
      "stands: {}.\n",
      scores_of(rows, false));
  if (values == nullptr) return text;
  text += fmt::format("Fitted: {}.\nFitted:", scores_of(rows, true));
  for (std::size_t i = 0; i < kEntries.size(); ++i) {
    text += fmt::format("{} {} {:.2f} (table: {:.2f})", i == 0 ? "" : ",", kEntries[i].name,
                        (*values)[i], kEntries[i].cost->h200.best);
  }
  return text + ".\n";
}

inline nlohmann::json scores_json(const std::vector<Row>& rows, bool fitted) {
  nlohmann::json scores;
  for (const auto& [part, name] : kParts) {
    const Score one = score(rows, fitted, part);
    scores[name] = {{"mean_percent", one.mean}, {"worst_percent", one.worst}};
  }
  return scores;
}

inline nlohmann::json as_json(const std::vector<Row>& rows, const Values* values) {
  nlohmann::json report{{"schema", 2},
                        {"unit",
                         "cycles per KV tile of 64 keys, launch included; predictions are "
                         "simulated"},
                        {"as_it_stands", scores_json(rows, false)}};
  if (values != nullptr) {
    report["judged"] = scores_json(rows, true);
    for (std::size_t i = 0; i < kEntries.size(); ++i) {
      report["fitted"][kEntries[i].name] = (*values)[i];
    }
  }
  for (const Row& row : rows) {
    report["cases"].push_back({{"name", row.launch.name},
                               {"tiles", row.launch.tiles()},
                               {"measured", row.launch.measured()},
                               {"low", row.low},
                               {"best", row.best},
                               {"high", row.high},
                               {"half", half_of(row.launch)}});
    if (values != nullptr) report["cases"].back()["fitted"] = row.fitted;
  }
  return report;
}

}  // namespace deuce::bench
