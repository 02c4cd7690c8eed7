// SPDX-License-Identifier: Apache-2.0
// Decode batches out of request traces: both formats, the closed loop against one played out by
// hand, and what is refused.
#include "request_trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/tool.h"

namespace deuce::cli {
namespace {

constexpr const char* kMooncake =
    R"({"timestamp": 0, "input_length": 100, "output_length": 3, "hash_ids": [1, 2]})"
    "\n"
    R"({"timestamp": 5, "input_length": 7, "output_length": 4, "hash_ids": []})"
    "\n";
constexpr const char* kAzure =
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 18:15:46.6805900,374,44\r\n"
    "2023-11-16 18:15:50.9951690,396,109\r\n";

TEST(RequestTrace, ReadsMooncakeLines) {
  ASSERT_TRUE(is_request_trace(kMooncake));
  const auto requests = parse_request_trace("m.jsonl", kMooncake);
  ASSERT_TRUE(requests.ok()) << requests.status().sentence();
  ASSERT_EQ(requests.value().size(), 2U);
  EXPECT_EQ(requests.value()[0].input, 100);
  EXPECT_EQ(requests.value()[1].output, 4);
}

TEST(RequestTrace, ReadsAzureLines) {
  ASSERT_TRUE(is_request_trace(kAzure));
  const auto requests = parse_request_trace("a.csv", kAzure);
  ASSERT_TRUE(requests.ok()) << requests.status().sentence();
  ASSERT_EQ(requests.value().size(), 2U);
  EXPECT_EQ(requests.value()[0].input, 374);
  EXPECT_EQ(requests.value()[1].output, 109);
}

TEST(RequestTrace, IsToldFromAFileOfCases) {
  EXPECT_FALSE(is_request_trace(R"({"cases": []})"));
  EXPECT_FALSE(is_request_trace("{\n\"cases\": []}"));
  EXPECT_FALSE(is_request_trace(""));
}

TEST(RequestTrace, NamesTheLineAndTheColumnAtFault) {
  const std::pair<const char*, const char*> rows[] = {
      {"2023-11-16 18:15:50,12",
       "it has 2 columns, not those of TIMESTAMP,ContextTokens,GeneratedTokens"},
      {"2023-11-16 18:15:00.68,300,10,77",
       "it has 4 columns, not those of TIMESTAMP,ContextTokens,GeneratedTokens"},
      {"t,x,5", "ContextTokens: 'x' is not an integer"},
      {"t,5,2000000000", "GeneratedTokens: '2000000000' is outside 0 .. 67108864"},
  };
  for (const auto& [row, sentence] : rows) {
    EXPECT_EQ(parse_request_trace("a.csv", std::string(kAzure) + row + "\n").status().sentence(),
              std::string("a.csv: line 4: ") + sentence);
  }
  const std::pair<const char*, const char*> lines[] = {
      {R"({"input_length": 1.5, "output_length": 2})", "input_length: '1.5' is not an integer"},
      {R"({"input_length": 1})", "it has no output_length"},
      {"[1, 2]", "it is not a JSON object"},
  };
  for (const auto& [line, sentence] : lines) {
    EXPECT_EQ(parse_request_trace("m.jsonl", std::string(kMooncake) + line).status().sentence(),
              std::string("m.jsonl: line 3: ") + sentence);
  }
}

// Two slots. Requests (input, output), those with one output token never decode:
//   r0 (10, 3)  r1 (20, 2)  r2 (30, 4)  r3 (40, 1)  r4 (50, 3)  r5 (60, 9)  r6 (70, 9)
// step      1      2      3      4      5      6  ...
// slot 0   r0 11  r0 12  r4 51  r4 52  r5 61  r5 62 ...
// slot 1   r1 21  r2 31  r2 32  r2 33  r6 71  r6 72 ...
// r0 and r1 have left from step 3 on; r5 and r6 leave after their eighth step, 12, the last one.
// Steps 3 .. 12: 3 + 9/6 = 4, 3 + 27/6 = 7, 3 + 45/6 = 10.
TEST(ClosedLoop, IsTheOnePlayedOutByHand) {
  const std::vector<TraceRequest> requests{{10, 3}, {20, 2}, {30, 4}, {40, 1},
                                           {50, 3}, {60, 9}, {70, 9}};
  const auto cases = decode_batches("t", requests, 2);
  ASSERT_TRUE(cases.ok()) << cases.status().sentence();
  ASSERT_EQ(cases.value().size(), 3U);
  EXPECT_EQ(cases.value()[0].name, "t/b2/s4");
  EXPECT_EQ(cases.value()[0].kv_lens, (std::vector<int32_t>{52, 33}));
  EXPECT_EQ(cases.value()[1].name, "t/b2/s7");
  EXPECT_EQ(cases.value()[1].kv_lens, (std::vector<int32_t>{63, 73}));
  EXPECT_EQ(cases.value()[2].kv_lens, (std::vector<int32_t>{66, 76}));
}

TEST(ClosedLoop, RefusesATraceThatIsTooShort) {
  const auto sentence = [](const std::vector<TraceRequest>& requests) {
    return decode_batches("in/t.csv", requests, 2).status().sentence();
  };
  EXPECT_EQ(
      sentence({{10, 3}, {20, 1}, {0, 4}}),
      "in/t.csv: too few requests for --batch 2 (1 of 2 or more output tokens): it is never full");
  EXPECT_EQ(sentence({{10, 3}, {20, 1}, {30, 4}}),
            "in/t.csv: too few requests for --batch 2 (2 of 2 or more output tokens): the first 2 "
            "never leave");
  EXPECT_EQ(sentence({{10, 2}, {20, 2}, {30, 4}, {30, 4}}),
            "in/t.csv: too few requests for --batch 2 (4 of 2 or more output tokens): fewer than 7 "
            "steps follow "
            "when the first 2 have left");
}

TEST(BenchTrace, MeasuresTheBatchesOfATrace) {
  const Folder folder;
  std::ofstream file(folder.file("few.jsonl"));
  for (int i = 0; i < 40; ++i)
    file << R"({"input_length": )" << 8 + i << R"(, "output_length": )" << 2 + i % 5 << "}\n";
  file.close();
  const ToolOutput ran = folder.run(
      "bench --backend reference --heads 2:1 --head-dim 16 --trace few.jsonl --batch 2,4 "
      "--seconds 0.02 --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  ASSERT_EQ(json["points"].size(), 6U);
  EXPECT_EQ(json["points"][5]["batch"], 4);
  EXPECT_EQ(json["points"][0]["lengths"].get<std::string>().substr(0, 9), "few/b2/s1");
  const ToolOutput one = folder.run(
      "bench --backend reference --heads 2:1 --head-dim 16 --trace few.jsonl --batch 2 --case "
      "nothing");
  EXPECT_EQ(one.exit_code, 2);
  EXPECT_EQ(one.err,
            "deuce bench: few.jsonl: has no case 'nothing' (deuce bench --list shows them)\n");
}

// A row that was given up is no part of the batches, and that is said; a byte order mark is no
// part of the header.
TEST(BenchTrace, SaysWhatItLeavesOut) {
  const Folder folder;
  std::string rows = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  for (int i = 0; i < 40; ++i) rows += fmt::format("t,{},{}\n", 8 + i, 2 + i % 5);
  std::ofstream(folder.file("whole.csv")) << rows;
  std::ofstream(folder.file("empty.csv")) << "\xef\xbb\xbf" << rows << "t,100,0\nt,0,5\n";
  const std::string command =
      "bench --backend reference --heads 2:1 --head-dim 16 --batch 2 --seconds 0.02 --json "
      "--trace ";
  const ToolOutput whole = folder.run(command + "whole.csv");
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_EQ(whole.err, "");
  const ToolOutput empty = folder.run(command + "empty.csv");
  ASSERT_EQ(empty.exit_code, 0) << empty.err;
  EXPECT_EQ(empty.err, "deuce bench: empty.csv: left out 2 of 42 requests, with 0 tokens\n");
  const auto a = nlohmann::json::parse(whole.out), b = nlohmann::json::parse(empty.out);
  ASSERT_EQ(b["points"].size(), 3U);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(a["points"][i]["kv_lens"], b["points"][i]["kv_lens"]);
}

TEST(BenchTrace, NamesAFolderAndAFileThatIsTooShort) {
  const Folder folder;
  std::filesystem::create_directory(folder.file("logs"));
  std::ofstream(folder.file("a1.csv")) << "TIMESTAMP,ContextTokens,GeneratedTokens\nt,3,4\n";
  EXPECT_EQ(folder.run("bench --trace logs").err, "deuce bench: logs: is a folder, not a file\n");
  EXPECT_EQ(folder.run("bench --trace a1.csv --batch 3").err,
            "deuce bench: a1.csv: too few requests for --batch 3 (1 of 2 or more output tokens): "
            "it is never "
            "full\n");
}

TEST(BenchTrace, ChoosesCasesOfALengthFileByBatch) {
  const Folder folder;
  std::ofstream(folder.file("lens.json"))
      << R"({"cases":[{"name":"a","kv_lens":[3,4]},{"name":"b","kv_lens":[5]}]})";
  const std::string command =
      "bench --backend reference --heads 2:1 --head-dim 16 --trace lens.json --seconds 0.02 --json";
  EXPECT_EQ(nlohmann::json::parse(folder.run(command).out)["points"].size(), 2U);
  const auto json = nlohmann::json::parse(folder.run(command + " --batch 1").out);
  ASSERT_EQ(json["points"].size(), 1U);
  EXPECT_EQ(json["points"][0]["lengths"], "b");
  EXPECT_EQ(folder.run(command + " --batch 9").exit_code, 2);
}

}  // namespace
}  // namespace deuce::cli
