// SPDX-License-Identifier: Apache-2.0
// Matching, ratios and the table of `deuce bench compare`.
#include "bench_compare.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "io/safetensors.h"
#include "options.h"
#include "units.h"

namespace deuce::cli {
namespace {

constexpr double kDefaultThresholdPercent = 1;

double log_half_width(const ResultPoint& point) {
  const double low = std::max(point.interval.low, 1e-3 * point.median_s);
  return (std::log(std::max(point.interval.high, low)) - std::log(low)) / 2;
}

std::string_view word(Change change) {
  switch (change) {
    case Change::faster: return "faster";
    case Change::slower: return "slower";
    case Change::same: return "same";
    case Change::not_judged: break;
  }
  return "not judged";
}

struct CompareOptions {
  std::string a, b;
  double threshold_percent = kDefaultThresholdPercent;
};

std::string time_or_none(double seconds) { return seconds > 0 ? time_text(seconds) : "-"; }

void print_comparison(const Comparison& one) {
  const bool judged = one.change != Change::not_judged;
  fmt::print("{:<52} {:>9} {:>9} {:>7} {:>15}  {}\n", one.title, time_or_none(one.a_s),
             time_or_none(one.b_s), judged ? fmt::format("{:.3f}", one.ratio) : "-",
             judged ? fmt::format("{:.3f} .. {:.3f}", one.interval.low, one.interval.high) : "-",
             word(one.change));
}

/// Points in the order of matching: those without a result behind the others.
std::vector<const ResultPoint*> all_points(const ResultFile& file) {
  std::vector<const ResultPoint*> all;
  for (const auto* points : {&file.points, &file.no_result}) {
    for (const ResultPoint& point : *points) all.push_back(&point);
  }
  return all;
}

Result<ExitCode> compare(const CompareOptions& options) {
  const auto a = read_result(options.a);
  if (!a.ok()) return a.status();
  const auto b = read_result(options.b);
  if (!b.ok()) return b.status();
  const FileComparison result =
      compare_results(a.value(), b.value(), options.threshold_percent / 100);
  if (result.points.empty())
    return invalid("B", "{} and {} have no point in common", options.a, options.b);
  fmt::print("A  {}  {}, commit {}\nB  {}  {}, commit {}\n", options.a, a.value().device,
             a.value().commit, options.b, b.value().device, b.value().commit);
  fmt::print("{:<52} {:>9} {:>9} {:>7} {:>15}  {}\n", "point", "A", "B", "B / A", "95 %", "B is");
  for (const Comparison& one : result.points) print_comparison(one);
  for (const std::string& title : result.only_a) fmt::print("only in A: {}\n", title);
  for (const std::string& title : result.only_b) fmt::print("only in B: {}\n", title);
  for (const std::string& fault : result.faults) fmt::print("{}\n", fault);
  const int not_judged = result.count(Change::not_judged);
  fmt::print("{} faster, {} slower, {} the same within noise or {} %{}\n",
             result.count(Change::faster), result.count(Change::slower), result.count(Change::same),
             options.threshold_percent,
             not_judged > 0 ? fmt::format(", {} not judged", not_judged) : "");
  const bool good = result.count(Change::slower) == 0 && result.faults.empty();
  return good ? ExitCode::ok : ExitCode::slower;
}

}  // namespace

Comparison compare_points(const ResultPoint& a, const ResultPoint& b, double threshold) {
  Comparison result;
  result.title = a.title();
  result.a_s = a.median_s;
  result.b_s = b.median_s;
  if (!a.fault.empty() || !b.fault.empty()) {
    result.change = Change::not_judged;
    return result;
  }
  result.ratio = b.median_s / a.median_s;
  const double half = std::hypot(log_half_width(a), log_half_width(b));
  result.interval = {result.ratio * std::exp(-half), result.ratio * std::exp(half)};
  if (result.interval.high < 1 && result.ratio < 1 - threshold) result.change = Change::faster;
  if (result.interval.low > 1 && result.ratio > 1 + threshold) result.change = Change::slower;
  return result;
}

int FileComparison::count(Change change) const {
  return static_cast<int>(
      std::count_if(points.begin(), points.end(),
                    [change](const Comparison& one) { return one.change == change; }));
}

FileComparison compare_results(const ResultFile& a, const ResultFile& b, double threshold) {
  std::map<std::string, std::vector<const ResultPoint*>> of_b;
  for (const ResultPoint* point : all_points(b)) of_b[point->key()].push_back(point);
  FileComparison result;
  for (const ResultPoint* point : all_points(a)) {
    std::vector<const ResultPoint*>& same = of_b[point->key()];
    if (same.empty()) {
      result.only_a.push_back(point->title());
      continue;
    }
    result.points.push_back(compare_points(*point, *same.front(), threshold));
    same.erase(same.begin());
  }
  for (const ResultPoint* point : all_points(b)) {
    const std::vector<const ResultPoint*>& left = of_b[point->key()];
    if (std::find(left.begin(), left.end(), point) != left.end())
      result.only_b.push_back(point->title());
  }
  for (const auto& [letter, file] : {std::pair{'A', &a}, std::pair{'B', &b}}) {
    for (const ResultPoint& point : file->no_result)
      result.faults.push_back(fmt::format("{}: {}: {}", letter, point.title(), point.fault));
  }
  return result;
}

void add_bench_compare(CLI::App& bench, Action& action) {
  CLI::App& command = *bench.add_subcommand("compare", "Judge two results with the noise of both");
  auto options = std::make_shared<CompareOptions>();
  command.add_option("A", options->a, "result of deuce bench --json, before")
      ->required()
      ->type_name("");
  command.add_option("B", options->b, "result of deuce bench --json, after")
      ->required()
      ->type_name("");
  text_option(command, "--threshold", "X", "differences below X percent are the same (default 1)",
              [options](const std::string& text) {
                const Result<double> percent = parse_number(text);
                if (!percent.ok()) return percent.status();
                if (percent.value() < 0)
                  return invalid("", "{} is negative", io::quoted_name(text));
                options->threshold_percent = percent.value();
                return Status{};
              });
  command.footer(
      "Points match by shape, lengths, type, cache and mode; backends and machines may differ.\n"
      "B is faster or slower where the 95 % interval of the ratio excludes 1 and the ratio passes\n"
      "the threshold. Exit code 9 when a point is slower, has no time or failed its check.");
  command.callback([options, &action] { action = [options] { return compare(*options); }; });
}

}  // namespace deuce::cli
