// SPDX-License-Identifier: Apache-2.0
// The table of scalars and the two ways to fill it: metadata and flags.
#include "meaning.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "options.h"
#include "plan/names.h"

namespace deuce::cli {
namespace {

Status set_window(int32_t& target, std::string_view text) {
  const Result<int64_t> number = parse_integer(text, -1, std::numeric_limits<int32_t>::max());
  if (number.ok()) target = static_cast<int32_t>(number.value());
  return number.status();
}

Status set_float(float& target, std::string_view text) {
  const Result<double> number = parse_number(text);
  if (!number.ok()) return number.status();
  const bool too_large = std::abs(number.value()) > std::numeric_limits<float>::max();
  target = too_large ? 0.0F : static_cast<float>(number.value());
  const bool lost = number.value() != 0 && target == 0;  // 0 has a meaning of its own
  if (lost) return invalid("", "{} does not fit a 32-bit float", io::quoted_name(text));
  return {};
}

/// For scalars whose zero means "default" in deuce.h, an explicit zero cannot be said.
Status set_nonzero(float& target, std::string_view text) {
  if (Status status = set_float(target, text); !status.ok()) return status;
  if (target == 0.0F)
    return invalid("", "{} would make every score or output 0", io::quoted_name(text));
  return {};
}

Status set_causal(Meaning& meaning, std::string_view text) {
  const Result<bool> value = parse_bool(text);
  if (value.ok()) meaning.causal = value.value();
  return value.status();
}

Status set_lse_base(Meaning& meaning, std::string_view text) {
  if (text != "natural" && text != "2") {
    return invalid("", "{} is neither natural nor 2", io::quoted_name(text));
  }
  meaning.lse_base = text == "2" ? 2 : 0;
  return {};
}

Status set_layout(Meaning& meaning, std::string_view text) {
  if (text != "NHD" && text != "HND")
    return invalid("", "{} is neither NHD nor HND", io::quoted_name(text));
  meaning.layout = text == "HND" ? Layout::hnd : Layout::nhd;
  return {};
}

Status set_out_dtype(Meaning& meaning, std::string_view text) {
  const Result<DType> type = parse_dtype(text);
  if (type.ok()) meaning.out_dtype = static_cast<int32_t>(type.value());
  return type.status();
}

constexpr std::array kScalars{
    Scalar{"causal", "BOOL", "row i sees keys 0 .. kv_len - q_len + i", set_causal},
    Scalar{"window_left", "N", "keys to the left of a row's position, inclusive; -1 = all",
           [](Meaning& m, std::string_view text) { return set_window(m.window_left, text); }},
    Scalar{"window_right", "N", "keys to the right of it, inclusive; -1 = all",
           [](Meaning& m, std::string_view text) { return set_window(m.window_right, text); }},
    Scalar{"softcap", "X", "scores become X tanh(score / X); 0 = off",
           [](Meaning& m, std::string_view text) { return set_float(m.softcap, text); }},
    Scalar{"softmax_scale", "X", "factor of the scores (default 1 / sqrt(head dim))",
           [](Meaning& m, std::string_view text) { return set_nonzero(m.softmax_scale, text); }},
    Scalar{"score_scale", "X", "further factor of the scores (default 1)",
           [](Meaning& m, std::string_view text) { return set_nonzero(m.score_scale, text); }},
    Scalar{"out_scale", "X", "factor of the output (default 1)",
           [](Meaning& m, std::string_view text) { return set_nonzero(m.out_scale, text); }},
    Scalar{"lse_base", "BASE", "natural or 2 (default natural)", set_lse_base},
    Scalar{"kv_layout", "ORDER", "NHD: k and v are [.., slot, head, d]; HND: [.., head, slot, d]",
           set_layout},
    Scalar{"out_dtype", "TYPE", "f32, f16 or bf16 (default as q; bf16 for fp8 q)", set_out_dtype},
};

constexpr std::array<const char*, 10> kDescriptive{"model",       "layer",     "step",    "text",
                                                   "description", "source",    "licence", "license",
                                                   "format",      "created_by"};

std::string flag_of(const char* name) {
  std::string flag = std::string("--") + name;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

}  // namespace

std::span<const Scalar> scalars() { return kScalars; }
std::span<const char* const> descriptive_keys() { return kDescriptive; }

Result<DType> parse_dtype(std::string_view text) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2}) {
    if (name_of(type) == text) return type;
  }
  return invalid("", "{} is not one of f32, f16, bf16, e4m3, e5m2", io::quoted_name(text));
}

void add_meaning_options(CLI::App& app, ScalarTexts& texts) {
  constexpr const char* kGroup = "What is computed (a flag wins over the file's metadata)";
  for (const Scalar& scalar : kScalars) {
    if (scalar.set == set_causal) {
      CLI::Option* on = app.add_flag_callback(
          "--causal", [&texts] { texts["causal"] = "true"; }, scalar.help);
      CLI::Option* off = app.add_flag_callback(
          "--no-causal", [&texts] { texts["causal"] = "false"; },
          "every row sees all keys (default)");
      on->group(kGroup)->excludes(off);
      off->group(kGroup);
      continue;
    }
    text_option(app, flag_of(scalar.name), scalar.value_name, scalar.help,
                [&texts, &scalar](const std::string& text) {
                  Meaning probe;
                  Status status = scalar.set(probe, text);
                  if (status.ok()) texts[scalar.name] = text;
                  return status;
                })
        ->group(kGroup);
  }
}

Result<Meaning> read_meaning(const std::string& file, const io::Metadata& metadata,
                             const ScalarTexts& flags) {
  Meaning meaning;
  for (const auto& [key, text] : metadata) {
    if (std::find(kDescriptive.begin(), kDescriptive.end(), key) != kDescriptive.end()) continue;
    const auto scalar = std::find_if(kScalars.begin(), kScalars.end(),
                                     [&key = key](const Scalar& row) { return key == row.name; });
    if (scalar == kScalars.end()) {
      return invalid(key,
                     "{}: metadata {} is not a key that deuce run knows (see deuce run --help)",
                     file, io::quoted_name(key));
    }
    if (const Status status = scalar->set(meaning, text); !status.ok()) {
      return invalid(key, "{}: metadata {}: {}", file, io::quoted_name(key), status.sentence());
    }
  }
  for (const Scalar& scalar : kScalars) {
    const auto flag = flags.find(scalar.name);
    if (flag == flags.end()) continue;
    if (Status status = scalar.set(meaning, flag->second); !status.ok()) return status;
  }
  return meaning;
}

}  // namespace deuce::cli
