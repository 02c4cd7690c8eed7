// SPDX-License-Identifier: Apache-2.0
// Reading is refused by name, a folder too: a stream opens one and fails only when it reads.
#include "text_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace deuce::cli {

Result<std::string> read_bytes(const std::string& option, const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return invalid(option, "{}: is a folder, not a file", path);
  std::ifstream file(path, std::ios::binary);
  if (!file) return invalid(option, "{}: cannot be opened", path);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) return invalid(option, "{}: cannot be read", path);
  return text;
}

Result<std::string> read_text(const std::string& option, const std::string& path) {
  Result<std::string> text = read_bytes(option, path);
  if (text.ok() && text.value().starts_with("\xef\xbb\xbf")) text.value().erase(0, 3);
  return text;
}

}  // namespace deuce::cli
