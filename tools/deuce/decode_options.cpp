// SPDX-License-Identifier: Apache-2.0
// Options of a drawn decode problem; see decode_options.h.
#include "decode_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "axes.h"
#include "options.h"

namespace deuce::cli {
namespace {

constexpr int64_t kMostKeys = 1 << 20, kMostTokens = 1 << 10;

void list_option(CLI::App& app, const char* name, std::vector<int64_t>& target, int64_t highest,
                 const std::string& help) {
  text_option(app, name, "N,..", help, [&target, highest](const std::string& text) {
    Result<std::vector<int64_t>> read = parse_axis(text, 0, highest);
    if (read.ok()) target = std::move(read.value());
    return read.status();
  });
}

/// By the rules of the API, which a drawn problem does not pass.
Status set_softcap(emulator::CaseSpec& spec, const std::string& text) {
  const Result<double> number = parse_number(text);
  if (!number.ok()) return number.status();
  constexpr double kMost = 1e30;  // far beyond every score
  if (number.value() != 0 && !(number.value() >= 1e-30 && number.value() <= kMost)) {
    return invalid("", "'{}' is neither 0 nor within 1e-30 .. 1e30", text);
  }
  spec.softcap = static_cast<float>(number.value());
  return {};
}

void add_shape_options(CLI::App& app, DecodeOptions& o) {
  const auto default_of = [](const char* text, const auto& value) {
    return fmt::format("{}; default {}", text, value);
  };
  app.add_option("--kernel", o.kernel, "blackwell or hopper; default blackwell")
      ->check(CLI::IsMember({"blackwell", "hopper"}))
      ->type_name("NAME");
  integer_option(app, "--head-dim", o.spec.head_dim, 1, "64 or 128; default 64");
  app.add_option("--type", o.type, "bf16, f16, or e4m3 under bf16; default bf16")
      ->check(CLI::IsMember({"bf16", "f16", "e4m3"}))
      ->type_name("TYPE");
  integer_option(app, "--score-slots", o.spec.score_slots, 1,
                 "S tiles in flight, 1 to 3; default 2, of hopper 1", 3);
  integer_option(
      app, "--row-replicas", o.spec.row_replicas, 0,
      default_of("copies of the rows, 1, 2 or 4, 0 = as a plan chooses", o.spec.row_replicas), 4);
  list_option(app, "--kv-len", o.kv_len, kMostKeys,
              default_of("keys of each request; one N is that of --batch requests", o.kv_len[0]));
  integer_option(app, "--batch", o.batch, 0,
                 default_of("requests of one --kv-len, 0 = ten of it and less", o.batch), 1 << 12);
  integer_option(app, "--rows", o.spec.group, 1, "query heads of a KV head; default 16", 128);
  integer_option(app, "--kv-heads", o.spec.kv_heads, 1, "default 1", 1 << 10);
  list_option(app, "--q-len", o.q_len, kMostTokens,
              "new tokens of all requests or of each, causal; default 1");
  integer_option(app, "--page-size", o.spec.page_size, 0,
                 "slots of a page, 0 = contiguous; default 0", 1 << 20);
}

void add_meaning_options(CLI::App& app, DecodeOptions& o) {
  constexpr int64_t kAll = std::numeric_limits<int32_t>::max();
  integer_option(app, "--kv-start", o.kv_start, 0, "first visible key of each request; default 0",
                 kMostKeys);
  integer_option(app, "--window-left", o.spec.window_left, -1,
                 "keys to the left of a row's position; default -1 = all", kAll);
  integer_option(app, "--window-right", o.spec.window_right, -1,
                 "keys to the right of it; default -1 = all", kAll);
  app.add_flag("--no-causal", o.no_causal, "every row of --q-len sees all keys");
  text_option(app, "--softcap", "X", "scores become X tanh(score / X); default 0 = off",
              [&o](const std::string& text) { return set_softcap(o.spec, text); });
  app.add_flag("--sink", o.spec.sink, "a learned sink for every query head");
  integer_option(app, "--num-splits", o.spec.num_splits, 0,
                 "parts of each item, 0 = as the work is cut; default 0", 256);
  integer_option(app, "--split-kv-len", o.spec.split_kv_len, 0,
                 "keys of a part, batch-invariant; default 0 = off", kMostKeys);
}

/// One length or token count for every request.
template <class Int>
std::vector<Int> repeated(const std::vector<int64_t>& values, std::size_t count) {
  std::vector<Int> all(count, static_cast<Int>(values[0]));
  if (values.size() == count) {
    std::transform(values.begin(), values.end(), all.begin(),
                   [](int64_t value) { return static_cast<Int>(value); });
  }
  return all;
}

Status set_lengths(const DecodeOptions& o, emulator::CaseSpec& spec) {
  const std::size_t lengths = o.kv_len.size();
  if (lengths > 1 && o.has("--batch") && static_cast<std::size_t>(o.batch) != lengths) {
    return invalid("batch", "--batch: {} requests, and --kv-len names {}", o.batch, lengths);
  }
  if (lengths == 1 && o.batch == 0) {
    spec.kv_len = emulator::mixed_lengths(static_cast<int32_t>(o.kv_len[0]));
  } else {
    const std::size_t batch = lengths > 1 ? lengths : static_cast<std::size_t>(o.batch);
    spec.kv_len = repeated<int32_t>(o.kv_len, batch);
  }
  if (o.q_len.size() > 1 && o.q_len.size() != spec.kv_len.size()) {
    return invalid("q-len", "--q-len names {} requests, and there are {}", o.q_len.size(),
                   spec.kv_len.size());
  }
  if (o.q_len.size() == 1 && o.q_len[0] == 0) {
    return invalid("q-len", "--q-len: without new tokens nothing is computed");
  }
  spec.q_len = static_cast<int>(*std::max_element(o.q_len.begin(), o.q_len.end()));
  if (o.q_len.size() > 1) spec.q_lens = repeated<int32_t>(o.q_len, spec.kv_len.size());
  for (const int32_t keys : spec.kv_len) {
    if (o.kv_start > 0) spec.kv_start.push_back(std::min(o.kv_start, keys));
  }
  return {};
}

/// K and V that are drawn for a run, with double-precision results to compare with beside them.
Status check_size(const emulator::CaseSpec& spec) {
  constexpr double kMostBytes = 4.0 * (1 << 30);
  double keys = 0;
  for (const int32_t length : spec.kv_len) keys += length;
  const double bytes = 2 * keys * spec.kv_heads * spec.head_dim * (spec.e4m3 ? 1 : 2);
  if (bytes <= kMostBytes) return {};
  return invalid(
      "kv-len",
      "--kv-len, --batch, --kv-heads: {:.0f} keys of {} heads are {:.1f} GiB of K and V; at most 4",
      keys, spec.kv_heads, bytes / (1 << 30));
}

}  // namespace

bool DecodeOptions::has(std::string_view name) const {
  return std::find(given.begin(), given.end(), name) != given.end();
}

void note_given(const CLI::App& app, DecodeOptions& target) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() > 0) target.given.push_back(option->get_name());
  }
}

