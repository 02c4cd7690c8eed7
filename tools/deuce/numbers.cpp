// SPDX-License-Identifier: Apache-2.0
// Strict number parsing on std::from_chars, which knows no locale and no base but the one asked
// for.
#include "numbers.h"

#include <charconv>
#include <cmath>

#include "io/safetensors.h"

namespace deuce::cli {
namespace {

/// True when the whole text was one number of type T.
template <class T>
std::errc read_whole(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return error;
  return end == text.data() + text.size() ? std::errc{} : std::errc::invalid_argument;
}

}  // namespace

Result<int64_t> parse_integer(std::string_view text, int64_t lowest, int64_t highest) {
  int64_t value = 0;
  const std::errc error = read_whole(text, value);
  if (error == std::errc::invalid_argument) {
    return invalid("", "{} is not an integer", io::quoted_name(text));
  }
  if (error == std::errc::result_out_of_range || value < lowest || value > highest) {
    return invalid("", "{} is outside {} .. {}", io::quoted_name(text), lowest, highest);
  }
  return value;
}

Result<double> parse_number(std::string_view text) {
  double value = 0;
  if (read_whole(text, value) != std::errc{} || !std::isfinite(value)) {
    return invalid("", "{} is not a finite number", io::quoted_name(text));
  }
  return value;
}

Result<bool> parse_bool(std::string_view text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return invalid("", "{} is neither true nor false", io::quoted_name(text));
}

}  // namespace deuce::cli
