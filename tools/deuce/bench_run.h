// SPDX-License-Identifier: Apache-2.0
// Measures a list of points, for the table and for the figures: sampling options, progress, and
// what is kept when a later point fails or Ctrl-C comes.
#pragma once

#include <functional>
#include <vector>

#include "bench_point.h"

namespace CLI {
class App;
}

namespace deuce::cli {

void add_sampling_options(CLI::App& command, BenchSettings& settings);

struct BenchRun {
  std::vector<BenchPoint> points;
  bool wrong() const;  // a result was outside the tolerance
};

/// `measured` is told of each point as soon as it is known. `run` holds the points up to a failure.
Status measure_all(const std::vector<BenchShape>& shapes, const BenchSettings& settings,
                   Device& device, BenchRun& run,
                   const std::function<void(const BenchPoint&)>& measured);

}  // namespace deuce::cli
