// SPDX-License-Identifier: Apache-2.0
// `deuce bench`: an option that would have no effect is refused by name.
#include <gtest/gtest.h>

#include "cli/tool.h"

namespace deuce::cli {
namespace {

TEST(BenchOptions, WithoutEffectOnASubcommandAreRefused) {
  const Folder folder;
  const std::pair<const char*, const char*> wrong[] = {
      {"--save z.json compare a.json b.json", "compare: --save"},
      {"--json --seconds 1 compare a.json b.json", "compare: --json"},
      {"--seconds 1 compare a.json b.json", "compare: --seconds"},
      {"--hot plot a.json", "plot: --hot"},
      {"--batch 4 figure9", "figure9: --batch"},
  };
  for (const auto& [arguments, start] : wrong) {
    const ToolOutput ran = folder.run(std::string("bench ") + arguments);
    EXPECT_EQ(ran.exit_code, 2) << arguments;
    EXPECT_EQ(ran.err.find(std::string("deuce bench ") + start +
                           ": an option of measuring, without effect on bench "),
              0U)
        << ran.err;
    EXPECT_EQ(ran.out, "") << arguments;
  }
}

TEST(BenchOptions, WithoutEffectOnTheListAreRefused) {
  const Folder folder;
  const std::pair<const char*, const char*> wrong[] = {
      {"--list --kv-len 16", "--kv-len"},   {"--list --heads 1:1", "--heads"},
      {"--preset nope --list", "--preset"}, {"--list --json", "--json"},
      {"--list --seconds 3", "--seconds"},  {"--list --divide 2", "--divide"},
  };
  for (const auto& [arguments, name] : wrong) {
    const ToolOutput ran = folder.run(std::string("bench ") + arguments);
    EXPECT_EQ(ran.exit_code, 2) << arguments;
    EXPECT_EQ(ran.err.find(std::string("deuce bench: ") + name + ": without effect on --list"), 0U)
        << ran.err;
  }
}

TEST(BenchList, ShowsPresetsWhereThereIsNoRepository) {
  const Folder folder;
  const ToolOutput ran = folder.run("bench --list");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.err, "");
  EXPECT_NE(ran.out.find("llama3-8b "), std::string::npos);
  EXPECT_NE(ran.out.find("no recorded batches here: --case looks for data/decode_batches.json"),
            std::string::npos)
      << ran.out;
}

TEST(BenchList, ShowsTheCasesOfItsFile) {
  const Folder folder;
  std::filesystem::create_directory(folder.file("data"));
  std::ofstream(folder.file("data/decode_batches.json"))
      << R"({"cases":[{"name":"a","kv_lens":[3,4]},{"name":"b","kv_lens":[5]}]})";
  const ToolOutput all = folder.run("bench --list");
  EXPECT_EQ(all.exit_code, 0) << all.err;
  EXPECT_NE(all.out.find("\na  "), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("\nb  "), std::string::npos) << all.out;
  const ToolOutput one = folder.run("bench --list --trace data/decode_batches.json --batch 1");
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(one.out.find("\na  "), std::string::npos) << one.out;
  const ToolOutput none = folder.run("bench --list --trace none.json");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_EQ(none.out, "");
}

}  // namespace
}  // namespace deuce::cli
