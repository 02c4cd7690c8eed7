// SPDX-License-Identifier: Apache-2.0
// The options that describe a drawn decode problem: shapes, lengths, masks, cache, splits.
// Used by `deuce check` and `deuce trace`; docs/cli.md says what each means.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/decode_case.h"
#include "plan/status.h"

namespace CLI {
class App;
}

namespace deuce::cli {

struct DecodeOptions {
  emulator::CaseSpec spec{.row_replicas = 0};  // what needs no translation
  std::string kernel = "blackwell", type = "bf16";
  std::vector<int64_t> kv_len{1000}, q_len{1};
  int32_t batch = 0;     // requests of one length; 0: ten of it and less
  int32_t kv_start = 0;  // of every request, at most its keys
  bool no_causal = false;
  int64_t seed = 1;
  std::vector<std::string> given;  // names of the options on the command line

  bool on_hopper() const { return kernel == "hopper"; }
  bool has(std::string_view name) const;
};

/// The options of `target`, which must live as long as `app`. What it holds already is the default
/// problem, and the help says so.
void add_decode_options(CLI::App& app, DecodeOptions& target);
/// Which options of `app` were given; after it has parsed.
void note_given(const CLI::App& app, DecodeOptions& target);

/// The problem that the options describe. INVALID_ARGUMENT when two of them disagree.
Result<emulator::CaseSpec> spec_of(const DecodeOptions& options);

/// "10 requests of 0 to 1000 keys, 16 rows", and whatever is not usual.
std::string problem_text(const emulator::CaseSpec& spec);

}  // namespace deuce::cli
