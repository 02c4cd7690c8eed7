// SPDX-License-Identifier: Apache-2.0
// Texts of the command line tool, held word for word: help pages in files beside this one, usage
// errors in the table below. DEUCE_UPDATE_GOLDEN=1 rewrites the files; the change is then reviewed.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "cli/tool.h"

namespace deuce::cli {
namespace {

/// A command as a part of a file's name.
std::string page_name(std::string command) {
  std::replace(command.begin(), command.end(), ' ', '_');
  return command;
}

class HelpPage : public testing::TestWithParam<const char*> {};

TEST_P(HelpPage, IsTheReviewedText) {
  const std::string command = GetParam();
  const Folder folder;
  const ToolOutput ran = folder.run(command + " --help");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.err, "");
  const std::string file = std::string(DEUCE_GOLDEN_FOLDER "/help") + (command.empty() ? "" : "_") +
                           page_name(command) + ".txt";
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
                         testing::Values("", "run", "bench", "bench compare", "bench plot",
                                         "bench figure9", "check", "trace", "info"),
                         [](const auto& page) {
                           const std::string command = page_name(page.param);
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
    {"run a --num-splits ''", "deuce run: --num-splits: the text is empty (deuce run --help)"},
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
    {"run a --emulate cpu",
     "deuce run: --emulate: 'cpu' is not one of blackwell, hopper (deuce run --help)"},
    {"check --explore --head-dim 128",
     "deuce check: --head-dim: --explore takes --kernel, --score-slots, --row-replicas, --case and "
     "nothing else"},
    {"check --explore --case 3",
     "deuce check: --case needs --score-slots and --row-replicas: it counts their cases"},
    {"check --explore --score-slots 2 --row-replicas 1 --case 9999",
     "deuce check: --case: 9999 of 202 cases"},
    {"check --case 3", "deuce check: --case belongs to --explore"},
    {"check --batch 2 --kv-len 1,2,3", "deuce check: --batch: 2 requests, and --kv-len names 3"},
    {"check --kv-len 7,9 --q-len 1,2,3", "deuce check: --q-len names 3 requests, and there are 2"},
    {"check --q-len 0", "deuce check: --q-len: without new tokens nothing is computed"},
    {"check --timing --explore",
     "deuce check: --explore: --timing takes --kernel, --head-dim, --rows and nothing else"},
    {"check --score-slots 4",
     "deuce check: --score-slots: '4' is outside 1 .. 3 (deuce check --help)"},
    {"check --row-replicas 3", "deuce check: row_replicas is 3: it must be 1, 2 or 4"},
    {"check --row-replicas 5",
     "deuce check: --row-replicas: '5' is outside 0 .. 4 (deuce check --help)"},
    {"check --replay timed/5",
     "deuce check: --replay: 'timed/5' is not timed/0, eager/0, lazy/0, adversarial/0 to 4 or "
     "random/N"},
    {"check --replay adversarial/5",
     "deuce check: --replay: 'adversarial/5' is not timed/0, eager/0, lazy/0, adversarial/0 to 4 "
     "or random/N"},
    {"run a --backend emulator:",
     "deuce run: --backend: 'emulator:' is not one of auto, cpu, reference, emulator, hopper, "
     "blackwell (deuce run --help)"},
    {"check --replay random/1 --schedules 3",
     "deuce check: --schedules: --replay runs one schedule"},
    {"bench --preset gpt-7",
     "deuce bench: --preset: 'gpt-7' is not a preset (deuce bench --list shows them)"},
    {"bench --batch 8,", "deuce bench: --batch: '' is not an integer (deuce bench --help)"},
    {"bench --batch 0", "deuce bench: --batch: '0' is outside 1 .. 65536 (deuce bench --help)"},
    {"bench --heads 8",
     "deuce bench: --heads: '8' is not QUERY_HEADS:KV_HEADS, such as 32:8 (deuce "
     "bench --help)"},
    {"bench --heads 8:3",
     "deuce bench: --heads: '8:3': query heads must be a multiple of KV heads "
     "(deuce bench --help)"},
    {"bench --preset llama3-8b --heads 8:1",
     "deuce bench: --preset and --heads exclude each other"},
    {"bench --head-dim 8", "deuce bench: --head-dim goes with --heads"},
    {"bench --kv-len 1k:4k:2",
     "deuce bench: --kv-len: '2' is no step of a range: x2 multiplies, +16 adds (deuce bench "
     "--help)"},
    {"bench --kv-len 4k:1k:x2",
     "deuce bench: --kv-len: '1k' is outside 4096 .. 67108864 (deuce bench --help)"},
    {"bench --page 0:64:x2",
     "deuce bench: --page: '0:64:x2': a range that multiplies cannot start at 0 (deuce bench "
     "--help)"},
    {"bench --case a --kv-len 8", "deuce bench: --kv-len and --trace, --case exclude each other"},
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

TEST(Info, NamesReplicasAndWhatTheEmulatorWrites) {
  const Folder folder;
  const std::string text = folder.run("info").out;
  const std::string emulator = text.substr(text.find("backend    emulator:blackwell"));
  EXPECT_NE(emulator.find("out        f16, bf16, as q\n"), std::string::npos) << text;
  EXPECT_NE(emulator.find("score_slots to 3, row_replicas to 4\n"), std::string::npos) << text;
}

TEST(Check, RefusesByNameWhatTheHopperKernelLacks) {
  const Folder folder;
  for (const auto& [options, sentence] :
       {std::pair{"check --kernel hopper --explore",
                  "check: --explore: explored is the blackwell kernel only"},
        std::pair{
            "check --kernel hopper --score-slots 2",
            "check: score_slots is 2: hopper takes 0 and 1, and 2 with more than 16 rows of a "
            "KV head and a 16-bit cache"},
        std::pair{"check --kernel hopper --strict-order",
                  "check: strict_order is set: only blackwell has such a kernel"},
        std::pair{"check --kernel hopper --timing --type f16",
                  "check: --type f16: --timing of hopper knows bf16 and e4m3"},
        std::pair{"check --type e4m3", "check: kv_dtype is e4m3: blackwell takes f16 or bf16"},
        std::pair{"trace --kernel hopper --write residency",
                  "trace: --write residency: hopper has no score slots in tensor memory"},
        std::pair{
            "trace --kernel hopper --compare base,pingpong",
            "trace: score_slots is 2: hopper takes 0 and 1, and 2 with more than 16 rows of a KV "
            "head and a 16-bit cache"}}) {
    const auto ran = folder.run(options);
    EXPECT_EQ(ran.exit_code, 3) << options;
    EXPECT_EQ(ran.err, std::string("deuce ") + sentence + "\n");
  }
}

/// The example of docs/cli.md with fewer schedules.
TEST(Check, TakesTheReplicasThatAPlanTakesAndSaysSo) {
  const Folder folder;
  const char* shape = "check --schedules 8 --rows ";
  for (const auto& [options, words] :
       {std::pair{"16", "2 score slots, 4 row replicas (as a plan chooses), bf16\n"},
        std::pair{"48 --row-replicas 0",
                  "2 score slots, 2 row replicas (as a plan chooses), bf16\n"},
        std::pair{"16 --head-dim 128", "2 score slots, 1 row replica (as a plan chooses), bf16\n"},
        std::pair{"16 --row-replicas 1 --strict --strict-order",
                  "2 score slots, 1 row replica, bf16, ptx-strict\n"}}) {
    const ToolOutput ran = folder.run(std::string(shape) + options);
    EXPECT_EQ(ran.exit_code, 0) << ran.out;
    EXPECT_NE(ran.out.find(words), std::string::npos) << ran.out;
  }
}

TEST(Check, RefusesAnOrderThatIsNotCompiled) {
  const Folder folder;
  const ToolOutput ran = folder.run("check --head-dim 128 --strict-order");
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_EQ(ran.err,
            "deuce check: strict_order: the kernel is compiled with it for head_dim 64, bf16 and "
            "score_slots 2 and 3\n");
}

TEST(Check, PrintsWhatDocsCliShows) {
  const std::string text = file_text(DEUCE_DOCS_FOLDER "/cli.md");
  const std::string prompt = "$ deuce ";
  const std::size_t begin = text.find(prompt + "check");
  ASSERT_NE(begin, std::string::npos);
  std::istringstream shown(text.substr(begin, text.find("```", begin) - begin));
  std::string command, line;
  std::getline(shown, command);
  const Folder folder;
  std::istringstream printed(folder.run(command.substr(prompt.size())).out);
  for (std::string wanted; std::getline(shown, wanted);) {
    ASSERT_TRUE(std::getline(printed, line)) << wanted;
    if (wanted.ends_with("...")) {  // a long line is cut
      wanted.resize(wanted.size() - 3);
      line.resize(wanted.size());
    }
    EXPECT_EQ(line, wanted);
  }
}

TEST(Check, NamesEveryEdgeThatWasNotExercised) {
  const Folder folder;
  const ToolOutput ran = folder.run("check --schedules 1 --blocks 1 --row-replicas 1");
  EXPECT_EQ(ran.exit_code, 8);
  EXPECT_NE(ran.out.find("incomplete: not exercised: o_staged, o_stored ("), std::string::npos)
      << ran.out;
}

/// 32,768 fibers: a guard page for each would pass the number of mappings a process may have.
TEST(Check, RunsTheLargestGrid) {
  const Folder folder;
  const ToolOutput ran = folder.run("check --schedules 1 --blocks 64 --batch 64 --kv-len 140");
  EXPECT_EQ(ran.exit_code, 8) << ran.out << ran.err;  // no ring goes round
  EXPECT_NE(ran.out.find("results     equal bit for bit"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("64 CTAs\n"), std::string::npos) << ran.out;
}

TEST(Version, IsOneLine) {
  const Folder folder;
  EXPECT_EQ(folder.run("--version").out, "deuce " DEUCE_VERSION "\n");
}

}  // namespace
}  // namespace deuce::cli
