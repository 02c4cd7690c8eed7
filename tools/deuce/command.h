// SPDX-License-Identifier: Apache-2.0
// A subcommand adds itself to the command line and leaves behind what to do; main.cpp does it.
// A command returns an exit code, or the Status whose sentence main prints.
#pragma once

#include <functional>

#include "exit_code.h"
#include "plan/status.h"

namespace CLI {
class App;
}

namespace deuce::cli {

using Action = std::function<Result<ExitCode>()>;

void add_run(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_trace(CLI::App& app, Action& action);
void add_info(CLI::App& app, Action& action);

}  // namespace deuce::cli
