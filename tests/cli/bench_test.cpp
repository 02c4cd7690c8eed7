// SPDX-License-Identifier: Apache-2.0
// `deuce bench`: what it measures is what it says, wrong results are seen, Ctrl-C keeps the rows.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "bench_check.h"
#include "cli/tool.h"
#include "plan.h"
#include "traffic.h"
#include "workload.h"

namespace deuce::cli {
namespace {

constexpr const char* kSmall = "bench --backend reference --heads 2:1 --head-dim 16 ";

BenchShape small_shape(std::vector<int32_t> kv_lens, int page_size) {
  BenchShape shape;
  shape.q_heads = 4;
  shape.kv_heads = 2;
  shape.head_dim = 16;
  shape.page_size = page_size;
  shape.kv_lens = std::move(kv_lens);
  return shape;
}

TEST(BenchTool, WritesEveryPointAsJson) {
  const Folder folder;
  const ToolOutput ran =
      folder.run(std::string(kSmall) + "--batch 1,3 --kv-len 20 --seconds 0.05 --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["interrupted"], false);
  ASSERT_EQ(json["points"].size(), 2U);
  const auto& point = json["points"][1];
  EXPECT_EQ(point["kv_lens"], (std::vector<int>{20, 20, 20}));
  EXPECT_EQ(point["kv_bytes"], 3 * 20 * 16 * 2 * 2);
  EXPECT_EQ(point["backend"], "reference");
  EXPECT_EQ(point["check"]["ok"], true);
  EXPECT_EQ(point["check"]["requests"], 3);
  EXPECT_GE(point["samples"], 1);
  EXPECT_GT(point["time_s"]["median"], 0);
  EXPECT_DOUBLE_EQ(point["bytes_per_s"], 3840 / point["time_s"]["median"].get<double>());
}

TEST(BenchTool, PrintsARowForEachPoint) {
  const Folder folder;
  const ToolOutput ran =
      folder.run(std::string(kSmall) + "--batch 2 --kv-len 20,30 --page 0 --seconds 0.05");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  std::istringstream lines(ran.out);
  std::string line, rows;
  while (std::getline(lines, line)) rows += line.starts_with("2:1 x 16") ? "row " : "";
  EXPECT_EQ(rows, "row row ") << ran.out;
}

TEST(BenchTool, TakesCasesOfALengthFile) {
  const Folder folder;
  std::ofstream(folder.file("lens.json"))
      << R"({"cases":[{"name":"a/1","batch":2,"kv_lens":[64,8]}]})";
  const ToolOutput ran = folder.run(
      std::string(kSmall) + "--trace lens.json --case a/1 --divide 16 --seconds 0.05 --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["points"][0]["kv_lens"], (std::vector<int>{4, 1}));
  EXPECT_EQ(json["points"][0]["lengths"], "a/1/16");
}

TEST(BenchTool, RefusesADivisorWithoutACase) {
  const Folder folder;
  const ToolOutput ran = folder.run(std::string(kSmall) + "--batch 2 --kv-len 20 --divide 4");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.err.find("--divide goes with --trace or --case"), std::string::npos) << ran.err;
}

TEST(BenchTool, ReadsOneCacheWhenHotAndShowsNoRoof) {
  const Folder folder;
  const std::string flags = std::string(kSmall) + "--batch 1 --kv-len 20 --seconds 0.05 --json";
  const auto cold = nlohmann::json::parse(folder.run(flags).out)["points"][0];
  EXPECT_EQ(cold["mode"], "rotated");
  EXPECT_GT(cold["copies"], 1);
  EXPECT_TRUE(cold.contains("roof_bytes_per_s"));
  const auto hot = nlohmann::json::parse(folder.run(flags + " --hot").out)["points"][0];
  EXPECT_EQ(hot["mode"], "hot");
  EXPECT_EQ(hot["copies"], 1);
  EXPECT_FALSE(hot.contains("roof_bytes_per_s"));
}

TEST(BenchTool, MeasuresTheProductOfItsAxesAndFitsEachSweep) {
  const Folder folder;
  const ToolOutput ran = folder.run(
      "bench --backend reference --heads 2:1,4:2 --head-dim 16,32 --q-len 1..2 --page 0,16 "
      "--dtype bf16,f32 --batch 1 --kv-len 16:64:x2 --seconds 0.02 --hot --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  ASSERT_EQ(json["points"].size(), 2U * 2 * 2 * 2 * 2 * 3);
  std::set<std::string> seen;
  for (const auto& point : json["points"]) {
    std::string key;
    for (const char* axis : {"q_heads", "head_dim", "q_len", "page_size", "dtype", "kv_lens"})
      key += point[axis].dump() + " ";
    seen.insert(key);
  }
  EXPECT_EQ(seen.size(), json["points"].size());
  ASSERT_EQ(json["fits"].size(), 2U * 2 * 2 * 2 * 2);
  for (const auto& fit : json["fits"]) EXPECT_EQ(fit["kv_lens"], (std::vector<int>{16, 32, 64}));
}

TEST(BenchTool, SavesItsResultBesideTheTable) {
  const Folder folder;
  const ToolOutput ran = folder.run(std::string(kSmall) +
                                    "--batch 1 --kv-len 20 --seconds 0.02 --save a/b/result.json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out.substr(0, 6), "deuce ");
  EXPECT_EQ(nlohmann::json::parse(file_text(folder.file("a/b/result.json")))["points"].size(), 1U);
}

TEST(BenchTool, RefusesToTimeTheEmulator) {
  const Folder folder;
  const ToolOutput ran = folder.run("bench --backend emulator");
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_EQ(ran.err,
            "deuce bench: backend emulator: the time it takes is not a GPU's; deuce check --timing "
            "and deuce bench figure9 show simulated times\n");
}

TEST(GpuBackends, AreRefusedAsNoDeviceWhereThereIsNone) {
  if (open_gpu(Backend::hopper).ok()) GTEST_SKIP() << "there is a Hopper GPU";
  const Folder folder;
  for (const char* command :
       {"bench --backend hopper", "bench --backend blackwell",
        "run '" DEUCE_TEST_DATA "/smollm2_decode.safetensors' --backend hopper",
        "trace --backend hopper --out ."}) {
    const ToolOutput ran = folder.run(command);
    EXPECT_EQ(ran.exit_code, 4) << command;
    EXPECT_EQ(ran.out, "") << command;
    EXPECT_NE(ran.err.find(": backend "), std::string::npos) << ran.err;
  }
  // The environment chooses the memory, too: a GPU plan on host memory would crash.
  const ToolOutput ran = folder.shell("DEUCE_BACKEND=hopper \"$DEUCE\" bench --kv-len 8");
  EXPECT_EQ(ran.exit_code, 4) << ran.err;
}

TEST(BenchTool, KeepsWhatWasMeasuredWhenInterrupted) {
  const Folder folder;
  nlohmann::json json;
  // A busy machine may need longer to reach the first sample; then it gets more time.
  for (int seconds = 2; seconds <= 16; seconds *= 2) {
    // --foreground: one signal to the tool alone, since a second one would end it at once.
    const ToolOutput ran =
        folder.shell("timeout --foreground --preserve-status -s INT " + std::to_string(seconds) +
                     " \"$DEUCE\" " + std::string(kSmall) +
                     "--batch 1 --kv-len 20000,20001 --noise 0 --seconds 600 --json");
    ASSERT_EQ(ran.exit_code, 130) << ran.err;
    json = nlohmann::json::parse(ran.out);
    EXPECT_EQ(json["interrupted"], true);
    if (!json["points"].empty()) break;
  }
  ASSERT_FALSE(json["points"].empty());
  EXPECT_GT(json["points"].back()["samples"], 0);
}

struct BadLengths {
  const char* json;
  const char* sentence;
};
TEST(BenchTool, RefusesLengthFilesByNameAndCase) {
  const char* kNoForm =
      "is neither JSON of decode batches, nor JSON lines with input_length and output_length, or a "
      "CSV with the header TIMESTAMP,ContextTokens,GeneratedTokens (docs/cli.md)";
  const BadLengths files[] = {
      {"{", kNoForm},
      {"", kNoForm},
      {"TIMESTAMP,GeneratedTokens,ContextTokens\na,1,2\n", kNoForm},
      {"[]", "has no list of cases"},
      {R"({"cases":[3]})", "case 0: it is not an object"},
      {R"({"cases":[{"kv_lens":[1]}]})", "case 0: it has no name"},
      {R"({"cases":[{"name":"a","kv_lens":[]}]})", "case 0: it has no kv_lens"},
      {R"({"cases":[{"name":"a","kv_lens":[0]}]})",
       "case 0: kv_lens holds 0, not an integer of 1 or more"},
      {R"({"cases":[{"name":"a","kv_lens":[1.5]}]})",
       "case 0: kv_lens holds 1.5, not an integer of 1 or more"},
      {R"({"cases":[{"name":"a","kv_lens":[4294967297]}]})",
       "case 0: kv_lens holds 4294967297, not an integer of 1 or more"},
      {R"({"cases":[{"name":"a","batch":2,"kv_lens":[1]}]})",
       "case 0: batch is 2, but kv_lens has 1 lengths"},
      {R"({"cases":[]})", "has no case 'a' (deuce bench --list shows them)"},
  };
  const Folder folder;
  for (const BadLengths& file : files) {
    std::ofstream(folder.file("lens.json")) << file.json;
    const ToolOutput ran = folder.run("bench --trace lens.json --case a");
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_EQ(ran.err, std::string("deuce bench: lens.json: ") + file.sentence + "\n");
  }
}

TEST(BenchWorkload, ReadsEveryPageOfThePoolOnce) {
  auto device = open_device(Backend::cpu);
  ASSERT_TRUE(device.ok());
  const std::vector<int32_t> lens{5, 16, 33};
  auto made = Workload::create(small_shape(lens, 16), *device.value(), 20'000, 1);
  ASSERT_TRUE(made.ok()) << made.status().sentence();
  const Workload& work = made.value();
  ASSERT_GT(work.copies(), 4U);
  std::set<int32_t> seen;
  for (std::size_t copy = 0; copy < work.copies(); ++copy) {
    const deuce_decode_args& args = work.args(copy);
    for (std::size_t request = 0; request < lens.size(); ++request) {
      const int used = (lens[request] + 15) / 16;
      for (int column = 0; column < args.block_table_columns; ++column) {
        const int32_t id =
            args.block_table[static_cast<int64_t>(request) * args.block_table_stride + column];
        if (column >= used) {
          EXPECT_EQ(id, -1);
        } else {
          EXPECT_TRUE(seen.insert(id).second) << "page " << id << " twice";
          EXPECT_LT(id, args.num_pages);
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(work.host_args().num_pages));
}

class BenchCheckTest : public testing::TestWithParam<int> {};

TEST_P(BenchCheckTest, SeesAWrongNumberInAnyRequest) {
  auto device = open_device(Backend::reference);
  ASSERT_TRUE(device.ok());
  auto made = Workload::create(small_shape({9, 40, 3}, GetParam()), *device.value(), 1000, 1);
  ASSERT_TRUE(made.ok()) << made.status().sentence();
  Workload& work = made.value();
  deuce_decode_config config = work.config();
  config.backend = DEUCE_BACKEND_REFERENCE;
  const auto plan = Plan::create(config, *device.value());
  ASSERT_TRUE(plan.ok()) << plan.status().sentence();
  ASSERT_EQ(plan.value().run(work.args(0)).sentence(), "");
  ASSERT_TRUE(work.result().fetch(*device.value()).ok());
  const deuce_decode_args args = work.result().on_host(work.host_args());
  const auto right = check_requests(config, args, Backend::reference);
  ASSERT_TRUE(right.ok()) << right.status().sentence();
  EXPECT_TRUE(right.value().ok) << right.value().first_failure;
  EXPECT_EQ(right.value().requests, 3);
  for (int request = 0; request < 3; ++request) {
    auto* out = static_cast<uint16_t*>(args.out) + request * args.out_stride[0] + 7;
    const uint16_t kept = *out;
    *out = static_cast<uint16_t>(kept ^ 0x0040);  // half the value, in bf16
    const auto wrong = check_requests(config, args, Backend::reference);
    ASSERT_TRUE(wrong.ok());
    EXPECT_FALSE(wrong.value().ok) << "request " << request;
    EXPECT_TRUE(std::isfinite(wrong.value().worst_ratio));
    for (const int no_number : {0x7fc0, 0xffc0, 0x7f80}) {
      *out = static_cast<uint16_t>(no_number);
      const auto poisoned = check_requests(config, args, Backend::reference);
      ASSERT_TRUE(poisoned.ok());
      EXPECT_FALSE(poisoned.value().ok) << "request " << request;
      EXPECT_TRUE(std::isinf(poisoned.value().worst_ratio)) << poisoned.value().worst_ratio;
    }
    *out = kept;
  }
}

INSTANTIATE_TEST_SUITE_P(PageSizes, BenchCheckTest, testing::Values(0, 16));

TEST(Traffic, CountsKeysThatSomeRowSees) {
  deuce_decode_config config{};
  config.num_kv_heads = 2;
  config.head_dim_qk = config.head_dim_v = 16;
  config.kv_dtype = DEUCE_BF16;
  config.window_left = -1;
  const int32_t kv_len[] = {100, 3, 0}, kv_start[] = {10, 0, 0};
  deuce_decode_args args{};
  args.batch = 3;
  args.q_len = 2;
  args.kv_len = kv_len;
  EXPECT_EQ(traffic_of(config, args).keys, 103);
  EXPECT_EQ(traffic_of(config, args).kv_bytes, 103 * 2 * (16 + 16) * 2);
  args.kv_start = kv_start;
  EXPECT_EQ(traffic_of(config, args).keys, 93);
  config.window_left = 4;  // rows 98 and 99 see 94 .. 99
  EXPECT_EQ(traffic_of(config, args).keys, 6 + 3);
}

}  // namespace
}  // namespace deuce::cli
