// SPDX-License-Identifier: Apache-2.0
// `deuce run` end to end: every tensor style, every scalar, on every backend of this build that
// computes on the host. Expected values come from step.cpp alone.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "cli/step.h"
#include "cli/tool.h"
#include "run_report.h"

namespace deuce::cli {
namespace {

std::vector<float> floats(const io::TensorView& tensor) {
  std::vector<float> values(tensor.bytes / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), tensor.data, tensor.bytes);
  return values;
}

void expect_near(const std::vector<float>& found, const std::vector<double>& expected,
                 const char* what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isinf(expected[i])) {
      EXPECT_EQ(found[i], static_cast<float>(expected[i])) << what << " element " << i;
    } else {
      EXPECT_NEAR(found[i], expected[i], 2e-6 * (1 + std::fabs(expected[i])))
          << what << " element " << i;
    }
  }
}

class RunTool : public testing::TestWithParam<const char*> {
 protected:
  /// Runs the file with f32 output and compares out and lse with the exact result of `step`.
  void expect_result(const StepFile& file, const Step& step, const std::string& flags = "") {
    file.write(folder_.file("in.safetensors"));
    const ToolOutput ran = folder_.run(
        std::string("run in.safetensors --out out.safetensors --out-dtype f32 --check --backend ") +
        GetParam() + " " + flags);
    ASSERT_EQ(ran.exit_code, 0) << ran.err << ran.out;
    const auto written = io::SafetensorsFile::open(folder_.file("out.safetensors"));
    ASSERT_TRUE(written.ok()) << written.status().sentence();
    const StepResult expected = exact(step);
    const io::TensorView& out = *written.value().find("out");
    const io::TensorView& lse = *written.value().find("lse");
    EXPECT_EQ(out.shape, (std::vector<int64_t>{step.tokens(), step.q_heads, step.head_dim}));
    EXPECT_EQ(lse.shape, (std::vector<int64_t>{step.tokens(), step.q_heads}));
    expect_near(floats(out), expected.out, "out");
    expect_near(floats(lse), expected.lse, "lse");
    EXPECT_EQ(written.value().metadata().at("backend"), GetParam());
    EXPECT_EQ(written.value().metadata().at("lse_base"), step.lse_base2 ? "2" : "natural");
  }

  /// A step with its usual metadata.
  static Step drawn(unsigned seed) {
    Step step;
    step.draw(seed);
    return step;
  }
  static StepFile paged(const Step& step) {
    StepFile file = step_file(step, {});
    file.metadata["softmax_scale"] = "0.25";
    return file;
  }

  Folder folder_;
};

TEST_P(RunTool, TakesEveryCacheStyle) {
  const Step step = drawn(1);
  const CacheStyle styles[] = {
      {.page_size = 4},
      {.page_size = 1},
      {.page_size = 32},
      {.page_size = 4, .hnd = true},
      {.page_size = 4, .wide_indices = true},
      {.page_size = 4, .kv_start = 3},
      {.page_size = 4, .indptr = true},
      {.page_size = 4, .indptr = true, .wide_indices = true},
      {.page_size = 0},
      {.page_size = 0, .hnd = true},
      {.page_size = 0, .cache_row = true},
      {.page_size = 0, .kv_start = 2},
  };
  for (const CacheStyle& style : styles) {
    SCOPED_TRACE(testing::Message() << "style " << &style - styles);
    expect_result(step_file(step, style), step, "--softmax-scale 0.25");
  }
}

TEST_P(RunTool, TakesEveryTypeOfTensor) {
  for (const auto type :
       {io::TensorType::f16, io::TensorType::bf16, io::TensorType::e4m3, io::TensorType::e5m2}) {
    Step step;
    step.draw(2, /*coarse=*/true);
    if (type == io::TensorType::e5m2) {  // two mantissa bits: quarters
      for (auto* tensor : {&step.k, &step.v}) {
        for (auto& request : *tensor) {
          for (float& value : request) value = std::round(value * 4) / 4;
        }
      }
    }
    SCOPED_TRACE(io::tensor_type_name(type));
    expect_result(step_file(step, {.kv_type = type}), step, "--softmax-scale 0.25");
  }
}

TEST_P(RunTool, TakesACacheWithoutLengthsAsFull) {
  Step step;
  step.kv_lens = {6, 6, 6};
  step.draw(3);
  StepFile file;
  file.add("q", io::TensorType::f32, {3, 4, 16}, step.q);
  for (const auto& [name, from] : {std::pair{"k", &step.k}, {"v", &step.v}}) {
    std::vector<float> rows;
    for (const auto& request : *from) rows.insert(rows.end(), request.begin(), request.end());
    file.add(name, io::TensorType::f32, {3, 6, 2, 16}, rows);
  }
  expect_result(file, step, "--softmax-scale 0.25");
}

TEST_P(RunTool, TakesSeveralTokensPerRequest) {
  Step step;
  step.q_lens = {2, 2, 2};
  step.causal = true;
  step.draw(4);
  StepFile file = paged(step);
  file.metadata["causal"] = "true";
  expect_result(file, step);
}

TEST_P(RunTool, TakesRaggedTokens) {
  Step step;
  step.q_lens = {3, 0, 4};
  step.causal = true;
  step.draw(5);
  StepFile file = paged(step);
  file.metadata["causal"] = "1";
  file.add_indices("cu_q_len", {0, 3, 3, 7});
  expect_result(file, step);
}

