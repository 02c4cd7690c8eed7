// SPDX-License-Identifier: Apache-2.0
// Strict reading of axes; the sentence quotes the part at fault.
#include "axes.h"

#include "io/safetensors.h"
#include "numbers.h"

namespace deuce::cli {
namespace {

constexpr std::size_t kMostValues = 4096;
constexpr int64_t kMostHeads = 4096;

/// Takes the text up to `separator`, or all of it.
std::string_view take_until(std::string_view& text, std::string_view separator) {
  const auto at = text.find(separator);
  const std::string_view part = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view{} : text.substr(at + separator.size());
  return part;
}

/// The parts between commas, empty ones included.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

Result<int64_t> parse_scaled(std::string_view text, int64_t lowest, int64_t highest) {
  int64_t scale = 1;
  if (text.ends_with('k')) scale = 1 << 10;
  if (text.ends_with('m')) scale = 1 << 20;
  const std::string_view digits = text.substr(0, text.size() - (scale > 1 ? 1 : 0));
  const Result<int64_t> number = parse_integer(digits, 0, highest);
  if (!number.ok()) return number;
  const int64_t value = number.value();
  if (value > highest / scale || value * scale < lowest) {
    return invalid("", "{} is outside {} .. {}", io::quoted_name(text), lowest, highest);
  }
  return value * scale;
}

struct Step {
  bool multiply;
  int64_t by;
};

Result<Step> parse_step(std::string_view text) {
  const bool multiply = text.starts_with('x');
  if (!multiply && !text.starts_with('+')) {
    return invalid("", "{} is no step of a range: x2 multiplies, +16 adds", io::quoted_name(text));
  }
  const Result<int64_t> by = parse_scaled(text.substr(1), multiply ? 2 : 1, int64_t{1} << 40);
  if (!by.ok()) return by.status();
  return Step{multiply, by.value()};
}

/// Appends one part of the list.
Status append(std::string_view part, int64_t lowest, int64_t highest,
              std::vector<int64_t>& values) {
  std::string_view rest = part;
  const bool counted = part.find("..") != std::string_view::npos;
  const bool stepped = !counted && part.find(':') != std::string_view::npos;
  const Result<int64_t> first =
      parse_scaled(take_until(rest, counted ? ".." : ":"), lowest, highest);
  if (!first.ok()) return first.status();
  if (!counted && !stepped) {
    values.push_back(first.value());
    return {};
  }
  const Result<int64_t> last =
      parse_scaled(counted ? rest : take_until(rest, ":"), first.value(), highest);
  if (!last.ok()) return last.status();
  const Result<Step> step = counted ? Result<Step>(Step{false, 1}) : parse_step(rest);
  if (!step.ok()) return step.status();
  if (step.value().multiply && first.value() == 0) {
    return invalid("", "{}: a range that multiplies cannot start at 0", io::quoted_name(part));
  }
  for (int64_t value = first.value(); value <= last.value();) {
    if (values.size() == kMostValues)
      return invalid("", "{} gives more than {} values", io::quoted_name(part), kMostValues);
    values.push_back(value);
    if (step.value().multiply && value > last.value() / step.value().by) break;
    value = step.value().multiply ? value * step.value().by : value + step.value().by;
  }
  return {};
}

}  // namespace

Result<std::vector<int64_t>> parse_axis(std::string_view text, int64_t lowest, int64_t highest) {
  std::vector<int64_t> values;
  for (const std::string_view part : split(text)) {
    if (Status bad = append(part, lowest, highest, values); !bad.ok()) return bad;
  }
  return values;
}

Result<std::vector<Heads>> parse_heads(std::string_view text) {
  std::vector<Heads> result;
  for (const std::string_view pair : split(text)) {
    std::string_view rest = pair;
    const Result<int64_t> q = parse_integer(take_until(rest, ":"), 1, kMostHeads);
    if (!q.ok()) return q.status();
    const Result<int64_t> kv = parse_integer(rest, 1, kMostHeads);
    if (!kv.ok()) {
      return invalid("", "{} is not QUERY_HEADS:KV_HEADS, such as 32:8", io::quoted_name(pair));
    }
    if (q.value() % kv.value() != 0) {
      return invalid("", "{}: query heads must be a multiple of KV heads", io::quoted_name(pair));
    }
    result.push_back({static_cast<int>(q.value()), static_cast<int>(kv.value())});
  }
  return result;
}

}  // namespace deuce::cli
