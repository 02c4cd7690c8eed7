// SPDX-License-Identifier: Apache-2.0
// Every rule about a config field: the value just outside it, the status, the field named and the
// sentence. The sentences are part of the interface; change one here on purpose or not at all.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "api/sample.h"

namespace deuce_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Refusal {
  const char* name;
  void (*spoil)(deuce_decode_config&);
  deuce_status status;
  const char* field;
  const char* sentence;
};

void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

class ConfigRefusal : public testing::TestWithParam<Refusal> {};

TEST_P(ConfigRefusal, NamesFieldValueAndRule) {
  Sample sample(DEUCE_BACKEND_REFERENCE);
  ASSERT_EQ(deuce_decode_check(&sample.config), DEUCE_OK) << deuce_last_error();
  GetParam().spoil(sample.config);

  deuce_decode_plan plan = nullptr;
  std::size_t bytes = 77, control_bytes = 78;
  Workspace workspace(256);
  const deuce_status statuses[]{
      deuce_decode_check(&sample.config),
      deuce_decode_workspace_size(&sample.config, &bytes, &control_bytes),
      deuce_decode_workspace_init(&sample.config, workspace.data(), workspace.size(), nullptr),
      deuce_decode_plan_create(&sample.config, &plan)};
  for (const deuce_status status : statuses) EXPECT_EQ(status, GetParam().status);
  EXPECT_STREQ(deuce_last_error(), GetParam().sentence);
  EXPECT_STREQ(deuce_last_error_field(), GetParam().field);
  EXPECT_EQ(plan, nullptr);
  EXPECT_EQ(bytes, 77U);
  EXPECT_EQ(control_bytes, 78U);
}

