// SPDX-License-Identifier: Apache-2.0
// No public field is accepted and ignored: changing it changes a result, or is refused by name.
// docs_test.py compares this table's names with the fields of deuce.h, so that a new field without
// a row fails. What the changed result must be is the business of the kernel tests.
#include <gtest/gtest.h>

#include <tuple>

#include "api/sample.h"

namespace deuce_test {
namespace {

enum class Effect { other_out, other_lse, refused };

struct Field {
  const char* name;
  Effect effect;
  void (*change)(Sample&);
  // Where the field acts: the cache style, fp8, and anything else the change builds on.
  Cache cache = Cache::table;
  bool fp8 = false;
  void (*prepare)(Sample&) = [](Sample&) {};
};

void PrintTo(const Field& field, std::ostream* out) { *out << field.name; }

class EveryField : public testing::TestWithParam<std::tuple<int, Field>> {};

TEST_P(EveryField, ChangesAResultOrIsRefused) {
  const auto& [backend, field] = GetParam();
  const auto prepared = [backend = backend, &field = field] {
    auto sample = std::make_unique<Sample>(backend, field.cache, field.fp8);
    field.prepare(*sample);
    return sample;
  };
  const auto before = prepared(), after = prepared();
  ASSERT_EQ(run(*before), DEUCE_OK) << deuce_last_error();
  field.change(*after);
  const deuce_status status = run(*after);
  switch (field.effect) {
    case Effect::refused:
      EXPECT_NE(status, DEUCE_OK);
      EXPECT_EQ(deuce_last_error_field(), std::string(field.name)) << deuce_last_error();
      break;
    case Effect::other_out:
      ASSERT_EQ(status, DEUCE_OK) << deuce_last_error();
      EXPECT_NE(before->out, after->out);
      break;
    case Effect::other_lse:
      ASSERT_EQ(status, DEUCE_OK) << deuce_last_error();
      EXPECT_EQ(before->out, after->out);
      EXPECT_NE(before->lse, after->lse);
      break;
  }
}

using enum Effect;

void add_sink(Sample& s) {
  s.sink = {0.5F, 1, -1, 2, 3, 1, 2, 4};
  s.args.sink = s.sink.data();
}

void add_k_descale(Sample& s) {
  s.descale = {0.5F, 1, 2, 0.25F, 0.75F, 3};
  s.args.k_descale = s.descale.data();
}

void add_v_descale(Sample& s) {
  add_k_descale(s);
  std::swap(s.args.k_descale, s.args.v_descale);
}

// One scale per slot and KV head, more than the 12 pages of 8 slots need.
void add_k_token_scale(Sample& s) {
  s.token_scale.resize(std::size_t{2} * 12 * 8 * 2);
  for (std::size_t i = 0; i < s.token_scale.size(); ++i) {
    s.token_scale[i] = static_cast<float>(i % 7 + 1) / 4;
  }
  s.args.k_token_scale = s.token_scale.data();
  s.args.k_token_scale_stride[0] = 16;
  s.args.k_token_scale_stride[1] = 2;
  s.args.k_token_scale_stride[2] = 1;
}

void add_v_token_scale(Sample& s) {
  add_k_token_scale(s);
  std::swap(s.args.k_token_scale, s.args.v_token_scale);
  std::swap(s.args.k_token_scale_stride, s.args.v_token_scale_stride);
}

void add_rows(Sample& s) {
  s.cu_q_len = {0, 2, 3, 5};
  s.args.cu_q_len = s.cu_q_len.data();
}

void fp8_queries(Sample& s) {
  s.config.q_dtype = DEUCE_E4M3;
  s.config.out_dtype = DEUCE_F32;
}

const Field kConfig[] = {
    {"struct_size", refused, [](Sample& s) { s.config.struct_size = 7; }},
    {"flags", refused, [](Sample& s) { s.config.flags = 1U << 30; }},
    {"backend", refused, [](Sample& s) { s.config.backend = 6; }},
    {"emulated_backend", refused, [](Sample& s) { s.config.emulated_backend = 2; }},
    {"device_type", refused, [](Sample& s) { s.config.device_type = 2; }},
    {"device_id", refused, [](Sample& s) { s.config.device_id = 3; }},
    {"num_q_heads", other_out, [](Sample& s) { s.config.num_q_heads = 2; }},
    {"num_kv_heads", other_out, [](Sample& s) { s.config.num_kv_heads = 1; }},
    {"head_dim_qk", other_out, [](Sample& s) { s.config.head_dim_qk = 8; }},
    {"head_dim_v", other_out, [](Sample& s) { s.config.head_dim_v = 8; }},
    {"q_dtype", other_out,
     [](Sample& s) {
       s.config.q_dtype = DEUCE_F16;
       s.config.out_dtype = DEUCE_F32;
     }},
    {"kv_dtype", other_out, [](Sample& s) { s.config.kv_dtype = DEUCE_E5M2; }, Cache::table, true},
    {"out_dtype", other_out, [](Sample& s) { s.config.out_dtype = DEUCE_BF16; }},
    {"sink_dtype", other_out, [](Sample& s) { s.config.sink_dtype = DEUCE_F16; }, Cache::table,
     false, add_sink},
    {"page_size", other_out, [](Sample& s) { s.config.page_size = 7; }},
    {"causal", other_out, [](Sample& s) { s.config.causal = 1; }},
    {"window_left", other_out, [](Sample& s) { s.config.window_left = 3; }},
    {"window_right", other_out, [](Sample& s) { s.config.window_right = 0; }},
    {"softmax_scale", other_out, [](Sample& s) { s.config.softmax_scale = 0.7F; }},
    {"softcap", other_out, [](Sample& s) { s.config.softcap = 0.5F; }},
    {"lse_base", other_lse, [](Sample& s) { s.config.lse_base = 2; }},
    {"num_splits", refused, [](Sample& s) { s.config.num_splits = 257; }},
    {"split_kv_len", refused, [](Sample& s) { s.config.split_kv_len = 64; }},
    {"score_slots", refused, [](Sample& s) { s.config.score_slots = 2; }},
    {"sm_margin", refused, [](Sample& s) { s.config.sm_margin = -1; }},
    {"row_replicas", refused, [](Sample& s) { s.config.row_replicas = 2; }},
    {"emulator_seed", refused, [](Sample& s) { s.config.emulator_seed = 1; }},
};

// Fields whose effect shows under another name: a maximum refuses the count that passes it.
const Field kArgs[] = {
    {"batch", other_out, [](Sample& s) { s.args.batch = 2; }},
    {"q_len", other_out, [](Sample& s) { s.args.q_len = 1; }},
    {"q", other_out, [](Sample& s) { s.args.q = s.k.data(); }},
    {"k", other_out, [](Sample& s) { s.args.k = s.v.data(); }},
    {"v", other_out, [](Sample& s) { s.args.v = s.k.data(); }},
    {"out", refused, [](Sample& s) { s.args.out = nullptr; }},
    {"lse", other_lse, [](Sample& s) { s.args.lse = nullptr; }},
    {"q_stride", other_out, [](Sample& s) { s.args.q_stride[1] = 0; }},
    {"out_stride", other_out,
     [](Sample& s) { std::swap(s.args.out_stride[1], s.args.out_stride[2]); }, Cache::table, false,
     [](Sample& s) {
       s.args.q_len = 1;  // with one row both axes may trade places
       s.args.out_stride[1] = 24;
     }},
    {"lse_stride", other_lse, [](Sample& s) { s.args.lse_stride[2] = -1; }, Cache::table, false,
     [](Sample& s) {
       s.args.q_len = 1;  // leaves the second row's room to step back from
       s.args.lse += 3;
     }},
    {"k_stride", other_out, [](Sample& s) { s.args.k_stride[1] = 0; }},
    {"v_stride", other_out, [](Sample& s) { s.args.v_stride[2] = 0; }},
    {"cu_q_len", other_out, add_rows},
    {"kv_len", other_out, [](Sample& s) { s.kv_len[2] = 19; }},
    {"kv_start", other_out,
     [](Sample& s) {
       s.kv_start = {2, 0, 9};
       s.args.kv_start = s.kv_start.data();
     }},
    {"kv_len_all", other_out, [](Sample& s) { s.args.kv_len_all = 5; }, Cache::contiguous, false,
     [](Sample& s) {
       s.args.kv_len = nullptr;
       s.args.kv_len_all = 6;
     }},
    {"cache_slots", refused, [](Sample& s) { s.args.cache_slots = -1; }, Cache::contiguous},
    {"cache_row", other_out,
     [](Sample& s) {
       s.cache_row = {2, 1, 0};
       s.args.cache_row = s.cache_row.data();
     },
     Cache::contiguous},
    {"block_table", other_out, [](Sample& s) { std::swap(s.block_table[0], s.block_table[1]); }},
    {"block_table_stride", other_out, [](Sample& s) { s.args.block_table_stride = 0; },
     Cache::table, false,
     [](Sample& s) {
       s.kv_len = {11, 0, 9};
     }},
    {"block_table_columns", refused, [](Sample& s) { s.args.block_table_columns = -1; }},
    {"num_pages", refused, [](Sample& s) { s.args.num_pages = -1; }},
    {"page_indptr", other_out,
     [](Sample& s) {
       s.page_indptr = {0, 2, 3, 5};
       s.last_page_len = {3, 1, 4};
     },
     Cache::indptr},
    {"page_indices", other_out, [](Sample& s) { s.page_indices[0] = 9; }, Cache::indptr},
    {"last_page_len", other_out, [](Sample& s) { s.last_page_len[0] = 7; }, Cache::indptr},
    {"sink", other_out, add_sink},
    {"q_descale", other_out,
     [](Sample& s) {
       s.descale = {0.5F, 1, 2, 0.25F, 0.75F, 3};
       s.args.q_descale = s.descale.data();
       s.args.q_descale_stride[0] = 2;
       s.args.q_descale_stride[1] = 1;
     },
     Cache::table, true, fp8_queries},
    {"q_descale_stride", other_out, [](Sample& s) { s.args.q_descale_stride[1] = 1; }, Cache::table,
     true,
     [](Sample& s) {
       fp8_queries(s);
       s.descale = {0.5F, 1, 2, 0.25F, 0.75F, 3};
       s.args.q_descale = s.descale.data();
     }},
    {"k_descale", other_out, add_k_descale, Cache::table, true},
    {"k_descale_stride", other_out, [](Sample& s) { s.args.k_descale_stride[0] = 2; }, Cache::table,
     true, add_k_descale},
    {"v_descale", other_out, add_v_descale, Cache::table, true},
    {"v_descale_stride", other_out, [](Sample& s) { s.args.v_descale_stride[1] = 1; }, Cache::table,
     true, add_v_descale},
    {"k_token_scale", other_out, add_k_token_scale, Cache::table, true},
    {"k_token_scale_stride", other_out, [](Sample& s) { s.args.k_token_scale_stride[1] = 0; },
     Cache::table, true, add_k_token_scale},
    {"v_token_scale", other_out, add_v_token_scale, Cache::table, true},
    {"v_token_scale_stride", other_out, [](Sample& s) { s.args.v_token_scale_stride[0] = 0; },
     Cache::table, true, add_v_token_scale},
    {"score_scale", other_out, [](Sample& s) { s.args.score_scale = 2; }},
    {"out_scale", other_out, [](Sample& s) { s.args.out_scale = -1; }},
    {"tree_mask", refused,
     [](Sample& s) { s.args.tree_mask = reinterpret_cast<const uint64_t*>(s.q.data()); }},
    {"tree_mask_stride", refused, [](Sample& s) { s.args.tree_mask_stride = 1; }},
    {"trace", refused, [](Sample& s) { s.args.trace = s.q.data(); }},
    {"trace_bytes", refused, [](Sample& s) { s.args.trace_bytes = 1; }},
};

std::string test_name(const testing::TestParamInfo<std::tuple<int, Field>>& row) {
  return backend_name(std::get<0>(row.param)) + "_" + std::get<1>(row.param).name;
}

INSTANTIATE_TEST_SUITE_P(Config, EveryField,
                         testing::Combine(testing::ValuesIn(host_backends()),
                                          testing::ValuesIn(kConfig)),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Args, EveryField,
                         testing::Combine(testing::ValuesIn(host_backends()),
                                          testing::ValuesIn(kArgs)),
                         test_name);

// A maximum shows in what it allows, under the name of the count that passes it.
class EveryMaximum : public testing::TestWithParam<int> {};

TEST_P(EveryMaximum, RefusesTheCountThatPassesIt) {
  const auto refuses = [&](const char* name, auto change, const char* field) {
    Sample sample(GetParam());
    change(sample.config);
    EXPECT_EQ(run(sample), DEUCE_INVALID_ARGUMENT) << name;
    EXPECT_STREQ(deuce_last_error_field(), field) << name;
  };
  refuses(
      "max_batch", [](auto& c) { c.max_batch = 2; }, "batch");
  refuses(
      "max_q_len", [](auto& c) { c.max_q_len = 1; }, "q_len");
  refuses(
      "max_kv_len", [](auto& c) { c.max_kv_len = 19; }, "kv_len");
}

std::string backend_test_name(const testing::TestParamInfo<int>& row) {
  return backend_name(row.param);
}

INSTANTIATE_TEST_SUITE_P(Host, EveryMaximum, testing::ValuesIn(host_backends()), backend_test_name);

// tag reaches fault records and traces only: status_test.cpp and the trace tests look at it there.
TEST(Tag, ChangesNoBit) {
  Sample before(DEUCE_BACKEND_REFERENCE), after(DEUCE_BACKEND_REFERENCE);
  after.args.tag = 9;
  ASSERT_EQ(run(before), DEUCE_OK);
  ASSERT_EQ(run(after), DEUCE_OK);
  EXPECT_EQ(before.out, after.out);
  EXPECT_EQ(before.lse, after.lse);
}

}  // namespace
}  // namespace deuce_test
