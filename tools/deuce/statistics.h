// SPDX-License-Identifier: Apache-2.0
// Samples until the median is known well enough, or until the time is up.
#pragma once

#include <functional>
#include <vector>

#include "plan/status.h"

namespace deuce::cli {

/// One sample: seconds of a launch, and what it took to find out (several launches, perhaps).
struct Timed {
  double seconds = 0, spent_s = 0;
  bool throttled = false;  // the clocks were held down: counted, not kept
};

struct SamplingLimits {
  std::size_t fewest = 10, most = 100'000;
  double shortest_s = 0.3;  // keep on sampling at least this long, in which clocks settle
  double longest_s = 5;
  double noise = 0.01;  // half-width of the median's 95 % interval that is good enough, relative
};

struct Interval {
  double low = 0, high = 0;
};

struct Samples {
  std::vector<double> sorted_s;
  std::size_t throttled = 0;  // samples that were dropped
  bool settled = false;       // stopped because the noise was small enough
  bool interrupted = false;   // stopped by Ctrl-C

  double quantile(double fraction) const;
  double median() const { return quantile(0.5); }
  /// Relative standard error of the median, free of any assumption about the distribution: the
  /// median's rank has a standard deviation of sqrt(n) / 2, so half the distance of the quantiles
  /// that far above and below.
  double noise() const;
  /// Confidence interval of the median: the quantiles 1.96 of these deviations below and above.
  Interval interval_95() const;
  /// Half its width, relative to the median.
  double half_width() const;
};

/// An error of `sample` ends the sampling with that error.
Result<Samples> collect(const SamplingLimits& limits, const std::function<Result<Timed>()>& sample);

}  // namespace deuce::cli
