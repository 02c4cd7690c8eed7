// SPDX-License-Identifier: Apache-2.0
// What explain says, why the other backends were not taken, and the three environment variables.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "api/fake_plan.h"

namespace deuce_test {
namespace {

// A variable of the environment for the length of a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

nlohmann::json explained(const deuce_decode_config& config,
                         const deuce_decode_args* args = nullptr) {
  return nlohmann::json::parse(deuce::DecodePlan(config).explain(args));
}

std::string reason(const nlohmann::json& text, const std::string& backend) {
  for (const auto& entry : text["not_taken"]) {
    if (entry["backend"] == backend) return entry["reason"];
  }
  return "(no entry)";
}

TEST(Explain, SaysWhatWasTakenAndWhyTheOthersWereNot) {
  Sample sample(DEUCE_BACKEND_REFERENCE);
  const nlohmann::json text = explained(sample.config);
  EXPECT_EQ(text["version"], DEUCE_VERSION);
  EXPECT_EQ(text["backend"], "reference");
  EXPECT_EQ(text["chosen_by"], "request");
  EXPECT_TRUE(text["environment"].empty());
  EXPECT_TRUE(text["kernel"].is_object());
  std::size_t bytes = 0, control_bytes = 0;
  ASSERT_EQ(deuce_decode_workspace_size(&sample.config, &bytes, &control_bytes), DEUCE_OK);
  EXPECT_EQ(text["workspace"]["bytes"], bytes);
  EXPECT_EQ(text["workspace"]["control_bytes"], control_bytes);
  EXPECT_EQ(text["not_taken"].size(), 4U);
  for (const char* gpu : {"hopper", "blackwell"}) {
    const std::string why = reason(text, gpu);
    EXPECT_TRUE(why == "not in this library" || why == "works on CUDA memory, device_type is CPU")
        << why;
  }
}

// Callers take max_q_len from the batch; under fixed borders no bit may depend on it, and the
// number of row replicas changes bits.
TEST(Explain, FixedBordersKeepTheReplicasWhateverMaxQLenIs) {
  Sample sample(DEUCE_BACKEND_EMULATOR);
  deuce_decode_config& config = sample.config;
  config.head_dim_qk = config.head_dim_v = 64;
  config.q_dtype = config.kv_dtype = config.out_dtype = DEUCE_BF16;
  config.num_q_heads = 8;
  config.num_kv_heads = 1;
  for (const int32_t max_q_len : {1, 4, 8, 20}) {
    config.max_q_len = max_q_len;
    config.split_kv_len = 0;
    EXPECT_EQ(explained(config)["kernel"]["row_replicas"], max_q_len <= 4   ? 4
                                                           : max_q_len <= 8 ? 2
                                                                            : 1);
    config.split_kv_len = 128;
    EXPECT_EQ(explained(config)["kernel"]["row_replicas"], 1);
  }
}

TEST(Explain, WithArgumentsAlsoAnswers) {
  Sample sample(DEUCE_BACKEND_REFERENCE);
  EXPECT_EQ(explained(sample.config, &sample.args)["backend"], "reference");
}

TEST(Explain, RefusesArgumentsThatRunWouldRefuse) {
  Sample sample(DEUCE_BACKEND_REFERENCE);
  const deuce::DecodePlan plan(sample.config);
  std::size_t bytes = 0;
  sample.kv_len[0] = -4;
  EXPECT_EQ(deuce_decode_explain(plan.handle(), &sample.args, nullptr, &bytes),
            DEUCE_INVALID_ARGUMENT);
  EXPECT_STREQ(deuce_last_error_field(), "kv_len");
  sample.args.batch = 99;
  EXPECT_EQ(deuce_decode_explain(plan.handle(), &sample.args, nullptr, &bytes),
            DEUCE_INVALID_ARGUMENT);
  EXPECT_STREQ(deuce_last_error_field(), "batch");
}

TEST(Explain, NeedsExactlyTheBytesItNames) {
  const Sample sample(DEUCE_BACKEND_REFERENCE);
  const deuce::DecodePlan plan(sample.config);
  std::size_t bytes = 0;
  ASSERT_EQ(deuce_decode_explain(plan.handle(), nullptr, nullptr, &bytes), DEUCE_OK);
  std::vector<char> text(bytes, '#');
  std::size_t room = bytes - 1;
  EXPECT_EQ(deuce_decode_explain(plan.handle(), nullptr, text.data(), &room),
            DEUCE_WORKSPACE_TOO_SMALL);
  EXPECT_EQ(deuce_last_error(), "text has room for " + std::to_string(bytes - 1) +
                                    " bytes: " + std::to_string(bytes) + " are needed");
  EXPECT_EQ(room, bytes);
  EXPECT_EQ(text.front(), '#');
  EXPECT_EQ(deuce_decode_explain(plan.handle(), nullptr, text.data(), &room), DEUCE_OK);
  EXPECT_EQ(text.back(), '\0');
}

TEST(Choice, BackendsOutsideTheLibraryAreNamedWithThoseInIt) {
  for (const int backend :
       {DEUCE_BACKEND_CPU, DEUCE_BACKEND_HOPPER, DEUCE_BACKEND_BLACKWELL, DEUCE_BACKEND_EMULATOR}) {
    if (deuce::find_backend(deuce::Backend{backend}) != nullptr) continue;
    Sample sample(backend);
    const bool gpu = backend == DEUCE_BACKEND_HOPPER || backend == DEUCE_BACKEND_BLACKWELL;
    EXPECT_EQ(deuce_decode_check(&sample.config), gpu ? DEUCE_NO_DEVICE : DEUCE_UNSUPPORTED);
    EXPECT_EQ(deuce_last_error(), "backend " + backend_name(backend) +
                                      " is not in this library, which has " +
                                      deuce::backend_list());
    EXPECT_STREQ(deuce_last_error_field(), "backend");
  }
}

TEST(Choice, CudaMemoryNeverFallsBackToAHostBackend) {
  if (deuce::find_backend(deuce::Backend::hopper) != nullptr ||
      deuce::find_backend(deuce::Backend::blackwell) != nullptr) {
    GTEST_SKIP() << "this library has a GPU backend; its own tests cover the choice";
  }
  Sample sample(DEUCE_BACKEND_AUTO);
  sample.config.device_type = 2;
  EXPECT_EQ(deuce_decode_check(&sample.config), DEUCE_NO_DEVICE);
  EXPECT_EQ(deuce_last_error(), "device_type is 2 (CUDA): this library has no GPU backend, only " +
                                    deuce::backend_list());
  EXPECT_STREQ(deuce_last_error_field(), "device_type");
}

TEST(Environment, BackendFillsInForAutoOnly) {
  const Variable variable("DEUCE_BACKEND", "reference");
  Sample sample(DEUCE_BACKEND_AUTO);
  const nlohmann::json text = explained(sample.config);
  EXPECT_EQ(text["backend"], "reference");
  EXPECT_EQ(text["environment"].size(), 1U);
  EXPECT_EQ(text["environment"][0]["variable"], "DEUCE_BACKEND");
  EXPECT_EQ(text["environment"][0]["value"], "reference");
  EXPECT_EQ(text["environment"][0]["field"], "backend");

  sample.config.backend = 6;  // the caller's value wins, so it is this one that is refused
  EXPECT_EQ(deuce_decode_check(&sample.config), DEUCE_INVALID_ARGUMENT);
  EXPECT_STREQ(deuce_last_error_field(), "backend");
}

TEST(Environment, SplitLengthFillsInUnlessTheCallerChoseSplits) {
  const Variable variable("DEUCE_SPLIT_KV_LEN", "256");
  Sample sample(DEUCE_BACKEND_REFERENCE);
  EXPECT_EQ(explained(sample.config)["environment"][0]["variable"], "DEUCE_SPLIT_KV_LEN");
  sample.config.num_splits = 2;
  EXPECT_TRUE(explained(sample.config)["environment"].empty());
  sample.config.num_splits = 0;
  sample.config.split_kv_len = 128;
  EXPECT_TRUE(explained(sample.config)["environment"].empty());
}

TEST(Environment, ScoreSlotsAreHeldToTheSameRulesAsTheField) {
  Sample sample(DEUCE_BACKEND_REFERENCE);
  {
    const Variable variable("DEUCE_SCORE_SLOTS", "1");
    EXPECT_EQ(explained(sample.config)["environment"][0]["field"], "score_slots");
  }
  const Variable variable("DEUCE_SCORE_SLOTS", "2");
  EXPECT_EQ(deuce_decode_check(&sample.config), DEUCE_UNSUPPORTED);
  EXPECT_STREQ(deuce_last_error_field(), "score_slots");
  sample.config.score_slots = 1;
  EXPECT_EQ(deuce_decode_check(&sample.config), DEUCE_OK) << deuce_last_error();
}

TEST(Environment, UnreadableValuesAreRefusedByName) {
  Sample sample(DEUCE_BACKEND_AUTO);
  const auto refuses = [&](const char* name, const char* value, const char* sentence) {
    const Variable variable(name, value);
    EXPECT_EQ(deuce_decode_check(&sample.config), DEUCE_INVALID_ARGUMENT);
    EXPECT_STREQ(deuce_last_error(), sentence);
    EXPECT_STREQ(deuce_last_error_field(), name);
  };
  refuses("DEUCE_BACKEND", "gpu",
          "environment variable DEUCE_BACKEND is 'gpu': it takes auto, cpu, hopper, blackwell, "
          "emulator or reference");
  refuses("DEUCE_SCORE_SLOTS", "two",
          "environment variable DEUCE_SCORE_SLOTS is 'two': it takes a whole number from 0 on");
  refuses("DEUCE_SPLIT_KV_LEN", "128k",
          "environment variable DEUCE_SPLIT_KV_LEN is '128k': it takes a whole number from 0 on");
}

TEST(Environment, EmptyCountsAsUnset) {
  const Variable variable("DEUCE_BACKEND", "");
  const Sample sample(DEUCE_BACKEND_REFERENCE);
  EXPECT_TRUE(explained(sample.config)["environment"].empty());
}

}  // namespace
}  // namespace deuce_test
