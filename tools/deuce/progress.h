// SPDX-License-Identifier: Apache-2.0
// One line on stderr that says what takes so long; nothing at all unless stderr is a terminal.
#pragma once

#include <string_view>

namespace deuce::cli {

class Progress {
 public:
  Progress();
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Replaces the line.
  void show(std::string_view text);
  /// Removes it, before something is printed to stdout.
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
};

}  // namespace deuce::cli
