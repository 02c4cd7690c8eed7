// SPDX-License-Identifier: Apache-2.0
// T0 and marginal bandwidth: time = T0 + bytes / bandwidth over points that differ in length alone.
#pragma once

#include <string>
#include <vector>

#include "bench_point.h"

namespace deuce::cli {

struct BandwidthFit {
  std::string title;             // what the points have in common
  std::vector<int64_t> kv_lens;  // of the points
  double t0_s = 0, bytes_per_s = 0;
  double worst_residual = 0;  // largest |fit / measured - 1|
};

struct TimePoint {
  double bytes = 0, seconds = 0;
};
/// Least squares of relative errors, since the times of a sweep span decades. bytes_per_s is 0 when
/// time does not grow with bytes.
BandwidthFit fit_line(const std::vector<TimePoint>& points);

/// One fit for each group of three or more even batches that differ in kv_len alone.
std::vector<BandwidthFit> fit_sweeps(const std::vector<BenchPoint>& points);

}  // namespace deuce::cli
