// SPDX-License-Identifier: Apache-2.0
// Every rule about an argument that the host can judge without reading memory, on every host
// backend: status, field and sentence, and no byte of out, lse or workspace written.
#include <gtest/gtest.h>

#include <limits>
#include <tuple>

#include "api/sample.h"

namespace deuce_test {
namespace {

constexpr int64_t kHuge = int64_t{1} << 61;

struct Refusal {
  const char* name;
  Cache cache;
  bool fp8;
  void (*spoil)(Sample&);
  deuce_status status;
  const char* field;
  const char* sentence;
};

void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

class ArgsRefusal : public testing::TestWithParam<std::tuple<int, Refusal>> {};

TEST_P(ArgsRefusal, NamesFieldValueAndRuleAndWritesNothing) {
  const auto& [backend, refusal] = GetParam();
  Sample sample(backend, refusal.cache, refusal.fp8);
  ASSERT_EQ(run(sample), DEUCE_OK) << deuce_last_error();
  refusal.spoil(sample);
  expect_refused(sample, refusal.status, refusal.field, refusal.sentence);
}

// Never read: only its number is judged.
template <class T>
T* at_address(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);
}

constexpr auto kInvalid = DEUCE_INVALID_ARGUMENT;

const Refusal kRows[] = {
    {"batch_negative", Cache::table, false, [](Sample& s) { s.args.batch = -1; }, kInvalid, "batch",
     "batch is -1: it must be in 0 .. 3, the plan's max_batch"},
    {"batch_above", Cache::table, false, [](Sample& s) { s.args.batch = 4; }, kInvalid, "batch",
     "batch is 4: it must be in 0 .. 3, the plan's max_batch"},
    {"q_len_zero", Cache::table, false, [](Sample& s) { s.args.q_len = 0; }, kInvalid, "q_len",
     "q_len is 0: it must be in 1 .. 2, the plan's max_q_len"},
    {"q_len_above", Cache::table, false, [](Sample& s) { s.args.q_len = 3; }, kInvalid, "q_len",
     "q_len is 3: it must be in 1 .. 2, the plan's max_q_len"},
    {"q_null", Cache::table, false, [](Sample& s) { s.args.q = nullptr; }, kInvalid, "q",
     "q is null"},
    {"out_null", Cache::table, false, [](Sample& s) { s.args.out = nullptr; }, kInvalid, "out",
     "out is null"},
    {"q_misaligned", Cache::table, false,
     [](Sample& s) { s.args.q = at_address<const void>(0x1002); }, kInvalid, "q",
     "q is 0x1002: it must be a multiple of 4 bytes"},
    {"out_misaligned", Cache::table, false,
     [](Sample& s) { s.args.out = at_address<void>(0x1001); }, kInvalid, "out",
     "out is 0x1001: it must be a multiple of 4 bytes"},
    {"lse_misaligned", Cache::table, false,
     [](Sample& s) { s.args.lse = at_address<float>(0x1003); }, kInvalid, "lse",
     "lse is 0x1003: it must be a multiple of 4 bytes"},
    {"cu_q_len_misaligned", Cache::table, false,
     [](Sample& s) { s.args.cu_q_len = at_address<const int32_t>(0x1002); }, kInvalid, "cu_q_len",
     "cu_q_len is 0x1002: it must be a multiple of 4 bytes"},
    {"q_stride_overflow", Cache::table, false, [](Sample& s) { s.args.q_stride[0] = kHuge; },
     kInvalid, "q_stride",
     "q_stride is {2305843009213693952, 64, 16}: byte offsets within the tensor must fit in 64 "
     "bits"},
    {"q_stride_lowest", Cache::table, false,
     [](Sample& s) { s.args.q_stride[2] = std::numeric_limits<int64_t>::min(); }, kInvalid,
     "q_stride",
     "q_stride is {128, 64, -9223372036854775808}: byte offsets within the tensor must fit in 64 "
     "bits"},
    {"out_stride_overflow", Cache::table, false, [](Sample& s) { s.args.out_stride[1] = kHuge; },
     kInvalid, "out_stride",
     "out_stride is {128, 2305843009213693952, 16}: byte offsets within the tensor must fit in 64 "
     "bits"},
    {"packed_row_stride_overflow", Cache::table, false,
     [](Sample& s) {
       s.cu_q_len = {0, 2, 4, 6};
       s.args.cu_q_len = s.cu_q_len.data();
       s.args.q_stride[1] = int64_t{1} << 32;
     },
     kInvalid, "q_stride",
     "q_stride is {128, 4294967296, 16}: byte offsets within the tensor must fit in 64 bits"},
    {"lse_stride_overflow", Cache::table, false, [](Sample& s) { s.args.lse_stride[0] = -kHuge; },
     kInvalid, "lse_stride",
     "lse_stride is {-2305843009213693952, 4, 1}: byte offsets within the tensor must fit in 64 "
     "bits"},
    {"out_heads_overlap", Cache::table, false, [](Sample& s) { s.args.out_stride[2] = 15; },
     kInvalid, "out_stride",
     "out_stride[2] is 15: neighbouring heads of 16 elements would overlap"},
    {"out_rows_overlap", Cache::table, false, [](Sample& s) { s.args.out_stride[1] = 0; }, kInvalid,
     "out_stride", "out_stride[1] is 0: neighbouring rows of 16 elements would overlap"},
    {"lse_requests_overlap", Cache::table, false, [](Sample& s) { s.args.lse_stride[0] = 0; },
     kInvalid, "lse_stride",
     "lse_stride[0] is 0: neighbouring requests of 1 element would overlap"},
};

const Refusal kCaches[] = {
    {"k_null", Cache::table, false, [](Sample& s) { s.args.k = nullptr; }, kInvalid, "k",
     "k is null"},
    {"v_null", Cache::contiguous, false, [](Sample& s) { s.args.v = nullptr; }, kInvalid, "v",
     "v is null"},
    {"k_misaligned", Cache::table, false,
     [](Sample& s) { s.args.k = at_address<const void>(0x1002); }, kInvalid, "k",
     "k is 0x1002: it must be a multiple of 4 bytes"},
    {"v_misaligned", Cache::table, false,
     [](Sample& s) { s.args.v = at_address<const void>(0x1001); }, kInvalid, "v",
     "v is 0x1001: it must be a multiple of 4 bytes"},
    {"k_stride_overflow", Cache::table, false, [](Sample& s) { s.args.k_stride[0] = kHuge; },
     kInvalid, "k_stride",
     "k_stride is {2305843009213693952, 32, 16}: byte offsets within the tensor must fit in 64 "
     "bits"},
    {"v_stride_overflow", Cache::contiguous, false, [](Sample& s) { s.args.v_stride[1] = kHuge; },
     kInvalid, "v_stride",
     "v_stride is {768, 2305843009213693952, 16}: byte offsets within the tensor must fit in 64 "
     "bits"},
    {"num_pages_negative", Cache::table, false, [](Sample& s) { s.args.num_pages = -1; }, kInvalid,
     "num_pages", "num_pages is -1: it must be 0 or more"},
    {"fewer_rows_than_requests", Cache::contiguous, false, [](Sample& s) { s.args.num_pages = 2; },
     kInvalid, "num_pages",
     "num_pages is 2: without cache_row each of the 3 requests has a cache row of its own"},
    {"cache_slots_negative", Cache::contiguous, false, [](Sample& s) { s.args.cache_slots = -5; },
     kInvalid, "cache_slots", "cache_slots is -5: it must be 0 or more"},
    {"cache_slots_with_pages", Cache::table, false, [](Sample& s) { s.args.cache_slots = 24; },
     kInvalid, "cache_slots", "cache_slots is 24 but the plan has pages: pass 0"},
    {"cache_row_without_rows", Cache::contiguous, false,
     [](Sample& s) {
       s.cache_row = {0, 1, 2};
       s.args.cache_row = s.cache_row.data();
       s.args.num_pages = 0;
     },
     kInvalid, "num_pages", "num_pages is 0: with cache_row it says how many rows the cache has"},
    {"cache_row_with_pages", Cache::table, false,
     [](Sample& s) { s.args.cache_row = s.block_table.data(); }, kInvalid, "cache_row",
     "cache_row is given but the plan has pages: the page table says where keys are"},
    {"cache_row_misaligned", Cache::contiguous, false,
     [](Sample& s) { s.args.cache_row = at_address<const int32_t>(0x1002); }, kInvalid, "cache_row",
     "cache_row is 0x1002: it must be a multiple of 4 bytes"},
    {"table_without_pages", Cache::contiguous, false,
     [](Sample& s) { s.args.block_table = s.kv_len.data(); }, kInvalid, "block_table",
     "block_table is given but the plan's page_size is 0 (contiguous cache)"},
    {"columns_without_pages", Cache::contiguous, false,
     [](Sample& s) { s.args.block_table_columns = 3; }, kInvalid, "block_table_columns",
     "block_table_columns is 3 but the plan's page_size is 0 (contiguous cache)"},
    {"indptr_without_pages", Cache::contiguous, false,
     [](Sample& s) { s.args.page_indptr = s.kv_len.data(); }, kInvalid, "page_indptr",
     "page_indptr is given but the plan's page_size is 0 (contiguous cache)"},
    {"indices_without_pages", Cache::contiguous, false,
     [](Sample& s) { s.args.page_indices = s.kv_len.data(); }, kInvalid, "page_indices",
     "page_indices is given but the plan's page_size is 0 (contiguous cache)"},
    {"last_page_len_without_pages", Cache::contiguous, false,
     [](Sample& s) { s.args.last_page_len = s.kv_len.data(); }, kInvalid, "last_page_len",
     "last_page_len is given but the plan's page_size is 0 (contiguous cache)"},
};

const Refusal kTables[] = {
    {"table_null", Cache::table, false, [](Sample& s) { s.args.block_table = nullptr; }, kInvalid,
     "block_table", "block_table is null but block_table_columns is 3"},
    {"table_misaligned", Cache::table, false,
     [](Sample& s) { s.args.block_table = at_address<const int32_t>(0x1001); }, kInvalid,
     "block_table", "block_table is 0x1001: it must be a multiple of 4 bytes"},
    {"columns_negative", Cache::table, false, [](Sample& s) { s.args.block_table_columns = -1; },
     kInvalid, "block_table_columns", "block_table_columns is -1: it must be 0 or more"},
    {"table_stride_overflow", Cache::table, false,
     [](Sample& s) { s.args.block_table_stride = kHuge; }, kInvalid, "block_table_stride",
     "block_table_stride is {2305843009213693952}: byte offsets within the tensor must fit in 64 "
     "bits"},
    {"both_styles", Cache::indptr, false,
     [](Sample& s) { s.args.block_table = s.page_indices.data(); }, kInvalid, "block_table",
     "block_table and page_indptr are both given: give one of them"},
    {"indices_without_indptr", Cache::table, false,
     [](Sample& s) { s.args.page_indices = s.block_table.data(); }, kInvalid, "page_indices",
     "page_indices is given without page_indptr"},
    {"last_page_len_without_indptr", Cache::table, false,
     [](Sample& s) { s.args.last_page_len = s.kv_len.data(); }, kInvalid, "last_page_len",
     "last_page_len is given without page_indptr"},
    {"last_page_len_null", Cache::indptr, false, [](Sample& s) { s.args.last_page_len = nullptr; },
     kInvalid, "last_page_len", "last_page_len is null: with page_indptr give it or kv_len"},
    {"indptr_misaligned", Cache::indptr, false,
     [](Sample& s) { s.args.page_indptr = at_address<const int32_t>(0x1002); }, kInvalid,
     "page_indptr", "page_indptr is 0x1002: it must be a multiple of 4 bytes"},
    {"indices_misaligned", Cache::indptr, false,
     [](Sample& s) { s.args.page_indices = at_address<const int32_t>(0x1002); }, kInvalid,
     "page_indices", "page_indices is 0x1002: it must be a multiple of 4 bytes"},
    {"last_page_len_misaligned", Cache::indptr, false,
     [](Sample& s) { s.args.last_page_len = at_address<const int32_t>(0x1002); }, kInvalid,
     "last_page_len", "last_page_len is 0x1002: it must be a multiple of 4 bytes"},
    {"kv_len_all_with_indptr", Cache::indptr, false, [](Sample& s) { s.args.kv_len_all = 8; },
     kInvalid, "kv_len_all",
     "kv_len_all is 8: page_indptr and last_page_len give the lengths, pass 0"},
    {"kv_len_all_with_kv_len", Cache::table, false, [](Sample& s) { s.args.kv_len_all = 8; },
     kInvalid, "kv_len_all", "kv_len_all is 8 and kv_len is given: give one of them"},
    {"kv_len_all_negative", Cache::table, false,
     [](Sample& s) {
       s.args.kv_len = nullptr;
       s.args.kv_len_all = -1;
     },
     kInvalid, "kv_len_all",
     "kv_len_all is -1: it must be in 0 .. 24, the slots of a page table row"},
    {"kv_len_all_above_the_cache", Cache::contiguous, false,
     [](Sample& s) {
       s.args.kv_len = nullptr;
       s.args.kv_len_all = 25;
     },
     kInvalid, "kv_len_all", "kv_len_all is 25: it must be in 0 .. 24, the slots of a cache row"},
    {"kv_len_all_above_the_plan", Cache::contiguous, false,
     [](Sample& s) {
       s.config.max_kv_len = 16;
       s.args.kv_len = nullptr;
       s.args.kv_len_all = 17;
     },
     kInvalid, "kv_len_all", "kv_len_all is 17: the plan's max_kv_len is 16"},
    {"kv_len_misaligned", Cache::table, false,
     [](Sample& s) { s.args.kv_len = at_address<const int32_t>(0x1002); }, kInvalid, "kv_len",
     "kv_len is 0x1002: it must be a multiple of 4 bytes"},
    {"kv_start_misaligned", Cache::table, false,
     [](Sample& s) { s.args.kv_start = at_address<const int32_t>(0x1003); }, kInvalid, "kv_start",
     "kv_start is 0x1003: it must be a multiple of 4 bytes"},
};

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

const Refusal kScales[] = {
    {"q_descale_for_f32", Cache::table, false, [](Sample& s) { s.args.q_descale = s.q.data(); },
     kInvalid, "q_descale", "q_descale is given but q_dtype is f32: only fp8 tensors have scales"},
    {"k_descale_for_f32", Cache::table, false, [](Sample& s) { s.args.k_descale = s.q.data(); },
     kInvalid, "k_descale", "k_descale is given but kv_dtype is f32: only fp8 tensors have scales"},
    {"v_descale_for_f32", Cache::table, false, [](Sample& s) { s.args.v_descale = s.q.data(); },
     kInvalid, "v_descale", "v_descale is given but kv_dtype is f32: only fp8 tensors have scales"},
    {"k_token_scale_for_f32", Cache::table, false,
     [](Sample& s) { s.args.k_token_scale = s.q.data(); }, kInvalid, "k_token_scale",
     "k_token_scale is given but kv_dtype is f32: only fp8 tensors have scales"},
    {"v_token_scale_for_f32", Cache::table, false,
     [](Sample& s) { s.args.v_token_scale = s.q.data(); }, kInvalid, "v_token_scale",
     "v_token_scale is given but kv_dtype is f32: only fp8 tensors have scales"},
    {"k_descale_misaligned", Cache::table, true,
     [](Sample& s) { s.args.k_descale = at_address<const float>(0x1002); }, kInvalid, "k_descale",
     "k_descale is 0x1002: it must be a multiple of 4 bytes"},
    {"v_token_scale_misaligned", Cache::table, true,
     [](Sample& s) { s.args.v_token_scale = at_address<const float>(0x1002); }, kInvalid,
     "v_token_scale", "v_token_scale is 0x1002: it must be a multiple of 4 bytes"},
    {"v_descale_stride_overflow", Cache::table, true,
     [](Sample& s) {
       s.args.v_descale = s.q.data();
       s.args.v_descale_stride[0] = kHuge;
     },
     kInvalid, "v_descale_stride",
     "v_descale_stride is {2305843009213693952, 0}: byte offsets within the tensor must fit in 64 "
     "bits"},
    {"k_token_scale_stride_overflow", Cache::table, true,
     [](Sample& s) {
       s.args.k_token_scale = s.q.data();
       s.args.k_token_scale_stride[1] = kHuge;
     },
     kInvalid, "k_token_scale_stride",
     "k_token_scale_stride is {0, 2305843009213693952, 0}: byte offsets within the tensor must fit "
     "in 64 bits"},
    {"k_token_scale_of_a_shared_row", Cache::contiguous, true,
     [](Sample& s) {
       s.args.num_pages = 1;
       s.args.cache_row = nullptr;
       s.args.k_stride[0] = s.args.v_stride[0] = 0;
       s.args.k_token_scale = s.q.data();
       s.args.k_token_scale_stride[0] = 32;
     },
     kInvalid, "k_token_scale_stride",
     "k_token_scale_stride[0] is 32: it must be 0, as requests that share a cache row share its "
     "scales"},
    {"sink_misaligned", Cache::table, false,
     [](Sample& s) { s.args.sink = at_address<const void>(0x1002); }, kInvalid, "sink",
     "sink is 0x1002: it must be a multiple of 4 bytes"},
    {"score_scale_nan", Cache::table, false, [](Sample& s) { s.args.score_scale = kNan; }, kInvalid,
     "score_scale", "score_scale is nan: it must be finite, or 0 for 1"},
    {"score_scale_that_leaves_nothing", Cache::table, false,
     [](Sample& s) {
       s.config.softmax_scale = 1e-30F;
       s.args.score_scale = 1e-30F;
     },
     kInvalid, "score_scale",
     "score_scale is 1e-30: scores are then multiplied by 1e-60, outside what "
     "fp32 holds in log2 units, 1.4e-45 to 2.35e38"},
    {"score_scale_that_overflows", Cache::table, false,
     [](Sample& s) {
       s.config.softmax_scale = 1e20F;
       s.args.score_scale = 1e20F;
     },
     kInvalid, "score_scale",
     "score_scale is 1e+20: scores are then multiplied by 1e+40, outside what fp32 holds in log2 "
     "units, 1.4e-45 to 2.35e38"},
    {"score_scale_that_overflows_beside_softcap", Cache::table, false,
     [](Sample& s) {
       s.config.softcap = 1e-10F;
       s.args.score_scale = 1e30F;
     },
     kInvalid, "softcap",
     "softcap is 1e-10: 2.5e+29, the factor of scores, divided by it is inf: fp32 must hold this "
     "as a normal number"},
    {"out_scale_infinite", Cache::table, false, [](Sample& s) { s.args.out_scale = kInfinity; },
     kInvalid, "out_scale", "out_scale is inf: it must be finite, or 0 for 1"},
    {"tree_mask", Cache::table, false,
     [](Sample& s) { s.args.tree_mask = at_address<const uint64_t>(0x1000); }, DEUCE_UNSUPPORTED,
     "tree_mask", "tree_mask is given: it is reserved, pass NULL"},
    {"tree_mask_stride", Cache::table, false, [](Sample& s) { s.args.tree_mask_stride = 1; },
     DEUCE_UNSUPPORTED, "tree_mask_stride", "tree_mask_stride is 1: it is reserved, pass 0"},
    {"trace_without_flag", Cache::table, false, [](Sample& s) { s.args.trace = s.q.data(); },
     kInvalid, "trace", "trace is given but the plan was made without DEUCE_FLAG_TRACE"},
    {"trace_bytes_without_flag", Cache::table, false, [](Sample& s) { s.args.trace_bytes = 64; },
     kInvalid, "trace_bytes",
     "trace_bytes is given but the plan was made without DEUCE_FLAG_TRACE"},
};

std::string test_name(const testing::TestParamInfo<std::tuple<int, Refusal>>& row) {
  return backend_name(std::get<0>(row.param)) + "_" + std::get<1>(row.param).name;
}

#define DEUCE_REFUSALS(suite, table) \
  INSTANTIATE_TEST_SUITE_P(          \
      suite, ArgsRefusal,            \
      testing::Combine(testing::ValuesIn(host_backends()), testing::ValuesIn(table)), test_name)
DEUCE_REFUSALS(Rows, kRows);
DEUCE_REFUSALS(Caches, kCaches);
DEUCE_REFUSALS(Tables, kTables);
DEUCE_REFUSALS(Scales, kScales);
#undef DEUCE_REFUSALS

}  // namespace
}  // namespace deuce_test
