// SPDX-License-Identifier: Apache-2.0
// Files of a folder: a pipe is written in place where it is asked for alone, and refused among
// files that appear together.
#include "output_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "cli/tool.h"

namespace deuce::cli {
namespace {

TEST(OutputFile, APipeIsWrittenInPlaceAlone) {
  const Folder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = file_text(pipe); });
  EXPECT_TRUE(save_in(folder.file(""), "pipe", "words").ok());
  reader.join();
  EXPECT_EQ(read, "words");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));

  const Status status = save_all(folder.file(""), {{"first", "1"}, {"pipe", "2"}});
  EXPECT_NE(status.sentence().find("pipe: is not a file"), std::string::npos) << status.sentence();
  EXPECT_FALSE(std::filesystem::exists(folder.file("first")));
}

TEST(OutputFile, AnEarlierFileIsReplacedAndAFolderIsNot) {
  const Folder folder;
  ASSERT_TRUE(save_all(folder.file("x"), {{"a", "1"}, {"b", "1"}}).ok());
  ASSERT_TRUE(save_in(folder.file("x"), "b", "2").ok());
  EXPECT_EQ(file_text(folder.file("x/a")), "1");
  EXPECT_EQ(file_text(folder.file("x/b")), "2");
  std::filesystem::create_directory(folder.file("x/c"));
  const Status status = save_all(folder.file("x"), {{"a", "3"}, {"c", "3"}});
  EXPECT_NE(status.sentence().find("x/c: is a folder, not a file"), std::string::npos)
      << status.sentence();
  EXPECT_EQ(file_text(folder.file("x/a")), "1");
}

}  // namespace
}  // namespace deuce::cli
