// SPDX-License-Identifier: Apache-2.0
// Texts of the command line tool, held word for word: help pages in files beside this one, usage
// errors in the table below. DEUCE_UPDATE_GOLDEN=1 rewrites the files; the change is then reviewed.
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/tool.h"

namespace deuce::cli {
namespace {

class HelpPage : public testing::TestWithParam<const char*> {};

TEST_P(HelpPage, IsTheReviewedText) {
  const std::string command = GetParam();
  const Folder folder;
  const ToolOutput ran = folder.run(command + " --help");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.err, "");
  const std::string file =
      std::string(DEUCE_GOLDEN_FOLDER "/help") + (command.empty() ? "" : "_") + command + ".txt";
  if (std::getenv("DEUCE_UPDATE_GOLDEN") != nullptr)
    std::ofstream(file, std::ios::binary) << ran.out;
  EXPECT_EQ(ran.out, file_text(file));
}

TEST_P(HelpPage, FitsATerminal) {
  const Folder folder;
  const std::string text = folder.run(std::string(GetParam()) + " --help").out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    EXPECT_LE(end - begin, 100U) << text.substr(begin, end - begin);
    begin = end + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(Commands, HelpPage,
                         testing::Values("", "run", "bench", "check", "trace", "info"),
                         [](const auto& page) {
                           const std::string command = page.param;
                           return command.empty() ? std::string("deuce") : command;
                         });

struct UsageError {
  const char* arguments;
  const char* sentence;
};
void PrintTo(const UsageError& error, std::ostream* out) { *out << error.arguments; }

const UsageError kErrors[] = {
    {"", "deuce: a command is needed: run, bench, check, trace or info (deuce --help)"},
    {"walk", "deuce: The following argument was not expected: walk (deuce --help)"},
    {"run", "deuce run: FILE is required (deuce run --help)"},
    {"run a.safetensors b.safetensors",
     "deuce run: The following argument was not expected: b.safetensors (deuce run --help)"},
    {"run a.safetensors --fast",
     "deuce run: The following argument was not expected: --fast (deuce run --help)"},
    {"run none.safetensors",
     "deuce run: none.safetensors: cannot be opened: No such file or directory"},
    {"run a --backend gpu",
     "deuce run: --backend: 'gpu' is not one of auto, cpu, reference, emulator, hopper, blackwell "
     "(deuce run --help)"},
    {"run a --num-splits 1e2",
     "deuce run: --num-splits: '1e2' is not an integer (deuce run --help)"},
    {"run a --num-splits 0x10",
     "deuce run: --num-splits: '0x10' is not an integer (deuce run --help)"},
    {"run a --num-splits ''", "deuce run: --num-splits: '' is not an integer (deuce run --help)"},
    {"run a --num-splits 257",
     "deuce run: --num-splits: '257' is outside 0 .. 256 (deuce run --help)"},
    {"run a --num-splits 99999999999999999999",
     "deuce run: --num-splits: '99999999999999999999' is outside 0 .. 256 (deuce run --help)"},
    {"run a --window-left -2",
     "deuce run: --window-left: '-2' is outside -1 .. 2147483647 (deuce run --help)"},
    {"run a --softcap nan",
     "deuce run: --softcap: 'nan' is not a finite number (deuce run --help)"},
    {"run a --softcap inf",
     "deuce run: --softcap: 'inf' is not a finite number (deuce run --help)"},
    {"run a --softmax-scale 0",
     "deuce run: --softmax-scale: '0' would make every score or output 0 (deuce run --help)"},
    {"run a --lse-base 10",
     "deuce run: --lse-base: '10' is neither natural nor 2 (deuce run --help)"},
    {"run a --causal --no-causal", "deuce run: --causal excludes --no-causal (deuce run --help)"},
    {"run a --repeat 0", "deuce run: --repeat: '0' is outside 1 .. 1000000 (deuce run --help)"},
    {"run a --emulate hopper",
     "deuce run: --emulate: 'hopper' is not blackwell, the one kernel it runs so far (deuce run "
     "--help)"},
    {"check --explore --head-dim 128",
     "deuce check: --head-dim: --explore takes --kernel, --score-slots, --row-replicas and nothing "
     "else"},
    {"check --timing --explore",
     "deuce check: --explore: --timing takes --kernel, --head-dim, --rows and nothing else"},
    {"check --replay random/1 --schedules 3",
     "deuce check: --schedules: --replay runs one schedule"},
    {"bench --preset gpt-7",
     "deuce bench: --preset: 'gpt-7' is not a preset (deuce bench --list shows them)"},
    {"bench --batch 8,", "deuce bench: --batch: '' is not an integer (deuce bench --help)"},
    {"bench --batch 0", "deuce bench: --batch: '0' is outside 1 .. 65536 (deuce bench --help)"},
    {"bench --q-heads 8",
     "deuce bench: --q-heads, --kv-heads and --head-dim must be given together"},
    {"bench --preset llama3-8b --head-dim 8",
     "deuce bench: --preset and --q-heads, --kv-heads, --head-dim exclude each other"},
    {"bench --case a --kv-len 8", "deuce bench: --case and --batch, --kv-len exclude each other"},
    {"bench --case a", "deuce bench: data/decode_batches.json: cannot be opened"},
    {"trace --compare base", "deuce trace: --compare needs two runs or more"},
    {"trace --compare base,ping",
     "deuce trace: --compare: 'ping' is not one of base, pingpong, 3slots"},
    {"trace --compare base,pingpong --score-slots 3",
     "deuce trace: --compare and --score-slots exclude each other"},
    {"bench --dtype int8",
     "deuce bench: --dtype: 'int8' is not one of f32, f16, bf16, e4m3, e5m2 (deuce bench --help)"},
    {"bench --seconds 0", "deuce bench: --seconds: '0' is not above 0 (deuce bench --help)"},
    {"info --fast",
     "deuce info: The following argument was not expected: --fast (deuce info --help)"},
};

class Usage : public testing::TestWithParam<UsageError> {};

TEST_P(Usage, IsRefusedInOneSentence) {
  const Folder folder;
  const ToolOutput ran = folder.run(GetParam().arguments);
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err, std::string(GetParam().sentence) + "\n");
}

INSTANTIATE_TEST_SUITE_P(Errors, Usage, testing::ValuesIn(kErrors));

TEST(Info, SaysThatBlackwellHasNeverRunOnSilicon) {
  const Folder folder;
  for (const char* form : {"info", "info --json"}) {
    const std::string text = folder.run(form).out;
    EXPECT_NE(text.find("has never run on silicon"), std::string::npos) << text;
  }
}

TEST(Version, IsOneLine) {
  const Folder folder;
  EXPECT_EQ(folder.run("--version").out, "deuce " DEUCE_VERSION "\n");
}

}  // namespace
}  // namespace deuce::cli
