// SPDX-License-Identifier: Apache-2.0
// `deuce bench compare A B`: is B faster or slower than A, or the same within the noise of both?
#pragma once

#include <string>
#include <vector>

#include "bench_result.h"
#include "command.h"

namespace deuce::cli {

/// not_judged: a result without a time, or outside the tolerance, on one side or on both.
enum class Change { same, faster, slower, not_judged };

/// Time of B over time of A, with its 95 % interval.
struct Comparison {
  std::string title;
  double a_s = 0, b_s = 0, ratio = 1;  // ratio and interval only where it was judged
  Interval interval;
  Change change = Change::same;
};

/// `threshold`: relative differences below it are the same whatever the noise. Relative half-widths
/// of both medians are added in quadrature, on the logarithm.
Comparison compare_points(const ResultPoint& a, const ResultPoint& b, double threshold);

struct FileComparison {
  std::vector<Comparison> points;
  std::vector<std::string> only_a, only_b;  // titles of points that the other file lacks
  std::vector<std::string> faults;          // "A: title: check failed: .."
  int count(Change change) const;
};
/// Points match by key; several with the same key by their order.
FileComparison compare_results(const ResultFile& a, const ResultFile& b, double threshold);

void add_bench_compare(CLI::App& bench, Action& action);

}  // namespace deuce::cli