const Refusal kRefusals[] = {
    {"flags_unknown", [](auto& c) { c.flags = 0x18; }, DEUCE_INVALID_ARGUMENT, "flags",
     "flags has unknown bits 0x18: the known ones are 0x7"},
    {"flags_pdl_alone", [](auto& c) { c.flags = DEUCE_FLAG_PDL; }, DEUCE_INVALID_ARGUMENT, "flags",
     "flags has DEUCE_FLAG_PDL without DEUCE_FLAG_WORKSPACE_KEPT: clearing the workspace would "
     "stand between the two kernels"},
    {"backend_6", [](auto& c) { c.backend = 6; }, DEUCE_INVALID_ARGUMENT, "backend",
     "backend is 6: it must be one of DEUCE_BACKEND_*, 0 .. 5"},
    {"backend_negative", [](auto& c) { c.backend = -1; }, DEUCE_INVALID_ARGUMENT, "backend",
     "backend is -1: it must be one of DEUCE_BACKEND_*, 0 .. 5"},
    {"emulated_cpu",
     [](auto& c) {
       c.backend = DEUCE_BACKEND_EMULATOR;
       c.emulated_backend = DEUCE_BACKEND_CPU;
     },
     DEUCE_INVALID_ARGUMENT, "emulated_backend",
     "emulated_backend is 1: it must be 0, DEUCE_BACKEND_HOPPER (2) or DEUCE_BACKEND_BLACKWELL "
     "(3)"},
    {"emulated_without_emulator", [](auto& c) { c.emulated_backend = DEUCE_BACKEND_HOPPER; },
     DEUCE_INVALID_ARGUMENT, "emulated_backend",
     "emulated_backend is 2 but backend is reference: only emulator has it"},
    {"seed_without_emulator", [](auto& c) { c.emulator_seed = 9; }, DEUCE_INVALID_ARGUMENT,
     "emulator_seed", "emulator_seed is 9 but backend is reference: only emulator has it"},
    {"device_type_3", [](auto& c) { c.device_type = 3; }, DEUCE_INVALID_ARGUMENT, "device_type",
     "device_type is 3: it must be 0 (implied by backend), 1 (CPU) or 2 (CUDA)"},
    {"device_type_cuda_on_host_backend", [](auto& c) { c.device_type = 2; }, DEUCE_INVALID_ARGUMENT,
     "device_type", "device_type is 2 (CUDA) but backend reference works on CPU memory"},
    {"device_type_cpu_on_gpu_backend",
     [](auto& c) {
       c.backend = DEUCE_BACKEND_HOPPER;
       c.device_type = 1;
     },
     DEUCE_INVALID_ARGUMENT, "device_type",
     "device_type is 1 (CPU) but backend hopper works on CUDA memory"},
    {"device_id_below", [](auto& c) { c.device_id = -2; }, DEUCE_INVALID_ARGUMENT, "device_id",
     "device_id is -2: it must be -1 (current device) or a device number"},
    {"device_id_of_host", [](auto& c) { c.device_id = 1; }, DEUCE_INVALID_ARGUMENT, "device_id",
     "device_id is 1: host memory has device 0 only"},
    {"q_heads_zero", [](auto& c) { c.num_q_heads = 0; }, DEUCE_INVALID_ARGUMENT, "num_q_heads",
     "num_q_heads is 0: it must be in 1 .. 1048576"},
    {"q_heads_above", [](auto& c) { c.num_q_heads = (1 << 20) + 1; }, DEUCE_INVALID_ARGUMENT,
     "num_q_heads", "num_q_heads is 1048577: it must be in 1 .. 1048576"},
    {"kv_heads_zero", [](auto& c) { c.num_kv_heads = 0; }, DEUCE_INVALID_ARGUMENT, "num_kv_heads",
     "num_kv_heads is 0: it must be in 1 .. 1048576"},
    {"heads_not_dividing",
     [](auto& c) {
       c.num_q_heads = 33;
       c.num_kv_heads = 2;
     },
     DEUCE_INVALID_ARGUMENT, "num_q_heads",
     "num_q_heads is 33: it must be a multiple of num_kv_heads, 2"},
    {"more_kv_heads_than_q_heads", [](auto& c) { c.num_kv_heads = 8; }, DEUCE_INVALID_ARGUMENT,
     "num_q_heads", "num_q_heads is 4: it must be a multiple of num_kv_heads, 8"},
    {"head_dim_qk_zero", [](auto& c) { c.head_dim_qk = 0; }, DEUCE_INVALID_ARGUMENT, "head_dim_qk",
     "head_dim_qk is 0: it must be in 1 .. 4096"},
    {"head_dim_v_negative", [](auto& c) { c.head_dim_v = -64; }, DEUCE_INVALID_ARGUMENT,
     "head_dim_v", "head_dim_v is -64: it must be in 1 .. 4096"},
    {"q_dtype_missing", [](auto& c) { c.q_dtype = 0; }, DEUCE_INVALID_ARGUMENT, "q_dtype",
     "q_dtype is 0: it must be DEUCE_F32 (1), F16 (2), BF16 (3), E4M3 (4) or E5M2 (5)"},
    {"kv_dtype_unknown", [](auto& c) { c.kv_dtype = 6; }, DEUCE_INVALID_ARGUMENT, "kv_dtype",
     "kv_dtype is 6: it must be DEUCE_F32 (1), F16 (2), BF16 (3), E4M3 (4) or E5M2 (5)"},
    {"out_dtype_unknown", [](auto& c) { c.out_dtype = 9; }, DEUCE_INVALID_ARGUMENT, "out_dtype",
     "out_dtype is 9: it must be 0 (default), DEUCE_F32 (1), F16 (2), BF16 (3), E4M3 (4) or E5M2 "
     "(5)"},
    {"out_dtype_fp8", [](auto& c) { c.out_dtype = DEUCE_E4M3; }, DEUCE_UNSUPPORTED, "out_dtype",
     "out_dtype is e4m3: no backend has fp8 there; take f32, f16 or bf16"},
    {"sink_dtype_unknown", [](auto& c) { c.sink_dtype = -3; }, DEUCE_INVALID_ARGUMENT, "sink_dtype",
     "sink_dtype is -3: it must be 0 (default), DEUCE_F32 (1), F16 (2), BF16 (3), E4M3 (4) or E5M2 "
     "(5)"},
    {"sink_dtype_fp8", [](auto& c) { c.sink_dtype = DEUCE_E5M2; }, DEUCE_UNSUPPORTED, "sink_dtype",
     "sink_dtype is e5m2: no backend has fp8 there; take f32, f16 or bf16"},
    {"page_size_negative", [](auto& c) { c.page_size = -1; }, DEUCE_INVALID_ARGUMENT, "page_size",
     "page_size is -1: it must be in 0 .. 16777216"},
    {"max_batch_zero", [](auto& c) { c.max_batch = 0; }, DEUCE_INVALID_ARGUMENT, "max_batch",
     "max_batch is 0: it must be in 1 .. 16777216"},
    {"max_q_len_zero", [](auto& c) { c.max_q_len = 0; }, DEUCE_INVALID_ARGUMENT, "max_q_len",
     "max_q_len is 0: it must be in 1 .. 1048576"},
    {"causal_2", [](auto& c) { c.causal = 2; }, DEUCE_INVALID_ARGUMENT, "causal",
     "causal is 2: it must be in 0 .. 1"},
    {"max_kv_len_zero", [](auto& c) { c.max_kv_len = 0; }, DEUCE_INVALID_ARGUMENT, "max_kv_len",
     "max_kv_len is 0: it must be in 1 .. 2147483647"},
    {"max_kv_len_above", [](auto& c) { c.max_kv_len = int64_t{1} << 31; }, DEUCE_INVALID_ARGUMENT,
     "max_kv_len", "max_kv_len is 2147483648: it must be in 1 .. 2147483647"},
    {"window_left_below", [](auto& c) { c.window_left = -2; }, DEUCE_INVALID_ARGUMENT,
     "window_left", "window_left is -2: it must be -1 (open) or a count of keys, 0 or more"},
    {"window_right_below", [](auto& c) { c.window_right = std::numeric_limits<int32_t>::min(); },
     DEUCE_INVALID_ARGUMENT, "window_right",
     "window_right is -2147483648: it must be -1 (open) or a count of keys, 0 or more"},
    {"softmax_scale_nan", [](auto& c) { c.softmax_scale = kNan; }, DEUCE_INVALID_ARGUMENT,
     "softmax_scale", "softmax_scale is nan: it must be finite, or 0 for 1 / sqrt(head_dim_qk)"},
    {"softmax_scale_infinite", [](auto& c) { c.softmax_scale = -kInfinity; },
     DEUCE_INVALID_ARGUMENT, "softmax_scale",
     "softmax_scale is -inf: it must be finite, or 0 for 1 / sqrt(head_dim_qk)"},
    {"softmax_scale_that_overflows_in_log2", [](auto& c) { c.softmax_scale = 2.4e38F; },
     DEUCE_INVALID_ARGUMENT, "softmax_scale",
     "softmax_scale is 2.4e+38: scores are then multiplied by 2.4e+38, outside what "
     "fp32 holds in log2 units, 1.4e-45 to 2.35e38"},
    {"softcap_that_overflows_in_log2", [](auto& c) { c.softcap = 2.4e38F; }, DEUCE_INVALID_ARGUMENT,
     "softcap",
     "softcap is 2.4e+38: it must be below 2.35e38, as scores times log2(e) must be finite in "
     "fp32"},
    {"softcap_that_scores_vanish_in", [](auto& c) { c.softcap = 2.3e38F; }, DEUCE_INVALID_ARGUMENT,
     "softcap",
     "softcap is 2.3e+38: 0.25, the factor of scores, divided by it is 1.08696e-39: fp32 must hold "
     "this as a normal number"},
    {"softcap_that_scores_overflow_in",
     [](auto& c) {
       c.softcap = 1e-38F;
       c.softmax_scale = 10;
     },
     DEUCE_INVALID_ARGUMENT, "softcap",
     "softcap is 1e-38: 10, the factor of scores, divided by it is inf: fp32 must hold this as a "
     "normal number"},
    {"softcap_negative", [](auto& c) { c.softcap = -30; }, DEUCE_INVALID_ARGUMENT, "softcap",
     "softcap is -30: it must be 0 (off) or positive and finite"},
    {"softcap_nan", [](auto& c) { c.softcap = kNan; }, DEUCE_INVALID_ARGUMENT, "softcap",
     "softcap is nan: it must be 0 (off) or positive and finite"},
    {"lse_base_10", [](auto& c) { c.lse_base = 10; }, DEUCE_INVALID_ARGUMENT, "lse_base",
     "lse_base is 10: it must be 0 (natural) or 2"},
    {"num_splits_negative", [](auto& c) { c.num_splits = -1; }, DEUCE_INVALID_ARGUMENT,
     "num_splits", "num_splits is -1: it must be in 0 .. 256"},
    {"rows_above",
     [](auto& c) {
       c.num_q_heads = 1 << 20;
       c.num_kv_heads = 1;
       c.max_q_len = 1 << 20;
     },
     DEUCE_UNSUPPORTED, "max_q_len",
     "max_q_len is 1048576: with 1048576 query heads a KV head that is more than the 2147483647 "
     "rows that a request may have"},
    {"parts_above",
     [](auto& c) {
       c.num_q_heads = c.num_kv_heads = 1 << 20;
       c.max_batch = 1 << 24;
       c.max_q_len = 1;
       c.num_splits = 256;
     },
     DEUCE_UNSUPPORTED, "num_splits",
     "num_splits is 256: with max_batch 16777216, 1048576 KV heads and 1 rows that is more than "
     "the 1099511627776 parts that a workspace may hold"},
    {"num_splits_above", [](auto& c) { c.num_splits = 257; }, DEUCE_INVALID_ARGUMENT, "num_splits",
     "num_splits is 257: it must be in 0 .. 256"},
    {"split_kv_len_odd", [](auto& c) { c.split_kv_len = 200; }, DEUCE_INVALID_ARGUMENT,
     "split_kv_len", "split_kv_len is 200: it must be 0 or a multiple of 128"},
    {"split_kv_len_negative", [](auto& c) { c.split_kv_len = -128; }, DEUCE_INVALID_ARGUMENT,
     "split_kv_len", "split_kv_len is -128: it must be 0 or a multiple of 128"},
    {"both_splits",
     [](auto& c) {
       c.num_splits = 2;
       c.split_kv_len = 256;
     },
     DEUCE_INVALID_ARGUMENT, "split_kv_len",
     "split_kv_len is 256 and num_splits is 2: give one of them"},
    {"score_slots_above", [](auto& c) { c.score_slots = 4; }, DEUCE_INVALID_ARGUMENT, "score_slots",
     "score_slots is 4: it must be in 0 .. 3"},
    {"sm_margin_negative", [](auto& c) { c.sm_margin = -1; }, DEUCE_INVALID_ARGUMENT, "sm_margin",
     "sm_margin is -1: it must be 0 or more"},
    {"row_replicas_3", [](auto& c) { c.row_replicas = 3; }, DEUCE_INVALID_ARGUMENT, "row_replicas",
     "row_replicas is 3: it must be 0 (choose), 1, 2 or 4"},
};

