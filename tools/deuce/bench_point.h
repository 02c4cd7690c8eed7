// SPDX-License-Identifier: Apache-2.0
// One benchmark point: built, checked once, timed. What it found out, for table and JSON.
#pragma once

#include <optional>
#include <string>

#include "bench_check.h"
#include "execution.h"
#include "statistics.h"
#include "traffic.h"
#include "workload.h"

namespace deuce::cli {

struct BenchSettings {
  Execution execution;
  SamplingLimits limits;
  uint64_t seed = 1;
  bool explain = false;
  bool hot = false;  // one copy of the cache, read again and again
};

struct BenchPoint {
  BenchShape shape;
  Backend backend = Backend::automatic;
  std::size_t copies = 0;  // of the cache, read in turn
  bool hot = false;
  Traffic traffic;
  BenchCheck check;
  Samples samples;
  double roof = 0;  // bytes per second: median of passes among the samples, 0 = unknown
  std::optional<GpuClocks> clocks;  // after the samples, where they can be read
  std::string explanation;          // JSON, when asked for

  double bytes_per_second() const {
    return static_cast<double>(traffic.kv_bytes) / samples.median();
  }
  double share_of_roof() const { return roof > 0 ? bytes_per_second() / roof : 0; }
  /// Time beyond what the bytes take at the roof.
  double overhead_s() const {
    return samples.median() - static_cast<double>(traffic.kv_bytes) / roof;
  }
};

/// `stage` is told what is going on, for the progress line.
Result<BenchPoint> measure_point(const BenchShape& shape, const BenchSettings& settings,
                                 Device& device,
                                 const std::function<void(std::string_view)>& stage);

}  // namespace deuce::cli