void add_decode_options(CLI::App& app, DecodeOptions& target) {
  app.option_defaults()->group("The problem");
  add_shape_options(app, target);
  add_meaning_options(app, target);
  app.option_defaults()->group("Options");
  integer_option(app, "--seed", target.seed, 0, "of content and schedules; default 1");
}

Result<emulator::CaseSpec> spec_of(const DecodeOptions& options) {
  if (options.spec.num_splits > 0 && options.spec.split_kv_len > 0) {
    return invalid("num-splits", "--num-splits and --split-kv-len exclude each other");
  }
  emulator::CaseSpec spec = options.spec;
  spec.bf16 = options.type != "f16";
  spec.e4m3 = options.type == "e4m3";
  if (options.on_hopper()) {
    spec.kernel = Backend::hopper;
    if (!options.has("--score-slots")) spec.score_slots = 0;
    if (!options.has("--row-replicas")) spec.row_replicas = 0;
  }
  if (Status bad = set_lengths(options, spec); !bad.ok()) return bad;
  if (Status bad = check_size(spec); !bad.ok()) return bad;
  spec.causal = spec.q_len > 1 && !options.no_causal;
  spec.seed = static_cast<uint64_t>(options.seed);
  return spec;
}

std::string problem_text(const emulator::CaseSpec& spec) {
  const auto [least, most] = std::minmax_element(spec.kv_len.begin(), spec.kv_len.end());
  const std::size_t requests = spec.kv_len.size();
  std::string text = fmt::format("{} request{} of {}", requests, requests == 1 ? "" : "s", *least);
  if (*most != *least) text += fmt::format(" to {}", *most);
  const int rows = spec.group * spec.q_len;
  text += fmt::format(" key{}, {} row{}", *most == 1 ? "" : "s", rows, rows == 1 ? "" : "s");
  if (!spec.q_lens.empty()) text += " at most";
  if (spec.kv_heads > 1) text += fmt::format(" for each of {} KV heads", spec.kv_heads);
  if (spec.page_size > 0) text += fmt::format(", pages of {}", spec.page_size);
  if (spec.causal) text += ", causal";
  if (spec.window_left >= 0) text += fmt::format(", window left {}", spec.window_left);
  if (spec.window_right >= 0) text += fmt::format(", window right {}", spec.window_right);
  if (!spec.kv_start.empty()) {
    text += fmt::format(", from key {} on", *std::ranges::max_element(spec.kv_start));
  }
  if (spec.softcap > 0) text += fmt::format(", softcap {}", spec.softcap);
  if (spec.sink) text += ", sinks";
  if (spec.num_splits > 0) text += fmt::format(", {} splits", spec.num_splits);
  if (spec.split_kv_len > 0) text += fmt::format(", splits of {} keys", spec.split_kv_len);
  if (spec.growing) text += ", growing scores";
  return text;
}

}  // namespace deuce::cli