std::string test_name(const testing::TestParamInfo<Refusal>& row) { return row.param.name; }

INSTANTIATE_TEST_SUITE_P(Api, ConfigRefusal, testing::ValuesIn(kRefusals), test_name);

TEST(Config, NullIsRefusedByEveryFunctionThatTakesOne) {
  std::size_t bytes = 0;
  deuce_decode_plan plan = nullptr;
  const deuce_status statuses[]{deuce_decode_check(nullptr),
                                deuce_decode_workspace_size(nullptr, &bytes, nullptr),
                                deuce_decode_workspace_init(nullptr, &bytes, 8, nullptr),
                                deuce_decode_plan_create(nullptr, &plan)};
  for (const deuce_status status : statuses) EXPECT_EQ(status, DEUCE_INVALID_ARGUMENT);
  EXPECT_STREQ(deuce_last_error(), "config is null");
  EXPECT_STREQ(deuce_last_error_field(), "config");
}

TEST(Config, NullOutputsAreRefused) {
  const Sample sample(DEUCE_BACKEND_REFERENCE);
  EXPECT_EQ(deuce_decode_plan_create(&sample.config, nullptr), DEUCE_INVALID_ARGUMENT);
  EXPECT_STREQ(deuce_last_error(), "plan is null");
  EXPECT_EQ(deuce_decode_workspace_size(&sample.config, nullptr, nullptr), DEUCE_INVALID_ARGUMENT);
  EXPECT_STREQ(deuce_last_error(), "bytes is null");
}

