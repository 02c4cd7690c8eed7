// SPDX-License-Identifier: Apache-2.0
// `deuce bench figure9` and `figure10`: the article's benchmark figures, simulated for a B200 and
// measured where there is a Hopper GPU.
#pragma once

#include "command.h"

namespace deuce::cli {

void add_bench_figures(CLI::App& bench, Action& action);

}  // namespace deuce::cli
