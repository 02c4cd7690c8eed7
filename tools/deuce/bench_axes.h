// SPDX-License-Identifier: Apache-2.0
// What `deuce bench` measures: the product of its axes, as points.
#pragma once

#include <string>
#include <vector>

#include "axes.h"
#include "lengths.h"
#include "workload.h"

namespace CLI {
class App;
}

namespace deuce::cli {

inline constexpr const char* kDefaultTrace = "data/decode_batches.json";

struct BenchAxes {
  std::vector<std::string> presets, cases;
  std::vector<Heads> heads;
  std::vector<int64_t> head_dims, batches, kv_lens, q_lens, pages;
  std::vector<DType> dtypes;
  std::string trace;  // file of lengths; empty = kDefaultTrace where cases are named
  std::string trace_file() const { return trace.empty() ? kDefaultTrace : trace; }
  int32_t divide = 1;
  Layout layout = Layout::nhd;
};

void add_axis_options(CLI::App& command, BenchAxes& axes);

/// Models times lengths times the rest; the lengths change fastest, so that a sweep stands
/// together.
Result<std::vector<BenchShape>> points_of(const BenchAxes& axes);

}  // namespace deuce::cli
