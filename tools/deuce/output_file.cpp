// SPDX-License-Identifier: Apache-2.0
// A file of a folder that may not exist yet.
#include "output_file.h"

#include <filesystem>
#include <fstream>

namespace deuce::cli {

Status save_in(const std::string& folder, const std::string& name, const std::string& bytes) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Status{DEUCE_RUNTIME_ERROR, "out", folder + ": " + error.message()};
  const std::string path = folder + "/" + name;
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  if (!file) return Status{DEUCE_RUNTIME_ERROR, "out", path + ": cannot be written"};
  return {};
}

}  // namespace deuce::cli
