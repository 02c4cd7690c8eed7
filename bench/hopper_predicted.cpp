// SPDX-License-Identifier: Apache-2.0
// Predicted against measured: cycles per KV tile of the Hopper kernel by the timing model, next to
// launches that hopper_bench has timed on an H200.
//   hopper_predicted MEASURED.json [--out TABLE.json] [--markdown TABLE.md] [--no-fit]
//   hopper_predicted MEASURED.json --timelines DIR
// MEASURED.json: `hopper_bench --set predicted`. The model is compared as it stands, and once more
// with five entries of src/emulator/timing.h fitted to every second case; the other half judges.
// --timelines writes the predicted timeline of each case, in the format of `deuce trace`.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "predicted_launches.h"
#include "trace/trace_file.h"

namespace deuce::bench {
namespace {

using emulator::Band;
using emulator::Cost;
using emulator::FittedCosts;

struct Entry {
  const char* name;
  const Cost* cost;
  double low, high;  // a fit stays within
};
/// What no unit measurement has settled; everything else keeps its value.
constexpr std::array kEntries{
    Entry{"kDependent", &emulator::cost::kDependent, 1, 6},
    Entry{"kTileIssue", &emulator::cost::kTileIssue, 100, 600},
    Entry{"kMmaSync", &emulator::cost::kMmaSync, 6.06, 16},
    Entry{"kCopyBox", &emulator::cost::kCopyBox, 0, 60},
    Entry{"kFromE4m3", &emulator::cost::kFromE4m3, 0.5, 8},
};
using Values = std::array<double, kEntries.size()>;

/// Writes the predicted timeline of a launch's CTA, by the table's best costs, for `deuce trace`.
void write_timeline(const Launch& launch, const std::string& folder) {
  trace::Recorder recorder(trace::Level::edges, 1 << 16);
  const Result<double> cycles =
      emulator::predict_hopper_cycles(launch.timed, Band::best, nullptr, &recorder);
  if (!cycles.ok()) return;
  constexpr emulator::ChipFacts kChip = emulator::facts_of(emulator::Chip::h200);
  trace::TraceFile file;
  file.facts = {.label = "predicted",
                .kernel = "hopper",
                .problem = launch.name,
                .chip = fmt::format("{} (model)", kChip.name),
                .clock_hz = kChip.clock_hz,
                .head_dim = launch.timed.head_dim,
                .rows = launch.timed.rows,
                .score_slots = 1,
                .kv_block = 64,
                .costs = "best",
                .cycles = cycles.value()};
  file.slices = recorder.take();
  std::string name = launch.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  std::ofstream(folder + "/" + name + ".deucetrace") << trace::encode(file);
}

double predicted(const Launch& launch, const FittedCosts* fitted, Band band = Band::best) {
  const Result<double> cycles = predict(launch, fitted, band);
  if (!cycles.ok()) {
    fmt::print(stderr, "{}: {}\n", launch.name, cycles.status().sentence());
    std::exit(1);
  }
  return cycles.value();
}

FittedCosts costs_of(const Values& values) {
  FittedCosts costs;
  for (std::size_t i = 0; i < kEntries.size(); ++i) {
    costs.emplace_back(kEntries[i].cost, values[i]);
  }
  return costs;
}

using Errors = std::vector<double>;  // log(predicted / measured) of the half that fits
Errors errors_of(const std::vector<Launch>& launches, const Values& values) {
  const FittedCosts costs = costs_of(values);
  Errors errors;
  for (const Launch& launch : launches) {
    if (!launch.fits) continue;
    errors.push_back(std::log(predicted(launch, &costs) / launch.measured()));
  }
  return errors;
}

double squares(const Errors& errors) {
  double sum = 0;
  for (const double error : errors) sum += error * error;
  return sum;
}

Values table_values() {
  Values values;
  for (std::size_t i = 0; i < kEntries.size(); ++i) values[i] = kEntries[i].cost->h200.best;
  return values;
}

/// One entry after the other, by golden section inside its bounds, for some rounds.
Values fit(const std::vector<Launch>& launches) {
  constexpr int kRounds = 2, kSteps = 6;
  constexpr double kGolden = 0.6180339887498949;
  Values values = table_values();
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < kEntries.size(); ++i) {
      double low = kEntries[i].low, high = kEntries[i].high;
      const auto at = [&](double value) {
        Values changed = values;
        changed[i] = value;
        return squares(errors_of(launches, changed));
      };
      double left = high - kGolden * (high - low), right = low + kGolden * (high - low);
      double at_left = at(left), at_right = at(right);
      for (int step = 0; step < kSteps; ++step) {
        if (at_left < at_right) {
          high = right, right = left, at_right = at_left;
          left = high - kGolden * (high - low), at_left = at(left);
        } else {
          low = left, left = right, at_left = at_right;
          right = low + kGolden * (high - low), at_right = at(right);
        }
      }
      values[i] = at_left < at_right ? left : right;
      fmt::print(
          stderr, "round {}: {} {:.2f}, root of the mean square {:.1f} %\n", round + 1,
          kEntries[i].name, values[i],
          100 * std::sqrt(std::min(at_left, at_right) / static_cast<double>(launches.size() / 2)));
    }
  }
  return values;
}