TEST_P(RunTool, AppliesEveryScalarOfTheMetadata) {
  Step step;
  step.q_lens = {2, 2, 2};
  step.window_left = 3;
  step.window_right = 0;
  step.softcap = 0.5;
  step.score_scale = 1.5;
  step.out_scale = -2;
  step.lse_base2 = true;
  step.draw(6);
  StepFile file = paged(step);
  file.metadata.insert({{"window_left", "3"},
                        {"window_right", "0"},
                        {"softcap", "0.5"},
                        {"score_scale", "1.5"},
                        {"out_scale", "-2"},
                        {"lse_base", "2"},
                        {"model", "none"},
                        {"layer", "3"}});
  expect_result(file, step);
}

TEST_P(RunTool, LetsFlagsWinOverTheMetadata) {
  Step step;
  step.q_lens = {2, 2, 2};
  step.window_left = 4;
  step.draw(7);
  StepFile file = paged(step);
  file.metadata = {{"softmax_scale", "9"},
                   {"causal", "true"},
                   {"window_left", "0"},
                   {"softcap", "1"},
                   {"lse_base", "2"}};
  expect_result(file, step,
                "--softmax-scale 0.25 --no-causal --window-left 4 --softcap 0 --lse-base natural");
}

TEST_P(RunTool, AddsSinks) {
  for (const auto type : {io::TensorType::f32, io::TensorType::bf16, io::TensorType::f16}) {
    Step step = drawn(8);
    step.sink = {-1, 0, 0.5, 2};
    StepFile file = paged(step);
    file.add("sink", type, {4}, step.sink);
    expect_result(file, step);
  }
}

TEST_P(RunTool, AppliesScalesInEveryShape) {
  struct Shape {
    std::vector<int64_t> extents;
    std::vector<float> k, v;
  };
  const Shape shapes[] = {{{}, {0.5F}, {3}},
                          {{1}, {0.5F}, {3}},
                          {{2}, {0.5F, 2}, {3, 0.75F}},
                          {{3, 2}, {1, 2, 3, 4, 5, 6}, {6, 5, 4, 3, 2, 1}}};
  for (const Shape& shape : shapes) {
    Step step;
    step.draw(9, /*coarse=*/true);
    for (int request = 0; request < 3; ++request) {
      for (std::size_t i = 0; i < step.k_scale[request].size(); ++i) {
        const std::size_t head = i % 2;
        const std::size_t at = shape.k.size() == 1   ? 0
                               : shape.k.size() == 2 ? head
                                                     : 2 * request + head;
        step.k_scale[request][i] = shape.k[at];
        step.v_scale[request][i] = shape.v[at];
      }
    }
    StepFile file = step_file(step, {.kv_type = io::TensorType::e4m3});
    file.add("k_scale", io::TensorType::f32, shape.extents, shape.k);
    file.add("v_scale", io::TensorType::f32, shape.extents, shape.v);
    SCOPED_TRACE(io::shape_text(shape.extents));
    expect_result(file, step, "--softmax-scale 0.25");
  }
}

TEST_P(RunTool, AppliesScalesPerTokenAndHead) {
  for (const bool hnd : {false, true}) {
    for (const int page : {0, 4}) {
      Step step;
      step.draw(10, /*coarse=*/true);
      for (int request = 0; request < 3; ++request) {
        for (std::size_t i = 0; i < step.k_scale[request].size(); ++i) {
          step.k_scale[request][i] = 1 + 0.125F * static_cast<float>(i % 5);
          step.v_scale[request][i] = 2 - 0.25F * static_cast<float>(i % 3);
        }
      }
      expect_result(step_file(step, {.page_size = page,
                                     .hnd = hnd,
                                     .kv_type = io::TensorType::e4m3,
                                     .token_scales = true}),
                    step, "--softmax-scale 0.25");
    }
  }
}

TEST_P(RunTool, ComputesNothingForAnEmptyBatch) {
  Step step;
  step.q_lens = {};
  step.kv_lens = {};
  step.draw(11);
  StepFile file;
  file.add("q", io::TensorType::f32, {0, 4, 16}, {});
  file.add("k", io::TensorType::f32, {0, 4, 2, 16}, {});
  file.add("v", io::TensorType::f32, {0, 4, 2, 16}, {});
  file.add_indices("kv_len", {}, {0});
  file.add_indices("block_table", {}, {0, 0});
  expect_result(file, step);
}

TEST(CheckLine, SaysHowFarOffAFailureIs) {
  reference::Verdict verdict{.ok = false, .worst_ratio = 12.5, .first_failure = "out: got 1"};
  EXPECT_EQ(check_line(verdict), "FAILED: worst error 12.5 times the tolerance; out: got 1");
  verdict.worst_ratio = std::numeric_limits<double>::infinity();
  EXPECT_EQ(check_line(verdict),
            "FAILED: NaN or infinity in place of a number, or the reverse; out: got 1");
}

INSTANTIATE_TEST_SUITE_P(Backends, RunTool, testing::Values("cpu", "reference"),
                         [](const auto& backend) { return std::string(backend.param); });

}  // namespace
}  // namespace deuce::cli
