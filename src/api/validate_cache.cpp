// SPDX-License-Identifier: Apache-2.0
// Argument rules for the cache: page-table styles, lengths that the host knows, k and v.
// Reads nothing behind a pointer.
#include "api/checks.h"
#include "api/validate.h"
#include "plan/names.h"

namespace deuce {
namespace {

struct Pointer {
  const char* field;
  const int32_t* data;
};

Status check_contiguous(const deuce_decode_args& args) {
  for (const auto& [field, data] :
       {Pointer{"block_table", args.block_table}, Pointer{"page_indptr", args.page_indptr},
        Pointer{"page_indices", args.page_indices}, Pointer{"last_page_len", args.last_page_len}}) {
    if (data == nullptr) continue;
    return invalid(field, "{} is given but the plan's page_size is 0 (contiguous cache)", field);
  }
  if (args.block_table_columns != 0) {
    return invalid("block_table_columns",
                   "block_table_columns is {} but the plan's page_size is 0 (contiguous cache)",
                   args.block_table_columns);
  }
  if (args.cache_slots < 0) {
    return invalid("cache_slots", "cache_slots is {}: it must be 0 or more", args.cache_slots);
  }
  const bool shared = args.k_stride[0] == 0 && args.v_stride[0] == 0;
  if (args.cache_row == nullptr && args.num_pages < args.batch && !shared) {
    return invalid("num_pages",
                   "num_pages is {}: without cache_row each of the {} requests has a cache row of "
                   "its own",
                   args.num_pages, args.batch);
  }
  if (args.cache_row != nullptr && args.num_pages == 0) {
    return invalid("num_pages",
                   "num_pages is 0: with cache_row it says how many rows the cache has");
  }
  return check_alignment("cache_row", args.cache_row, alignof(int32_t));
}

Status check_indptr_style(const deuce_decode_args& args) {
  if (args.block_table != nullptr || args.block_table_columns != 0) {
    return invalid("block_table", "block_table and page_indptr are both given: give one of them");
  }
  if (args.kv_len == nullptr && args.kv_len_all != 0) {
    return invalid("kv_len_all",
                   "kv_len_all is {}: page_indptr and last_page_len give the lengths, pass 0",
                   args.kv_len_all);
  }
  Status bad = check_alignment("page_indptr", args.page_indptr, alignof(int32_t));
  if (bad.ok()) bad = check_alignment("page_indices", args.page_indices, alignof(int32_t));
  if (!bad.ok()) return bad;
  if (args.kv_len == nullptr && args.last_page_len == nullptr) {
    return invalid("last_page_len", "last_page_len is null: with page_indptr give it or kv_len");
  }
  return check_alignment("last_page_len", args.last_page_len, alignof(int32_t));
}

Status check_block_table(const deuce_decode_args& args) {
  for (const auto& [field, data] :
       {Pointer{"page_indices", args.page_indices}, Pointer{"last_page_len", args.last_page_len}}) {
    if (data != nullptr) return invalid(field, "{} is given without page_indptr", field);
  }
  if (args.block_table_columns < 0) {
    return invalid("block_table_columns", "block_table_columns is {}: it must be 0 or more",
                   args.block_table_columns);
  }
  if (args.block_table_columns == 0) return {};
  if (args.block_table == nullptr) {
    return invalid("block_table", "block_table is null but block_table_columns is {}",
                   args.block_table_columns);
  }
  Status bad = check_alignment("block_table", args.block_table, alignof(int32_t));
  if (!bad.ok()) return bad;
  const Axis rows[]{{args.batch, args.block_table_stride}};
  return check_reach("block_table_stride", rows, args.block_table_columns, sizeof(int32_t));
}

Status check_paged(const deuce_decode_args& args) {
  if (args.cache_row != nullptr) {
    return invalid("cache_row",
                   "cache_row is given but the plan has pages: the page table says where keys are");
  }
  if (args.cache_slots != 0) {
    return invalid("cache_slots", "cache_slots is {} but the plan has pages: pass 0",
                   args.cache_slots);
  }
  return args.page_indptr != nullptr ? check_indptr_style(args) : check_block_table(args);
}

Status check_length_all(const Problem& problem, const deuce_decode_args& args) {
  if (args.kv_len != nullptr || args.page_indptr != nullptr) return {};
  const bool paged = problem.page_size > 0;
  const int64_t capacity =
      paged ? int64_t{args.block_table_columns} * problem.page_size : args.cache_slots;
  if (args.kv_len_all < 0 || args.kv_len_all > capacity) {
    return invalid("kv_len_all", "kv_len_all is {}: it must be in 0 .. {}, the slots of {}",
                   args.kv_len_all, capacity, paged ? "a page table row" : "a cache row");
  }
  // With kv_start only the live keys count, and those the host may not see.
  if (args.kv_start == nullptr && args.kv_len_all > problem.max_kv_len) {
    return invalid("kv_len_all", "kv_len_all is {}: the plan's max_kv_len is {}", args.kv_len_all,
                   problem.max_kv_len);
  }
  return {};
}

Status check_lengths(const Problem& problem, const deuce_decode_args& args) {
  for (const auto& [field, data] :
       {Pointer{"kv_len", args.kv_len}, Pointer{"kv_start", args.kv_start}}) {
    if (Status bad = check_alignment(field, data, alignof(int32_t)); !bad.ok()) return bad;
  }
  if (args.kv_len != nullptr && args.kv_len_all != 0) {
    return invalid("kv_len_all", "kv_len_all is {} and kv_len is given: give one of them",
                   args.kv_len_all);
  }
  return check_length_all(problem, args);
}

// K or V with the names of its arguments.
struct CacheSide {
  const char *data_field, *stride_field, *scale_field, *scale_stride_field;
  const void* data;
  const int64_t (&stride)[3];
  const float* scale;
  const int64_t (&scale_stride)[3];
  int64_t head_dim;
};

Status check_token_scale(const Problem& problem, const CacheSide& side, int64_t batch,
                         int64_t pages, int64_t slots) {
  if (side.scale == nullptr) return {};
  if (!is_fp8(problem.kv_type)) {
    return invalid(side.scale_field, "{} is given but kv_dtype is {}: only fp8 tensors have scales",
                   side.scale_field, name_of(problem.kv_type));
  }
  Status bad = check_alignment(side.scale_field, side.scale, alignof(float));
  if (!bad.ok()) return bad;
  if (problem.page_size == 0 && side.stride[0] == 0 && pages < batch && side.scale_stride[0] != 0) {
    return invalid(side.scale_stride_field,
                   "{}[0] is {}: it must be 0, as requests that share a cache row share its scales",
                   side.scale_stride_field, side.scale_stride[0]);
  }
  const Axis axes[]{{pages, side.scale_stride[0]},
                    {slots, side.scale_stride[1]},
                    {problem.num_kv_heads, side.scale_stride[2]}};
  return check_reach(side.scale_stride_field, axes, 1, sizeof(float));
}

Status check_side(const Problem& problem, const deuce_decode_args& args, const CacheSide& side) {
  const int64_t bytes = dtype_bytes(problem.kv_type), pages = args.num_pages;
  const int64_t slots = problem.page_size > 0 ? problem.page_size : args.cache_slots;
  const bool has_slots = pages > 0 && slots > 0;
  if (has_slots && side.data == nullptr) {
    return invalid(side.data_field, "{} is null", side.data_field);
  }
  Status bad = check_alignment(side.data_field, side.data, static_cast<std::size_t>(bytes));
  if (!bad.ok()) return bad;
  const Axis axes[]{
      {pages, side.stride[0]}, {slots, side.stride[1]}, {problem.num_kv_heads, side.stride[2]}};
  bad = check_reach(side.stride_field, axes, side.head_dim, bytes);
  return bad.ok() ? check_token_scale(problem, side, args.batch, pages, slots) : bad;
}

}  // namespace

Status validate_cache(const Problem& problem, const deuce_decode_args& args) {
  if (args.num_pages < 0) {
    return invalid("num_pages", "num_pages is {}: it must be 0 or more", args.num_pages);
  }
  Status bad = problem.page_size > 0 ? check_paged(args) : check_contiguous(args);
  if (bad.ok()) bad = check_lengths(problem, args);
  if (!bad.ok()) return bad;
  const CacheSide k{
      "k",           "k_stride",         "k_token_scale",           "k_token_scale_stride", args.k,
      args.k_stride, args.k_token_scale, args.k_token_scale_stride, problem.head_dim_qk};
  const CacheSide v{
      "v",           "v_stride",         "v_token_scale",           "v_token_scale_stride", args.v,
      args.v_stride, args.v_token_scale, args.v_token_scale_stride, problem.head_dim_v};
  bad = check_side(problem, args, k);
  return bad.ok() ? check_side(problem, args, v) : bad;
}

}  // namespace deuce