// The emulator checks what the blackwell backend checks; no GPU is needed.
TEST(Config, TheBlackwellKernelRefusesTypesByTheirNames) {
  Sample sample(DEUCE_BACKEND_REFERENCE);
  sample.config.backend = DEUCE_BACKEND_EMULATOR;
  sample.config.head_dim_qk = sample.config.head_dim_v = 64;
  sample.config.q_dtype = sample.config.kv_dtype = sample.config.out_dtype = DEUCE_BF16;
  if (deuce_decode_check(&sample.config) != DEUCE_OK) GTEST_SKIP() << deuce_last_error();
  const auto expect = [&](const char* sentence) {
    EXPECT_EQ(deuce_decode_check(&sample.config), DEUCE_UNSUPPORTED);
    EXPECT_STREQ(deuce_last_error(), sentence);
  };
  sample.config.kv_dtype = DEUCE_E4M3;
  expect("kv_dtype is e4m3: blackwell takes f16 or bf16");
  sample.config.kv_dtype = DEUCE_F16;
  expect("q_dtype is bf16: blackwell takes the type of the cache");
  sample.config.q_dtype = DEUCE_F16;
  expect("out_dtype is bf16: blackwell writes the type of q");
}

TEST(Config, TheEmulatedHopperKernelRefusesWhatTheHopperBackendRefuses) {
  Sample sample(DEUCE_BACKEND_REFERENCE);
  sample.config.backend = DEUCE_BACKEND_EMULATOR;
  sample.config.emulated_backend = DEUCE_BACKEND_HOPPER;
  sample.config.head_dim_qk = sample.config.head_dim_v = 64;
  sample.config.q_dtype = sample.config.out_dtype = DEUCE_BF16;
  sample.config.kv_dtype = DEUCE_E4M3;
  if (deuce_decode_check(&sample.config) != DEUCE_OK) GTEST_SKIP() << deuce_last_error();
  const auto expect = [&](const char* sentence) {
    EXPECT_EQ(deuce_decode_check(&sample.config), DEUCE_UNSUPPORTED);
    EXPECT_STREQ(deuce_last_error(), sentence);
  };
  sample.config.score_slots = 2;
  expect(
      "score_slots is 2: hopper takes 0 and 1, and 2 with more than 16 rows of a KV head and a "
      "16-bit cache");
  sample.config.score_slots = 0;
  sample.config.kv_dtype = DEUCE_F16;
  expect("kv_dtype is f16: hopper takes the type of q (bf16) and e4m3");
  sample.config.kv_dtype = DEUCE_BF16;
  sample.config.head_dim_qk = sample.config.head_dim_v = 32;
  expect("head_dim_qk is 32 and head_dim_v 32: hopper takes 64 and 128, both the same");
}

