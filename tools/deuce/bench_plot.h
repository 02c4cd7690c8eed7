// SPDX-License-Identifier: Apache-2.0
// `deuce bench plot FILE...`: results as pictures. bandwidth.svg holds sweeps over lengths, q_len
// or batch; cases.svg holds uneven batches.
#pragma once

#include <string>
#include <vector>

#include "bench_result.h"
#include "command.h"

namespace deuce::cli {

/// Empty where the files hold no such points.
std::string bandwidth_svg(const std::vector<ResultFile>& files);
std::string cases_svg(const std::vector<ResultFile>& files);

void add_bench_plot(CLI::App& bench, Action& action);

}  // namespace deuce::cli
