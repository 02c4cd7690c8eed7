// SPDX-License-Identifier: Apache-2.0
// Runs the built `deuce` as a user would, in a folder of the test's own.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace deuce::cli {

struct ToolOutput {
  int exit_code = -1;  // -1: ended by a signal
  std::string out, err;
};

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A fresh folder under the temporary one; removed at the end.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "deuce_test_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

  /// The tool; its arguments go through a shell, which stands in this folder.
  ToolOutput run(const std::string& arguments) const { return shell("\"$DEUCE\" " + arguments); }

  /// Any commands of that shell, to which the tool is "$DEUCE".
  ToolOutput shell(const std::string& commands) const {
    const std::string command = "cd '" + path_.string() + "' && { DEUCE='" DEUCE_TOOL "'\n" +
                                commands + "\n} >stdout.txt 2>stderr.txt";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, file_text(path_ / "stdout.txt"),
            file_text(path_ / "stderr.txt")};
  }

 private:
  std::filesystem::path path_;
};

}  // namespace deuce::cli
