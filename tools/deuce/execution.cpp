// SPDX-License-Identifier: Apache-2.0
// The flags that choose among ways to compute the same thing.
#include "execution.h"

#include "io/safetensors.h"
#include "options.h"
#include "plan/limits.h"
#include "plan/names.h"

namespace deuce::cli {

void add_execution_options(CLI::App& app, Execution& execution) {
  constexpr const char* kGroup = "How it is computed (same meaning whatever is chosen)";
  const auto backend = [](Backend& target) {
    return [&target](const std::string& text) -> Status {
      const auto id = backend_named(text);
      if (!id) {
        return invalid("backend",
                       "{} is not one of auto, cpu, reference, emulator, hopper, blackwell",
                       io::quoted_name(text));
      }
      target = *id;
      return {};
    };
  };
  text_option(app, "--backend", "NAME",
              "auto (= cpu here), cpu, reference, emulator, hopper, blackwell",
              backend(execution.backend))
      ->group(kGroup);
  text_option(
      app, "--emulate", "NAME", "emulator: whose kernel runs, hopper or blackwell (default)",
      [&execution](const std::string& text) -> Status {
        for (const Backend kernel : {Backend::blackwell, Backend::hopper}) {
          if (text != name_of(kernel)) continue;
          execution.emulated = kernel;
          return {};
        }
        return invalid("emulate", "{} is not one of blackwell, hopper", io::quoted_name(text));
      })
      ->group(kGroup);
  integer_option(app, "--num-splits", execution.num_splits, 0,
                 "parts of each request and KV head; 0 = balanced, 1 = not cut", kMaxSplits)
      ->group(kGroup);
  integer_option(app, "--split-kv-len", execution.split_kv_len, 0,
                 "cut every N keys (multiple of 128): bits do not depend on the batch")
      ->group(kGroup);
  integer_option(app, "--score-slots", execution.score_slots, 0,
                 "GPU kernels: 1 = base, 2 = ping-pong, 3; same bits", kMaxScoreSlots)
      ->group(kGroup);
  integer_option(app, "--row-replicas", execution.row_replicas, 0,
                 "blackwell: copies of the rows, 1, 2 or 4", 4)
      ->group(kGroup);
  integer_option(app, "--sm-margin", execution.sm_margin, 0, "threads (GPU: SMs) left to others")
      ->group(kGroup);
  integer_option(app, "--emulator-seed", execution.emulator_seed, 0,
                 "emulator: number of the schedule", std::numeric_limits<int64_t>::max())
      ->group(kGroup);
}

void apply(const Execution& execution, deuce_decode_config& config) {
  config.backend = static_cast<int32_t>(execution.backend);
  config.emulated_backend = static_cast<int32_t>(execution.emulated);
  config.num_splits = execution.num_splits;
  config.split_kv_len = execution.split_kv_len;
  config.score_slots = execution.score_slots;
  config.row_replicas = execution.row_replicas;
  config.sm_margin = execution.sm_margin;
  config.emulator_seed = execution.emulator_seed;
}

}  // namespace deuce::cli
