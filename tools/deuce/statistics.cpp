// SPDX-License-Identifier: Apache-2.0
// Order statistics and the rule that stops the sampling.
#include "statistics.h"

#include <algorithm>
#include <cmath>

#include "interrupt.h"

namespace deuce::cli {

double Samples::quantile(double fraction) const {
  if (sorted_s.empty()) return 0;
  const double at = fraction * static_cast<double>(sorted_s.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted_s.size() - 1);
  const double part = at - static_cast<double>(below);
  return sorted_s[below] * (1 - part) + sorted_s[above] * part;
}

double Samples::noise() const {
  if (sorted_s.size() < 2 || median() <= 0) return 0;
  const double half = 0.5 / std::sqrt(static_cast<double>(sorted_s.size()));
  return (quantile(0.5 + half) - quantile(0.5 - half)) / 2 / median();
}

Interval Samples::interval_95() const {
  if (sorted_s.empty()) return {};
  const double half = std::min(0.5, 0.98 / std::sqrt(static_cast<double>(sorted_s.size())));
  return {quantile(0.5 - half), quantile(0.5 + half)};
}

double Samples::half_width() const {
  if (sorted_s.size() < 2 || median() <= 0) return 0;
  const Interval interval = interval_95();
  return (interval.high - interval.low) / 2 / median();
}

Result<Samples> collect(const SamplingLimits& limits,
                        const std::function<Result<Timed>()>& sample) {
  Samples samples;
  double total = 0;
  std::size_t next_look = limits.fewest;
  while (samples.sorted_s.size() < limits.most && total < limits.longest_s) {
    if (interrupted()) {
      samples.interrupted = true;
      break;
    }
    const Result<Timed> timed = sample();
    if (!timed.ok()) return timed.status();
    total += timed.value().spent_s;
    if (timed.value().throttled) {
      ++samples.throttled;
      continue;
    }
    samples.sorted_s.push_back(timed.value().seconds);
    if (samples.sorted_s.size() < next_look || total < limits.shortest_s) continue;
    std::sort(samples.sorted_s.begin(), samples.sorted_s.end());
    samples.settled = samples.half_width() < limits.noise;
    if (samples.settled) break;
    next_look = samples.sorted_s.size() + samples.sorted_s.size() / 4 + 1;  // looking costs a sort
  }
  std::sort(samples.sorted_s.begin(), samples.sorted_s.end());
  return samples;
}

}  // namespace deuce::cli
