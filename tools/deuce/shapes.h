// SPDX-License-Identifier: Apache-2.0
// What a backend serves, found by asking deuce_decode_check: the very code that a call meets, so
// that this table cannot promise more or less than the library does.
#pragma once

#include <string>
#include <vector>

#include "plan/problem.h"

namespace deuce::cli {

struct SupportedShapes {
  std::string refusal;             // why the backend cannot be used at all; then the rest is empty
  std::vector<int> head_dims;      // of bf16 q, k and v, alike
  std::vector<std::string> types;  // "q x kv" pairs at a supported head dim
  std::vector<std::string> out_types;
  bool contiguous = false;
  int smallest_page = 0;  // 0 = no paged cache
  bool out_as_q = false;  // out has the type of q, whichever that is
  std::vector<std::string> sink_types;
  int most_score_slots = 0, most_row_replicas = 0;
  std::vector<std::string> features, refused_features;
};

/// `emulated`: whose source the emulator runs; `automatic` elsewhere.
SupportedShapes supported_shapes(Backend backend, Backend emulated = Backend::automatic);

/// "16 .. 256 step 8, 512".
std::string ranges_text(const std::vector<int>& numbers);

}  // namespace deuce::cli
