// SPDX-License-Identifier: Apache-2.0
// What is computed, as scalars: causal, windows, softcap, scales, LSE base, cache layout.
// Each has one name, used as safetensors metadata key and, with dashes, as flag; the flag wins.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "io/safetensors.h"
#include "plan/problem.h"
#include "plan/status.h"

namespace CLI {
class App;
}

namespace deuce::cli {

enum class Layout { nhd, hnd };  // [page, slot, kv head, d] or [page, kv head, slot, d]

struct Meaning {
  bool causal = false;
  int32_t window_left = -1, window_right = -1;
  float softcap = 0, softmax_scale = 0, score_scale = 0,
        out_scale = 0;  // 0 = default, as in deuce.h
  int32_t lse_base = 0;
  Layout layout = Layout::nhd;
  int32_t out_dtype = 0;
};

/// One scalar by name; `set` reads a text strictly.
struct Scalar {
  const char* name;
  const char* value_name;  // in --help
  const char* help;
  Status (*set)(Meaning& meaning, std::string_view text);
};
std::span<const Scalar> scalars();

/// Texts given as flags, by scalar name; each has been read once, so it is right.
using ScalarTexts = std::map<std::string, std::string, std::less<>>;

/// Adds a flag for every scalar.
void add_meaning_options(CLI::App& app, ScalarTexts& texts);

/// Metadata first, flags over it. Keys that only describe the file are left; an unknown key is
/// refused.
Result<Meaning> read_meaning(const std::string& file, const io::Metadata& metadata,
                             const ScalarTexts& flags);

/// Metadata keys that carry no meaning for the computation and are shown as they are.
std::span<const char* const> descriptive_keys();

Result<DType> parse_dtype(std::string_view text);

}  // namespace deuce::cli
