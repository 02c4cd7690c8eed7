// SPDX-License-Identifier: Apache-2.0
// How a call is computed: backend, splits, slots. Flags shared by the commands that run attention.
// None of them changes what is computed.
#pragma once

#include "plan/problem.h"

namespace CLI {
class App;
}

namespace deuce::cli {

struct Execution {
  Backend backend = Backend::automatic;
  Backend emulated = Backend::automatic;  // automatic = not given
  int32_t num_splits = 0, split_kv_len = 0, score_slots = 0, row_replicas = 0, sm_margin = 0;
  uint64_t emulator_seed = 0;
};

void add_execution_options(CLI::App& app, Execution& execution);
void apply(const Execution& execution, deuce_decode_config& config);

}  // namespace deuce::cli
