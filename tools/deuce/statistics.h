// SPDX-License-Identifier: Apache-2.0
// Samples until the median is known well enough, or until the time is up.
#pragma once

#include <functional>
#include <vector>

#include "plan/status.h"

namespace deuce::cli {

struct SamplingLimits {
  std::size_t fewest = 10, most = 100'000;
  double shortest_s = 0.3;  // keep on sampling at least this long, in which clocks settle
  double longest_s = 5;
  double noise = 0.005;  // relative standard error of the median that is good enough
};

struct Samples {
  std::vector<double> sorted_s;
  bool settled = false;      // stopped because the noise was small enough
  bool interrupted = false;  // stopped by Ctrl-C

  double quantile(double fraction) const;
  double median() const { return quantile(0.5); }
  /// Relative standard error of the median, free of any assumption about the distribution: the
  /// median's rank has a standard deviation of sqrt(n) / 2, so half the distance of the quantiles
  /// that far above and below.
  double noise() const;
};

/// `sample` returns seconds; an error of it ends the sampling with that error.
Result<Samples> collect(const SamplingLimits& limits,
                        const std::function<Result<double>()>& sample);

}  // namespace deuce::cli