TEST(Config, EveryLegalEdgeIsAccepted) {
  const auto accepts = [](auto change) {
    Sample sample(DEUCE_BACKEND_REFERENCE);
    change(sample.config);
    EXPECT_EQ(deuce_decode_check(&sample.config), DEUCE_OK) << deuce_last_error();
  };
  accepts([](auto& c) { c.window_left = std::numeric_limits<int32_t>::max(); });
  accepts([](auto& c) { c.window_left = c.window_right = 0; });
  accepts([](auto& c) { c.softmax_scale = -1.3F; });
  accepts([](auto& c) { c.softmax_scale = -2.35e38F; });
  accepts([](auto& c) { c.softmax_scale = std::numeric_limits<float>::denorm_min(); });
  accepts([](auto& c) {
    c.softmax_scale = 4;
    c.softcap = 2.35e38F;
  });
  accepts([](auto& c) { c.num_splits = 256; });
  accepts([](auto& c) { c.split_kv_len = 128; });
  accepts([](auto& c) { c.device_id = 0; });
  accepts([](auto& c) { c.device_type = 1; });
  accepts([](auto& c) { c.page_size = 1; });
  accepts([](auto& c) { c.flags = DEUCE_FLAG_WORKSPACE_KEPT; });
  accepts([](auto& c) {
    c.num_q_heads = 71;
    c.num_kv_heads = 1;
  });
}

}  // namespace
}  // namespace deuce_test
