// SPDX-License-Identifier: Apache-2.0
// What `deuce run` refuses: one sentence on stderr with file, tensor and what would be accepted,
// the documented exit code, and no output file.
#include <gtest/gtest.h>

#include <functional>

#include "cli/step.h"
#include "cli/tool.h"

namespace deuce::cli {
namespace {

using io::TensorType;

struct Refusal {
  const char* name;
  std::function<void(StepFile&)> spoil;
  const char* sentence;  // after "deuce run: "
  const char* flags = "";
  int exit_code = 2;
};
void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

std::vector<float> zeros(int64_t count) {
  return std::vector<float>(static_cast<std::size_t>(count));
}

// The step behind all of them: batch 3, 3 tokens, 4:2 heads of 16, 9 pages of 4 slots, 6 columns.
const Refusal kTensors[] = {
    {"q_missing", [](StepFile& f) { f.remove("q"); },
     "in.safetensors: tensor 'q' is missing: F32, F16, BF16, F8_E4M3 or F8_E5M2 [tokens, q heads, "
     "d = 16] is needed"},
    {"q_rank",
     [](StepFile& f) {
       f.add("q", TensorType::f32, {3, 64}, zeros(192));
     },
     "in.safetensors: tensor 'q' is F32 [3, 64]: it must be F32, F16, BF16, F8_E4M3 or F8_E5M2 "
     "[tokens, q heads, d = 16]"},
    {"q_type",
     [](StepFile& f) {
       f.add_indices("q", std::vector<int64_t>(192), {3, 4, 16});
     },
     "in.safetensors: tensor 'q' is I32 [3, 4, 16]: it must be F32, F16, BF16, F8_E4M3 or F8_E5M2 "
     "[tokens, q heads, d = 16]"},
    {"q_dim",
     [](StepFile& f) {
       f.add("q", TensorType::f32, {3, 4, 8}, zeros(96));
     },
     "in.safetensors: tensor 'q' is F32 [3, 4, 8]: it must be F32, F16, BF16, F8_E4M3 or F8_E5M2 "
     "[tokens, q heads, d = 16]"},
    {"q_tokens",
     [](StepFile& f) {
       f.add("q", TensorType::f32, {4, 4, 16}, zeros(256));
     },
     "in.safetensors: tensor 'q' has 4 tokens for 3 requests: they must be a multiple, or cu_q_len "
     "must be there"},
    {"q_heads",
     [](StepFile& f) {
       f.add("q", TensorType::f32, {3, 3, 16}, zeros(144));
     },
     "num_q_heads is 3: it must be a multiple of num_kv_heads, 2"},
    {"v_type",
     [](StepFile& f) {
       f.add("v", TensorType::f16, {9, 4, 2, 16}, zeros(1152));
     },
     "in.safetensors: tensor 'v' is F16 [9, 4, 2, 16]: it must be F32 [pages = 9, slot = 4, kv "
     "heads = 2, d]"},
    {"v_pages",
     [](StepFile& f) {
       f.add("v", TensorType::f32, {8, 4, 2, 16}, zeros(1024));
     },
     "in.safetensors: tensor 'v' is F32 [8, 4, 2, 16]: it must be F32 [pages = 9, slot = 4, kv "
     "heads = 2, d]"},
    {"kv_len_missing", [](StepFile& f) { f.remove("kv_len"); },
     "in.safetensors: tensor 'kv_len' is missing: I32 or I64 [batch = 3] is needed"},
    {"kv_len_float", [](StepFile& f) { f.add("kv_len", TensorType::f32, {3}, zeros(3)); },
     "in.safetensors: tensor 'kv_len' is F32 [3]: it must be I32 or I64 [batch = 3]"},
    {"kv_len_count",
     [](StepFile& f) {
       f.add_indices("kv_len", {5, 0});
     },
     "in.safetensors: tensor 'kv_len' is I32 [2]: it must be I32 or I64 [batch = 3]"},
    {"kv_len_wide",
     [](StepFile& f) {
       f.add_indices("kv_len", {5, 0, int64_t{1} << 32}, {}, TensorType::i64);
     },
     "in.safetensors: tensor 'kv_len' has 4294967296 as its element 2, which does not fit 32 bits"},
    {"kv_len_negative",
     [](StepFile& f) {
       f.add_indices("kv_len", {5, -1, 19});
     },
     "kv_len[1] is -1"},
    {"kv_len_above_table",
     [](StepFile& f) {
       f.add_indices("kv_len", {5, 0, 25});
     },
     "kv_len[2] is 25"},
    {"page_id",
     [](StepFile& f) {
       f.add_indices("block_table", std::vector<int64_t>(18, 9), {3, 6});
     },
     "block_table"},
    {"table_rank",
     [](StepFile& f) { f.add_indices("block_table", std::vector<int64_t>(18), {18}); },
     "in.safetensors: tensor 'block_table' is I32 [18]: it must be I32 or I64 [batch, pages]"},
    {"cu_q_len_end",
     [](StepFile& f) {
       f.add_indices("cu_q_len", {0, 1, 2, 4});
     },
     "in.safetensors: tensor 'cu_q_len' runs from 0 to 4: it must run from 0 to the 3 tokens of q"},
    {"cu_q_len_falls",
     [](StepFile& f) {
       f.add_indices("cu_q_len", {0, 2, 1, 3});
     },
     "cu_q_len"},
    {"kv_start_above",
     [](StepFile& f) {
       f.add_indices("kv_start", {6, 0, 0});
     },
     "kv_start[0] is 6"},
    {"cache_row_with_pages",
     [](StepFile& f) {
       f.add_indices("cache_row", {0, 1, 2});
     },
     "in.safetensors: tensor 'cache_row' has no meaning beside the other tensors of this file"},
    {"sink_count", [](StepFile& f) { f.add("sink", TensorType::f32, {3}, zeros(3)); },
     "in.safetensors: tensor 'sink' is F32 [3]: it must be F32, F16 or BF16 [q heads = 4]"},
    {"scale_shape", [](StepFile& f) { f.add("k_scale", TensorType::f32, {4}, zeros(4)); },
     "in.safetensors: tensor 'k_scale' is F32 [4]: it must be F32 [1 or kv heads = 2]"},
    {"scale_type", [](StepFile& f) { f.add("k_scale", TensorType::f16, {1}, zeros(1)); },
     "in.safetensors: tensor 'k_scale' is F16 [1]: it must be F32 [1]\n"},
    {"scale_without_fp8", [](StepFile& f) { f.add("k_scale", TensorType::f32, {1}, {1}); },
     "k_descale"},
    {"both_table_styles",
     [](StepFile& f) {
       f.add_indices("page_indptr", {0, 2, 2, 7});
     },
     "in.safetensors: tensor 'page_indptr' has no meaning beside the other tensors of this file"},
    {"indptr_beyond_indices",
     [](StepFile& f) {
       f.remove("block_table");
       f.remove("kv_len");
       f.add_indices("page_indptr", {0, 2, 2, 8});
       f.add_indices("page_indices", {0, 1, 2, 3, 4, 5, 6});
       f.add_indices("last_page_len", {1, 0, 3});
     },
     "in.safetensors: tensor 'page_indptr' has 8 as its element 3: it must be 2 .. 7"},
    {"unknown_tensor", [](StepFile& f) { f.add("kv_lens", TensorType::f32, {1}, {1}); },
     "in.safetensors: tensor 'kv_lens' is not one that deuce run knows: q, k, v, kv_len, kv_start, "
     "cu_q_len, "
     "cache_row, block_table, page_indptr, page_indices, last_page_len, sink, q_scale, k_scale, "
     "v_scale"},
};

const Refusal kScalars[] = {
    {"metadata_unknown", [](StepFile& f) { f.metadata["soft_cap"] = "1"; },
     "in.safetensors: metadata 'soft_cap' is not a key that deuce run knows (see deuce run "
     "--help)"},
    {"metadata_not_number", [](StepFile& f) { f.metadata["softcap"] = "much"; },
     "in.safetensors: metadata 'softcap': 'much' is not a finite number"},
    {"metadata_trailing", [](StepFile& f) { f.metadata["window_left"] = "3 "; },
     "in.safetensors: metadata 'window_left': '3 ' is not an integer"},
    {"metadata_bool", [](StepFile& f) { f.metadata["causal"] = "yes"; },
     "in.safetensors: metadata 'causal': 'yes' is neither true nor false"},
    {"metadata_scale_zero", [](StepFile& f) { f.metadata["softmax_scale"] = "0"; },
     "in.safetensors: metadata 'softmax_scale': '0' would make every score or output 0"},
    {"metadata_overflow", [](StepFile& f) { f.metadata["softcap"] = "1e39"; },
     "in.safetensors: metadata 'softcap': '1e39' does not fit a 32-bit float"},
    {"metadata_underflow", [](StepFile& f) { f.metadata["softcap"] = "1e-60"; },
     "in.safetensors: metadata 'softcap': '1e-60' does not fit a 32-bit float"},
    {"softcap_negative", [](StepFile& f) { f.metadata["softcap"] = "-1"; }, "softcap is -1"},
    {"unknown_layout", [](StepFile& f) { f.metadata["kv_layout"] = "HWD"; },
     "in.safetensors: metadata 'kv_layout': 'HWD' is neither NHD nor HND"},
    {"splits_both", [](StepFile&) {}, "split_kv_len is 128 and num_splits is 2",
     "--num-splits 2 --split-kv-len 128"},
    {"split_granule", [](StepFile&) {}, "split_kv_len is 100", "--split-kv-len 100"},
    {"slots_on_reference", [](StepFile&) {}, "score_slots is 2", "--score-slots 2", 3},
    {"seed_on_reference", [](StepFile&) {}, "emulator_seed", "--emulator-seed 2"},
};

class RunRefuses : public testing::TestWithParam<Refusal> {};

TEST_P(RunRefuses, ByName) {
  const Folder folder;
  Step step;
  step.draw(1);
  StepFile file = step_file(step, {});
  GetParam().spoil(file);
  file.write(folder.file("in.safetensors"));
  const ToolOutput ran =
      folder.run(std::string("run in.safetensors --out out.safetensors --backend reference ") +
                 GetParam().flags);
  EXPECT_EQ(ran.exit_code, GetParam().exit_code) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(ran.err.starts_with(std::string("deuce run: ") + GetParam().sentence)) << ran.err;
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << "not one line: " << ran.err;
  EXPECT_FALSE(std::filesystem::exists(folder.file("out.safetensors")));
}

const auto kName = [](const auto& refusal) { return std::string(refusal.param.name); };
INSTANTIATE_TEST_SUITE_P(Tensors, RunRefuses, testing::ValuesIn(kTensors), kName);
INSTANTIATE_TEST_SUITE_P(Scalars, RunRefuses, testing::ValuesIn(kScalars), kName);

TEST(RunRefusesFiles, ThatAreNotSafetensors) {
  const Folder folder;
  std::ofstream(folder.file("in.safetensors")) << "hello";
  const ToolOutput ran = folder.run("run in.safetensors");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_EQ(ran.err,
            "deuce run: in.safetensors: 5 bytes are too few for a safetensors file (8 of header "
            "length first)\n");
}

// Opening a pipe waits for somebody who writes to it.
TEST(RunRefusesFiles, ThatArePipes) {
  const Folder folder;
  const ToolOutput ran = folder.shell("mkfifo pipe && timeout 20 \"$DEUCE\" run pipe");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_EQ(ran.err, "deuce run: pipe: is not a regular file\n");
}

TEST(RunRefusesFiles, ThatHaveNoName) {
  const Folder folder;
  for (const char* arguments :
       {"run ''", "run in.safetensors --out ''", "bench --save ''", "bench --trace ''",
        "bench figure9 --out ''", "bench plot ''", "trace --out ''"}) {
    const ToolOutput ran = folder.run(arguments);
    EXPECT_EQ(ran.exit_code, 2) << arguments;
    EXPECT_EQ(ran.out, "") << arguments;
    EXPECT_NE(ran.err.find("empty"), std::string::npos) << arguments << ": " << ran.err;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

TEST(RunRefusesFiles, ThatWouldOverwriteTheInput) {
  const Folder folder;
  Step step;
  step.draw(1);
  step_file(step, {}).write(folder.file("in.safetensors"));
  const std::string before = file_text(folder.file("in.safetensors"));
  const ToolOutput ran =
      folder.run("run in.safetensors --out ./in.safetensors --backend reference");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_EQ(ran.err, "deuce run: --out: ./in.safetensors is the input file\n");
  EXPECT_EQ(file_text(folder.file("in.safetensors")), before);
}

TEST(RunRefusesFiles, ThatCannotBeWritten) {
  const Folder folder;
  Step step;
  step.draw(1);
  step_file(step, {}).write(folder.file("in.safetensors"));
  const ToolOutput ran =
      folder.run("run in.safetensors --backend reference --out nowhere/out.safetensors");
  EXPECT_EQ(ran.exit_code, 5);
  EXPECT_EQ(ran.err,
            "deuce run: nowhere/out.safetensors: cannot be created: No such file or directory\n");
}

TEST(RunRefusesOutput, ThatNobodyCanRead) {
  const Folder folder;
  const ToolOutput ran = folder.shell("\"$DEUCE\" --help >/dev/full; echo exit $?");
  EXPECT_EQ(ran.out, "exit 5\n");
  EXPECT_EQ(ran.err, "deuce: standard output cannot be written\n");
}

}  // namespace
}  // namespace deuce::cli