struct Row {
  Launch launch;
  double low, best, high, fitted;  // predicted cycles per KV tile
  double error(double predicted) const { return 100 * (predicted / launch.measured() - 1); }
};

struct Score {
  double mean = 0, worst = 0;  // of absolute errors, percent
};
Score score(const std::vector<Row>& rows, bool fitted, bool of_judges) {
  Score result;
  int count = 0;
  for (const Row& row : rows) {
    if (of_judges && row.launch.fits) continue;
    const double error = std::fabs(row.error(fitted ? row.fitted : row.best));
    result.mean += error;
    result.worst = std::max(result.worst, error);
    ++count;
  }
  if (count > 0) result.mean /= count;
  return result;
}

std::string markdown(const std::vector<Row>& rows, const Values& values) {
  std::string text =
      "| case | KV tiles a CTA | measured | model as it stands (low to high) | error | fitted | "
      "error | half |\n|---|--:|--:|--:|--:|--:|--:|---|\n";
  for (const Row& row : rows) {
    text += fmt::format(
        "| {} | {} | {:.0f} | {:.0f} ({:.0f} to {:.0f}) | {:+.1f} % | {:.0f} | {:+.1f} % | {} |\n",
        row.launch.name, row.launch.tiles(), row.launch.measured(), row.best, row.low, row.high,
        row.error(row.best), row.fitted, row.error(row.fitted),
        row.launch.fits ? "fits" : "judges");
  }
  const Score before = score(rows, false, false), after = score(rows, true, true);
  text += fmt::format(
      "\nCycles per KV tile of 64 keys, launch included. As it stands: mean absolute error {:.1f} "
      "%, worst {:.1f} %. Fitted, on the half that judges: mean {:.1f} %, worst {:.1f} %.\nFitted:",
      before.mean, before.worst, after.mean, after.worst);
  for (std::size_t i = 0; i < kEntries.size(); ++i) {
    text += fmt::format("{} {} {:.2f} (table: {:.2f})", i == 0 ? "" : ",", kEntries[i].name,
                        values[i], kEntries[i].cost->h200.best);
  }
  return text + ".\n";
}

nlohmann::json as_json(const std::vector<Row>& rows, const Values& values) {
  const Score before = score(rows, false, false), after = score(rows, true, true);
  nlohmann::json report{
      {"schema", 1},
      {"unit",
       "cycles per KV tile of 64 keys, launch included; predictions are "
       "simulated"},
      {"as_it_stands", {{"mean_percent", before.mean}, {"worst_percent", before.worst}}},
      {"judged", {{"mean_percent", after.mean}, {"worst_percent", after.worst}}}};
  for (std::size_t i = 0; i < kEntries.size(); ++i) report["fitted"][kEntries[i].name] = values[i];
  for (const Row& row : rows) {
    report["cases"].push_back({{"name", row.launch.name},
                               {"tiles", row.launch.tiles()},
                               {"measured", row.launch.measured()},
                               {"low", row.low},
                               {"best", row.best},
                               {"high", row.high},
                               {"fitted", row.fitted},
                               {"half", row.launch.fits ? "fits" : "judges"}});
  }
  return report;
}

int run(int argc, char** argv) {
  std::string from, out, table, timelines;
  bool fits = true;
  for (int i = 1; i < argc; ++i) {
    const bool has_value = i + 1 < argc;
    if (std::strcmp(argv[i], "--out") == 0 && has_value) {
      out = argv[++i];
    } else if (std::strcmp(argv[i], "--markdown") == 0 && has_value) {
      table = argv[++i];
    } else if (std::strcmp(argv[i], "--timelines") == 0 && has_value) {
      timelines = argv[++i];
    } else if (std::strcmp(argv[i], "--no-fit") == 0) {
      fits = false;
    } else {
      from = argv[i];
    }
  }
  std::ifstream file(from);
  const nlohmann::json report = nlohmann::json::parse(file, nullptr, false);
  if (report.is_discarded() || !report.contains("cases")) {
    fmt::print(stderr, "usage: hopper_predicted MEASURED.json [--out FILE] [--markdown FILE]\n");
    return 2;
  }
  const Result<std::vector<Launch>> read = read_launches(report);
  if (!read.ok()) {
    fmt::print(stderr, "{}\n", read.status().sentence());
    return 2;
  }
  const std::vector<Launch>& launches = read.value();
  if (!timelines.empty()) {
    for (const Launch& launch : launches) write_timeline(launch, timelines);
    return 0;
  }
  const Values values = fits ? fit(launches) : table_values();
  const FittedCosts costs = costs_of(values);
  std::vector<Row> rows;
  for (const Launch& launch : launches) {
    rows.push_back({launch, predicted(launch, nullptr, Band::low), predicted(launch, nullptr),
                    predicted(launch, nullptr, Band::high), predicted(launch, &costs)});
  }
  const std::string text = markdown(rows, values);
  fmt::print("{}", text);
  if (!table.empty()) std::ofstream(table) << text;
  if (!out.empty()) std::ofstream(out) << as_json(rows, values).dump(1) << "\n";
  return 0;
}

}  // namespace
}  // namespace deuce::bench

int main(int argc, char** argv) { return deuce::bench::run(argc, argv); }
