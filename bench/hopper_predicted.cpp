// SPDX-License-Identifier: Apache-2.0
// Predicted against measured: cycles per KV tile of the Hopper kernel by the timing model, next to
// launches that hopper_bench has timed on an H200.
//   hopper_predicted MEASURED.json [--out TABLE.json] [--markdown TABLE.md] [--no-fit]
//   hopper_predicted MEASURED.json --timelines DIR
// Reported apart: the launches that judge, and of those the ones that nothing was read off.
// MEASURED.json: `hopper_bench --set predicted`. The model is compared as it stands, and once more
// with five entries of src/emulator/timing.h fitted to every second case; the other half judges.
// --timelines writes the predicted timeline of each case, in the format of `deuce trace`.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "predicted_launches.h"
#include "predicted_report.h"
#include "trace/trace_file.h"

namespace deuce::bench {
namespace {

using emulator::Band;
using emulator::FittedCosts;

Status write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? Status{} : invalid("path", "{} cannot be written", path);
}

/// Writes the predicted timeline of a launch's CTA, by the table's best costs, for `deuce trace`.
Status write_timeline(const Launch& launch, const std::string& folder) {
  trace::Recorder recorder(trace::Level::edges, 1 << 16);
  const Result<double> cycles =
      emulator::predict_hopper_cycles(launch.timed, Band::best, nullptr, &recorder);
  if (!cycles.ok()) return cycles.status();
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
                .cycles = cycles.value(),
                .commit = {},
                .driver = {},
                .recorded = {}};
  file.slices = recorder.take();
  std::string name = launch.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return write(folder + "/" + name + ".deucetrace", trace::encode(file));
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

constexpr const char* kUsage =
    "usage: hopper_predicted MEASURED.json [--out FILE] [--markdown FILE] [--no-fit]\n"
    "       hopper_predicted MEASURED.json --timelines DIR\n";

struct Arguments {
  std::string from, out, table, timelines;
  bool fits = true;
};

Result<Arguments> read_arguments(int argc, char** argv) {
  Arguments result;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    std::string* value = word == "--out"         ? &result.out
                         : word == "--markdown"  ? &result.table
                         : word == "--timelines" ? &result.timelines
                                                 : nullptr;
    if (value != nullptr) {
      if (i + 1 == argc) return invalid("option", "{} has no value", word);
      *value = argv[++i];
    } else if (word == "--no-fit") {
      result.fits = false;
    } else if (word.starts_with("-") || !result.from.empty()) {
      return invalid("option", "{} is not an option", word);
    } else {
      result.from = word;
    }
  }
  if (result.from.empty()) return invalid("option", "no measurement is named");
  return result;
}

int failed(const Status& status, int code, const char* more = "") {
  fmt::print(stderr, "{}\n{}", status.sentence(), more);
  return code;
}

int run(int argc, char** argv) {
  const Result<Arguments> parsed = read_arguments(argc, argv);
  if (!parsed.ok()) return failed(parsed.status(), 2, kUsage);
  const Arguments& arguments = parsed.value();
  std::ifstream file(arguments.from);
  const nlohmann::json report = nlohmann::json::parse(file, nullptr, false);
  if (report.is_discarded()) {
    return failed(invalid("path", "{} is no measurement", arguments.from), 2, kUsage);
  }
  const Result<std::vector<Launch>> read = read_launches(report);
  if (!read.ok()) return failed(read.status(), 2);
  const std::vector<Launch>& launches = read.value();
  if (!arguments.timelines.empty()) {
    for (const Launch& launch : launches) {
      if (Status bad = write_timeline(launch, arguments.timelines); !bad.ok())
        return failed(bad, 1);
    }
    return 0;
  }
  const Values values = arguments.fits ? fit(launches) : table_values();
  const Values* shown = arguments.fits ? &values : nullptr;
  const FittedCosts costs = costs_of(values);
  std::vector<Row> rows;
  for (const Launch& launch : launches) {
    rows.push_back({launch, predicted(launch, nullptr, Band::low), predicted(launch, nullptr),
                    predicted(launch, nullptr, Band::high),
                    shown != nullptr ? predicted(launch, &costs) : 0});
  }
  const std::string text = markdown(rows, shown);
  fmt::print("{}", text);
  Status status;
  if (!arguments.table.empty()) status = write(arguments.table, text);
  if (status.ok() && !arguments.out.empty()) {
    status = write(arguments.out, as_json(rows, shown).dump(1) + "\n");
  }
  return status.ok() ? 0 : failed(status, 1);
}

}  // namespace
}  // namespace deuce::bench

int main(int argc, char** argv) { return deuce::bench::run(argc, argv); }
