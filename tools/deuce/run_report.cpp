// SPDX-License-Identifier: Apache-2.0
// The lines of `deuce run`.
#include "run_report.h"

#include <algorithm>
#include <cmath>

#include "plan/names.h"
#include "result.h"
#include "traffic.h"
#include "units.h"

namespace deuce::cli {
namespace {

void line(std::string_view title, std::string_view text) { fmt::print("{:<10}{}\n", title, text); }

std::string shape_line(const deuce_decode_config& config, const deuce_decode_args& args,
                       int64_t tokens) {
  std::string text = fmt::format("batch {}, {} new token{}, {} q heads : {} kv heads, head dim {}",
                                 args.batch, tokens, tokens == 1 ? "" : "s", config.num_q_heads,
                                 config.num_kv_heads, config.head_dim_qk);
  if (config.head_dim_v != config.head_dim_qk) text += fmt::format(" and {}", config.head_dim_v);
  return text + fmt::format(", q {}, kv {}", name_of(static_cast<DType>(config.q_dtype)),
                            name_of(static_cast<DType>(config.kv_dtype)));
}

std::string cache_line(const deuce_decode_config& config, const deuce_decode_args& args,
                       const Traffic& traffic) {
  const std::string store =
      config.page_size > 0
          ? fmt::format("{} pages of {}", args.num_pages, config.page_size)
          : fmt::format("contiguous, {} rows of {}", args.num_pages, args.cache_slots);
  return fmt::format("{}; {} visible keys, {} at most", store, traffic.keys, traffic.longest);
}

std::string meaning_line(const deuce_decode_config& config, const deuce_decode_args& args) {
  std::string text = config.causal != 0 ? "causal" : "not causal";
  if (config.window_left >= 0) text += fmt::format(", window left {}", config.window_left);
  if (config.window_right >= 0) text += fmt::format(", window right {}", config.window_right);
  if (config.softmax_scale != 0) text += fmt::format(", scale {}", config.softmax_scale);
  if (config.softcap != 0) text += fmt::format(", softcap {}", config.softcap);
  if (args.sink != nullptr) text += ", sinks";
  if (args.q_descale != nullptr) text += ", q scales";
  if (args.k_descale != nullptr || args.v_descale != nullptr) text += ", kv scales per head";
  if (args.k_token_scale != nullptr || args.v_token_scale != nullptr)
    text += ", kv scales per token";
  return text + (config.lse_base == 2 ? ", LSE base 2" : ", natural LSE");
}

std::string source_line(const io::Metadata& metadata) {
  std::string text;
  for (const char* key : descriptive_keys()) {
    const auto found = metadata.find(key);
    if (found == metadata.end()) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, io::quoted_name(found->second));
  }
  return text;
}

std::string time_line(std::vector<double> seconds) {
  if (seconds.size() == 1) return time_text(seconds[0]) + " (one cold run)";
  std::sort(seconds.begin(), seconds.end());
  return fmt::format("{}, median of {} ({} .. {})", time_text(seconds[seconds.size() / 2]),
                     seconds.size(), time_text(seconds.front()), time_text(seconds.back()));
}

std::string read_line(const RunReport& report, const Traffic& traffic) {
  std::vector<double> seconds = report.seconds;
  std::nth_element(seconds.begin(),
                   seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2),
                   seconds.end());
  const double median = seconds[seconds.size() / 2];
  const auto bytes = static_cast<double>(traffic.kv_bytes);
  std::string text =
      fmt::format("{} of K and V, {}", bytes_text(bytes), bandwidth_text(bytes, median));
  if (report.roof) text += fmt::format("; read roof {} GB/s", three_digits(*report.roof * 1e-9));
  return text;
}

}  // namespace

std::string check_line(const reference::Verdict& verdict) {
  if (verdict.ok) {
    return fmt::format(
        "ok: {} values, worst error {} of the tolerance (out {:.2e}, lse {:.2e} absolute)",
        verdict.checked, three_digits(verdict.worst_ratio), verdict.max_output_error,
        verdict.max_lse_error);
  }
  if (std::isinf(verdict.worst_ratio)) {
    return "FAILED: NaN or infinity in place of a number, or the reverse; " + verdict.first_failure;
  }
  return fmt::format("FAILED: worst error {:.3g} times the tolerance; {}", verdict.worst_ratio,
                     verdict.first_failure);
}

void print(const RunReport& report) {
  const deuce_decode_config& config = report.capture.config;
  const deuce_decode_args& args = report.capture.args;
  const Traffic traffic = traffic_of(config, args);
  line("file", report.capture.file.file());
  if (const std::string source = source_line(report.capture.file.metadata()); !source.empty())
    line("source", source);
  line("shape", shape_line(config, args, report.capture.tokens));
  line("cache", cache_line(config, args, traffic));
  line("meaning", meaning_line(config, args));
  line("backend", name_of(report.backend));
  line("time", time_line(report.seconds));
  line("read", read_line(report, traffic));
  if (!report.repeats_agree)
    line("repeats", "FAILED: the last run's bits differ from the first one's");
  if (report.verdict) line("check", check_line(*report.verdict));
  if (!report.written.empty()) line("written", report.written);
}

}  // namespace deuce::cli
