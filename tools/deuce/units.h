// SPDX-License-Identifier: Apache-2.0
// Times and sizes as people read them: three significant digits, powers of ten.
#pragma once

#include <fmt/format.h>

#include <string>

namespace deuce::cli {

inline std::string three_digits(double value) {
  return fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

inline std::string time_text(double seconds) {
  if (seconds < 0.9995e-3) return three_digits(seconds * 1e6) + " us";
  if (seconds < 0.9995) return three_digits(seconds * 1e3) + " ms";
  return three_digits(seconds) + " s";
}

inline std::string bytes_text(double bytes) {
  if (bytes < 999.5) return fmt::format("{:.0f} B", bytes);
  if (bytes < 999.5e3) return three_digits(bytes * 1e-3) + " kB";
  if (bytes < 999.5e6) return three_digits(bytes * 1e-6) + " MB";
  return three_digits(bytes * 1e-9) + " GB";
}

inline std::string bandwidth_text(double bytes, double seconds) {
  return three_digits(bytes / seconds * 1e-9) + " GB/s";
}

}  // namespace deuce::cli
