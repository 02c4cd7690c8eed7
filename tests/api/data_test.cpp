// SPDX-License-Identifier: Apache-2.0
// What a GPU would find in its kernel, cpu and reference find before they compute anything:
// lengths, offsets, rows and page ids that contradict the cache. And the twin of each: a value that
// looks as bad but is never needed is no fault.
#include <gtest/gtest.h>

#include <limits>
#include <tuple>

#include "api/sample.h"

namespace deuce_test {
namespace {

struct Fault {
  const char* name;
  Cache cache;
  void (*spoil)(Sample&);
  const char* field;
  const char* sentence;
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class DataFault : public testing::TestWithParam<std::tuple<int, Fault>> {};

TEST_P(DataFault, IsRefusedBeforeAnythingIsWritten) {
  const auto& [backend, fault] = GetParam();
  Sample sample(backend, fault.cache);
  ASSERT_EQ(run(sample), DEUCE_OK) << deuce_last_error();
  fault.spoil(sample);
  expect_refused(sample, DEUCE_INVALID_ARGUMENT, fault.field, fault.sentence);
}

void pack_rows(Sample& s, std::vector<int32_t> offsets) {
  s.cu_q_len = std::move(offsets);
  s.args.cu_q_len = s.cu_q_len.data();
}

void start_at(Sample& s, std::vector<int32_t> starts) {
  s.kv_start = std::move(starts);
  s.args.kv_start = s.kv_start.data();
}

void use_rows(Sample& s, std::vector<int32_t> rows) {
  s.cache_row = std::move(rows);
  s.args.cache_row = s.cache_row.data();
}

const Fault kFaults[] = {
    {"length_negative", Cache::table, [](Sample& s) { s.kv_len[1] = -1; }, "kv_len",
     "kv_len[1] is -1: it must be in 0 .. 24, the slots of its page table row"},
    {"length_above_the_table", Cache::table, [](Sample& s) { s.kv_len[2] = 25; }, "kv_len",
     "kv_len[2] is 25: it must be in 0 .. 24, the slots of its page table row"},
    {"length_above_the_cache_row", Cache::contiguous, [](Sample& s) { s.kv_len[0] = 25; }, "kv_len",
     "kv_len[0] is 25: it must be in 0 .. 24, the slots of its cache row"},
    {"length_above_the_plan", Cache::table, [](Sample& s) { s.config.max_kv_len = 19; }, "kv_len",
     "kv_len gives request 2 20 live keys: the plan's max_kv_len is 19"},
    {"length_above_the_pages_of_indptr", Cache::indptr,
     [](Sample& s) {
       s.kv_len = {11, 1, 20};
       s.args.kv_len = s.kv_len.data();
     },
     "kv_len", "kv_len[1] is 1: it must be in 0 .. 0, the slots of its page table row"},
    {"derived_length_above_the_plan", Cache::indptr, [](Sample& s) { s.config.max_kv_len = 19; },
     "last_page_len", "last_page_len gives request 2 20 live keys: the plan's max_kv_len is 19"},
    {"start_negative", Cache::table,
     [](Sample& s) {
       start_at(s, {-1, 0, 0});
     },
     "kv_start", "kv_start[0] is -1: it must be in 0 .. 11, the request's length"},
    {"start_above_the_length", Cache::contiguous,
     [](Sample& s) {
       start_at(s, {0, 1, 0});
     },
     "kv_start", "kv_start[1] is 1: it must be in 0 .. 0, the request's length"},
    {"rows_descend", Cache::table,
     [](Sample& s) {
       pack_rows(s, {0, 2, 1, 3});
     },
     "cu_q_len", "cu_q_len[2] is 1 after 2: it must not decrease"},
    {"rows_negative", Cache::table,
     [](Sample& s) {
       pack_rows(s, {-1, 0, 2, 4});
     },
     "cu_q_len", "cu_q_len[0] is -1: it must be 0 or more"},
    {"too_many_rows", Cache::table,
     [](Sample& s) {
       pack_rows(s, {0, 1, 4, 5});
     },
     "cu_q_len", "cu_q_len gives request 1 3 rows: q_len allows 2"},
    {"cache_row_negative", Cache::contiguous,
     [](Sample& s) {
       use_rows(s, {0, -1, 2});
     },
     "cache_row", "cache_row[1] is -1: it must be in 0 .. 2"},
    {"cache_row_above", Cache::contiguous,
     [](Sample& s) {
       use_rows(s, {0, 1, 3});
     },
     "cache_row", "cache_row[2] is 3: it must be in 0 .. 2"},
    {"page_id_negative", Cache::table, [](Sample& s) { s.block_table[1] = -1; }, "block_table",
     "block_table of request 0, column 1 is -1: it must be a page id in 0 .. 11"},
    {"page_id_above", Cache::table, [](Sample& s) { s.block_table[8] = 12; }, "block_table",
     "block_table of request 2, column 2 is 12: it must be a page id in 0 .. 11"},
    {"page_id_lowest", Cache::table,
     [](Sample& s) { s.block_table[6] = std::numeric_limits<int32_t>::min(); }, "block_table",
     "block_table of request 2, column 0 is -2147483648: it must be a page id in 0 .. 11"},
    {"page_id_highest", Cache::indptr,
     [](Sample& s) { s.page_indices[3] = std::numeric_limits<int32_t>::max(); }, "page_indices",
     "page_indices of request 2, column 1 is 2147483647: it must be a page id in 0 .. 11"},
    {"pool_without_pages", Cache::table, [](Sample& s) { s.args.num_pages = 0; }, "num_pages",
     "num_pages is 0: request 0 has keys on pages"},
    {"last_page_len_zero", Cache::indptr, [](Sample& s) { s.last_page_len[0] = 0; },
     "last_page_len", "last_page_len[0] is 0: it must be in 1 .. 8"},
    {"last_page_len_above", Cache::indptr, [](Sample& s) { s.last_page_len[2] = 9; },
     "last_page_len", "last_page_len[2] is 9: it must be in 1 .. 8"},
    {"indptr_descends", Cache::indptr, [](Sample& s) { s.page_indptr[2] = 1; }, "page_indptr",
     "page_indptr[2] is 1 after 2: it must not decrease"},
    {"indptr_negative", Cache::indptr, [](Sample& s) { s.page_indptr[0] = -2; }, "page_indptr",
     "page_indptr[0] is -2: it must be 0 or more"},
    {"indices_null", Cache::indptr, [](Sample& s) { s.args.page_indices = nullptr; },
     "page_indices", "page_indices is null: request 0 has 2 pages"},
};

struct Harmless {
  const char* name;
  Cache cache;
  void (*change)(Sample&);
};

void PrintTo(const Harmless& harmless, std::ostream* out) { *out << harmless.name; }

class HarmlessData : public testing::TestWithParam<std::tuple<int, Harmless>> {};

TEST_P(HarmlessData, IsNoFault) {
  const auto& [backend, harmless] = GetParam();
  Sample sample(backend, harmless.cache);
  harmless.change(sample);
  EXPECT_EQ(run(sample), DEUCE_OK) << deuce_last_error();
}

const Harmless kHarmless[] = {
    {"ids_beyond_the_length", Cache::table,
     [](Sample& s) { s.block_table[2] = std::numeric_limits<int32_t>::max(); }},
    {"ids_before_the_window", Cache::table,
     [](Sample& s) {
       s.config.window_left = 2;  // rows at 18 and 19 see 16 and later
       s.block_table[6] = s.block_table[7] = -1;
     }},
    {"ids_before_kv_start", Cache::table,
     [](Sample& s) {
       start_at(s, {0, 0, 8});
       s.block_table[6] = -1;
     }},
    {"ids_of_a_request_without_rows", Cache::table,
     [](Sample& s) {
       pack_rows(s, {0, 0, 1, 3});
       s.block_table[0] = s.block_table[1] = -1;
     }},
    {"zero_columns_and_no_keys", Cache::table,
     [](Sample& s) {
       s.kv_len = {0, 0, 0};
       s.args.block_table = nullptr;
       s.args.block_table_columns = 0;
     }},
    {"no_pool_and_no_keys", Cache::table,
     [](Sample& s) {
       s.kv_len = {0, 0, 0};
       s.args.k = s.args.v = nullptr;
       s.args.num_pages = 0;
     }},
    {"no_indices_and_no_pages", Cache::indptr,
     [](Sample& s) {
       s.page_indptr = {0, 0, 0, 0};
       s.args.page_indices = nullptr;
     }},
    {"last_page_len_when_kv_len_decides", Cache::indptr,
     [](Sample& s) {
       s.args.kv_len = s.kv_len.data();
       s.last_page_len = {0, -7, 99};
     }},
    {"offset_of_the_first_row", Cache::table,
     [](Sample& s) {
       s.args.batch = 2;
       pack_rows(s, {2, 4, 6});
     }},
    {"start_at_the_end", Cache::contiguous,
     [](Sample& s) {
       start_at(s, {11, 0, 20});
     }},
    {"live_keys_within_the_plan", Cache::table,
     [](Sample& s) {
       s.config.max_kv_len = 12;
       start_at(s, {0, 0, 8});
     }},
    {"one_row_shared_by_all", Cache::contiguous,
     [](Sample& s) {
       s.args.num_pages = 1;
       s.args.k_stride[0] = s.args.v_stride[0] = 0;
     }},
    {"rows_left_to_the_default", Cache::contiguous, [](Sample& s) { s.args.num_pages = 0; }},
};

template <class Case>
std::string test_name(const testing::TestParamInfo<std::tuple<int, Case>>& row) {
  return backend_name(std::get<0>(row.param)) + "_" + std::get<1>(row.param).name;
}

INSTANTIATE_TEST_SUITE_P(Host, DataFault,
                         testing::Combine(testing::ValuesIn(host_backends()),
                                          testing::ValuesIn(kFaults)),
                         test_name<Fault>);
INSTANTIATE_TEST_SUITE_P(Host, HarmlessData,
                         testing::Combine(testing::ValuesIn(host_backends()),
                                          testing::ValuesIn(kHarmless)),
                         test_name<Harmless>);

}  // namespace
}  // namespace deuce_test
