// SPDX-License-Identifier: Apache-2.0
// What `deuce bench` prints: a table for people, one JSON object for programs.
#pragma once

#include <string>
#include <vector>

#include "bench_point.h"
#include "machine_facts.h"

namespace deuce::cli {

/// Titles of the table; one row per point follows as soon as it is measured.
std::string bench_header(const MachineFacts& machine);
std::string bench_row(const BenchPoint& point);
/// T0 and bandwidth of each sweep over lengths; empty without one.
std::string bench_fits(const std::vector<BenchPoint>& points);
/// Lines below the table: what the columns mean.
std::string bench_legend();

/// Everything, schema version 1.
std::string bench_json(const MachineFacts& machine, const BenchSettings& settings,
                       const std::vector<BenchPoint>& points, bool interrupted);

}  // namespace deuce::cli
