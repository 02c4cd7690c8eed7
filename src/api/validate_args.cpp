// SPDX-License-Identifier: Apache-2.0
// Rules for one step's arguments: counts, pointers, strides, page-table style, scales, factors.
// Reads nothing behind a pointer and allocates nothing unless it refuses; runs at every call.
#include <cmath>
#include <cstdlib>
#include <limits>

#include "api/validate.h"
#include "plan/limits.h"
#include "plan/names.h"

namespace deuce {
namespace {

Status misaligned(const char* field, const void* pointer, std::size_t alignment) {
  return invalid(field, "{} is {}: it must be a multiple of {} bytes", field, pointer, alignment);
}

bool is_aligned(const void* pointer, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

Status check_pointer(const char* field, const void* pointer, std::size_t alignment) {
  if (pointer == nullptr) return invalid(field, "{} is null", field);
  if (!is_aligned(pointer, alignment)) return misaligned(field, pointer, alignment);
  return {};
}

Status check_optional(const char* field, const void* pointer, std::size_t alignment) {
  if (!is_aligned(pointer, alignment)) return misaligned(field, pointer, alignment);
  return {};
}

// One tensor dimension: how many steps of `stride` elements an index can take.
struct Axis {
  int64_t count;
  int64_t stride;
};

// |offset| of the farthest element in bytes, or false when it does not fit in 63 bits.
template <std::size_t kAxes>
bool fits_in_64_bits(const Axis (&axes)[kAxes], int64_t contiguous, int64_t element_bytes) {
  int64_t farthest = contiguous;
  for (const Axis& axis : axes) {
    if (axis.count <= 1) continue;
    if (axis.stride == std::numeric_limits<int64_t>::min()) return false;
    int64_t reach = 0;
    if (__builtin_mul_overflow(axis.count - 1, std::abs(axis.stride), &reach)) return false;
    if (__builtin_add_overflow(farthest, reach, &farthest)) return false;
  }
  return !__builtin_mul_overflow(farthest, element_bytes, &farthest);
}

Status overflow(const char* field) {
  return invalid(field, "{} times the extents passes 64 bits", field);
}

Status check_counts(const Problem& problem, const deuce_decode_args& args) {
  if (args.batch < 0 || args.batch > problem.max_batch) {
    return invalid("batch", "batch is {}: the plan's max_batch allows 0 .. {}", args.batch,
                   problem.max_batch);
  }
  if (args.batch == 0) return {};
  if (args.q_len < 1 || args.q_len > problem.max_q_len) {
    return invalid("q_len", "q_len is {}: the plan's max_q_len allows 1 .. {}", args.q_len,
                   problem.max_q_len);
  }
  if (args.num_pages < 0) {
    return invalid("num_pages", "num_pages is {}: it must be 0 or more", args.num_pages);
  }
  return {};
}

// Rows of q, out and lse: token offsets can be as large as int32 with cu_q_len.
struct RowExtents {
  int64_t requests, rows, heads;
};

RowExtents row_extents(const Problem& problem, const deuce_decode_args& args) {
  if (args.cu_q_len != nullptr) {
    return {1, std::numeric_limits<int32_t>::max(), problem.num_q_heads};
  }
  return {args.batch, args.q_len, problem.num_q_heads};
}

Status check_row_strides(const char* field, const int64_t (&stride)[3], const RowExtents& extents,
                         int64_t contiguous, int64_t element_bytes) {
  const Axis axes[]{
      {extents.requests, stride[0]}, {extents.rows, stride[1]}, {extents.heads, stride[2]}};
  return fits_in_64_bits(axes, contiguous, element_bytes) ? Status{} : overflow(field);
}

// Two elements that are written must not share an address; neighbours along one axis are what a
// forgotten stride makes equal.
Status check_written_strides(const char* field, const int64_t (&stride)[3],
                             const deuce_decode_args& args, const Problem& problem,
                             int64_t contiguous) {
  const bool packed = args.cu_q_len != nullptr;
  const Axis axes[]{{packed ? 1 : args.batch, stride[0]},
                    {packed && args.batch > 1 ? 2 : args.q_len, stride[1]},
                    {problem.num_q_heads, stride[2]}};
  constexpr const char* kAxisNames[]{"requests", "rows", "heads"};
  for (int axis = 0; axis < 3; ++axis) {
    const auto [count, step] = axes[axis];
    if (count > 1 && step < contiguous && step > -contiguous) {
      return invalid(field, "{}[{}] is {}: {} of {} elements would overlap", field, axis, step,
                     kAxisNames[axis], contiguous);
    }
  }
  return {};
}

Status check_rows(const Problem& problem, const deuce_decode_args& args) {
  const int q_bytes = dtype_bytes(problem.q_type), out_bytes = dtype_bytes(problem.out_type);
  const RowExtents extents = row_extents(problem, args);
  Status bad = check_pointer("q", args.q, q_bytes);
  if (bad.ok()) bad = check_pointer("out", args.out, out_bytes);
  if (bad.ok()) bad = check_optional("lse", args.lse, alignof(float));
  if (bad.ok())
    bad = check_row_strides("q_stride", args.q_stride, extents, problem.head_dim_qk, q_bytes);
  if (bad.ok()) {
    bad = check_row_strides("out_stride", args.out_stride, extents, problem.head_dim_v, out_bytes);
  }
  if (bad.ok()) {
    bad = check_written_strides("out_stride", args.out_stride, args, problem, problem.head_dim_v);
  }
  if (args.lse == nullptr || !bad.ok()) return bad;
  bad = check_row_strides("lse_stride", args.lse_stride, extents, 1, sizeof(float));
  if (bad.ok()) bad = check_written_strides("lse_stride", args.lse_stride, args, problem, 1);
  return bad;
}

Status check_contiguous(const deuce_decode_args& args) {
  for (const auto& [field, pointer] :
       {std::pair{"block_table", args.block_table}, std::pair{"page_indptr", args.page_indptr},
        std::pair{"page_indices", args.page_indices},
        std::pair{"last_page_len", args.last_page_len}}) {
    if (pointer != nullptr) {
      return invalid(field, "{} is given but the plan's page_size is 0 (contiguous cache)", field);
    }
  }
  if (args.cache_slots < 0) {
    return invalid("cache_slots", "cache_slots is {}: it must be 0 or more", args.cache_slots);
  }
  if (Status bad = check_optional("cache_row", args.cache_row, alignof(int32_t)); !bad.ok())
    return bad;
  const bool shared = args.k_stride[0] == 0 && args.v_stride[0] == 0;
  if (args.cache_row == nullptr && args.num_pages < args.batch && !shared) {
    return invalid("num_pages",
                   "num_pages is {}: without cache_row each of {} requests has its own cache row",
                   args.num_pages, args.batch);
  }
  return {};
}

Status check_indptr_style(const deuce_decode_args& args) {
  if (args.block_table != nullptr) {
    return invalid("page_indptr", "page_indptr and block_table are both given: give one style");
  }
  Status bad = check_pointer("page_indptr", args.page_indptr, alignof(int32_t));
  if (bad.ok()) bad = check_optional("page_indices", args.page_indices, alignof(int32_t));
  if (!bad.ok()) return bad;
  if (args.kv_len == nullptr && args.kv_len_all != 0) {
    return invalid("kv_len_all", "kv_len_all is {}: page_indptr and last_page_len give the lengths",
                   args.kv_len_all);
  }
  if (args.kv_len != nullptr && args.last_page_len == nullptr) return {};
  return check_pointer("last_page_len", args.last_page_len, alignof(int32_t));
}

Status check_table_style(const deuce_decode_args& args) {
  if (args.page_indices != nullptr || args.last_page_len != nullptr) {
    return invalid("page_indptr", "page_indptr is null but {} is given",
                   args.page_indices != nullptr ? "page_indices" : "last_page_len");
  }
  if (args.block_table_columns < 0) {
    return invalid("block_table_columns", "block_table_columns is {}: it must be 0 or more",
                   args.block_table_columns);
  }
  if (args.block_table_columns == 0) return {};
  if (Status bad = check_pointer("block_table", args.block_table, alignof(int32_t)); !bad.ok())
    return bad;
  const Axis axes[]{{args.batch, args.block_table_stride}};
  return fits_in_64_bits(axes, args.block_table_columns, sizeof(int32_t))
             ? Status{}
             : overflow("block_table_stride");
}

Status check_paged(const deuce_decode_args& args) {
  if (args.cache_row != nullptr) {
    return invalid("cache_row",
                   "cache_row is given but the plan has pages: the page table says where keys are");
  }
  if (args.cache_slots != 0) {
    return invalid("cache_slots", "cache_slots is {} but the plan has pages: it must be 0",
                   args.cache_slots);
  }
  return args.page_indptr != nullptr ? check_indptr_style(args) : check_table_style(args);
}

Status check_lengths(const Problem& problem, const deuce_decode_args& args) {
  for (const auto& [field, pointer] :
       {std::pair{"cu_q_len", args.cu_q_len}, std::pair{"kv_len", args.kv_len},
        std::pair{"kv_start", args.kv_start}}) {
    if (Status bad = check_optional(field, pointer, alignof(int32_t)); !bad.ok()) return bad;
  }
  if (args.kv_len != nullptr && args.kv_len_all != 0) {
    return invalid("kv_len_all", "kv_len_all is {} and kv_len is given: give one of them",
                   args.kv_len_all);
  }
  if (args.kv_len != nullptr || args.page_indptr != nullptr) return {};
  const int64_t capacity = problem.page_size > 0
                               ? int64_t{args.block_table_columns} * problem.page_size
                               : args.cache_slots;
  if (args.kv_len_all < 0 || args.kv_len_all > capacity) {
    return invalid("kv_len_all", "kv_len_all is {}: it must be in 0 .. {}, the slots of {}",
                   args.kv_len_all, capacity,
                   problem.page_size > 0 ? "the page table" : "a cache row");
  }
  if (args.kv_start == nullptr && args.kv_len_all > problem.max_kv_len) {
    return invalid("kv_len_all", "kv_len_all is {}: the plan's max_kv_len is {}", args.kv_len_all,
                   problem.max_kv_len);
  }
  return {};
}

struct CacheSide {
  const char *field, *stride_field, *scale_field, *scale_stride_field;
  const void* data;
  const int64_t (&stride)[3];
  const float* token_scale;
  const int64_t (&token_scale_stride)[3];
  int64_t head_dim;
};

Status check_cache_side(const Problem& problem, const deuce_decode_args& args,
                        const CacheSide& side) {
  const int bytes = dtype_bytes(problem.kv_type);
  const int64_t slots = problem.page_size > 0 ? problem.page_size : args.cache_slots;
  const bool has_keys = args.num_pages > 0 && slots > 0;
  Status bad = has_keys ? check_pointer(side.field, side.data, bytes)
                        : check_optional(side.field, side.data, bytes);
  if (!bad.ok()) return bad;
  const Axis axes[]{{args.num_pages, side.stride[0]},
                    {slots, side.stride[1]},
                    {problem.num_kv_heads, side.stride[2]}};
  if (!fits_in_64_bits(axes, side.head_dim, bytes)) return overflow(side.stride_field);
  if (side.token_scale == nullptr) return {};
  if (!is_fp8(problem.kv_type)) {
    return invalid(side.scale_field, "{} is given but kv_dtype is {}: only fp8 tensors have scales",
                   side.scale_field, name_of(problem.kv_type));
  }
  bad = check_optional(side.scale_field, side.token_scale, alignof(float));
  const auto& stride = side.token_scale_stride;
  const Axis scale_axes[]{
      {args.num_pages, stride[0]}, {slots, stride[1]}, {problem.num_kv_heads, stride[2]}};
  if (bad.ok() && !fits_in_64_bits(scale_axes, 1, sizeof(float)))
    bad = overflow(side.scale_stride_field);
  return bad;
}

Status check_caches(const Problem& problem, const deuce_decode_args& args) {
  const CacheSide k{
      "k",           "k_stride",         "k_token_scale",           "k_token_scale_stride", args.k,
      args.k_stride, args.k_token_scale, args.k_token_scale_stride, problem.head_dim_qk};
  const CacheSide v{
      "v",           "v_stride",         "v_token_scale",           "v_token_scale_stride", args.v,
      args.v_stride, args.v_token_scale, args.v_token_scale_stride, problem.head_dim_v};
  if (Status bad = check_cache_side(problem, args, k); !bad.ok()) return bad;
  return check_cache_side(problem, args, v);
}

Status check_descale(const Problem& problem, const deuce_decode_args& args, const char* field,
                     const char* stride_field, const float* scale, const int64_t (&stride)[2],
                     DType type, const char* type_field) {
  if (scale == nullptr) return {};
  if (!is_fp8(type)) {
    return invalid(field, "{} is given but {} is {}: only fp8 tensors have scales", field,
                   type_field, name_of(type));
  }
  if (Status bad = check_optional(field, scale, alignof(float)); !bad.ok()) return bad;
  const Axis axes[]{{args.batch, stride[0]}, {problem.num_kv_heads, stride[1]}};
  return fits_in_64_bits(axes, 1, sizeof(float)) ? Status{} : overflow(stride_field);
}

Status check_scales(const Problem& problem, const deuce_decode_args& args) {
  Status bad = check_descale(problem, args, "q_descale", "q_descale_stride", args.q_descale,
                             args.q_descale_stride, problem.q_type, "q_dtype");
  if (bad.ok()) {
    bad = check_descale(problem, args, "k_descale", "k_descale_stride", args.k_descale,
                        args.k_descale_stride, problem.kv_type, "kv_dtype");
  }
  if (bad.ok()) {
    bad = check_descale(problem, args, "v_descale", "v_descale_stride", args.v_descale,
                        args.v_descale_stride, problem.kv_type, "kv_dtype");
  }
  if (bad.ok()) bad = check_optional("sink", args.sink, dtype_bytes(problem.sink_type));
  if (!bad.ok()) return bad;
  for (const auto& [field, factor] :
       {std::pair{"score_scale", args.score_scale}, std::pair{"out_scale", args.out_scale}}) {
    if (!std::isfinite(factor)) {
      return invalid(field, "{} is {}: it must be finite, or 0 for 1", field, factor);
    }
  }
  return {};
}

Status check_reserved(const Problem& problem, const deuce_decode_args& args) {
  if (args.tree_mask != nullptr) {
    return unsupported("tree_mask", "tree_mask is given: it is reserved, pass NULL");
  }
  if (args.trace != nullptr && (problem.flags & DEUCE_FLAG_TRACE) == 0) {
    return invalid("trace", "trace is given but the plan was made without DEUCE_FLAG_TRACE");
  }
  return {};
}

}  // namespace

Status validate_args(const Problem& problem, deuce_decode_args& args) {
  if (args.score_scale == 0) args.score_scale = 1;
  if (args.out_scale == 0) args.out_scale = 1;
  Status bad = check_counts(problem, args);
  if (!bad.ok()) return bad;
  if (args.batch == 0) return check_reserved(problem, args);
  if (problem.page_size == 0 && args.num_pages == 0 && args.cache_row == nullptr) {
    args.num_pages = args.batch;
  }
  bad = problem.page_size > 0 ? check_paged(args) : check_contiguous(args);
  if (bad.ok()) bad = check_rows(problem, args);
  if (bad.ok()) bad = check_lengths(problem, args);
  if (bad.ok()) bad = check_caches(problem, args);
  if (bad.ok()) bad = check_scales(problem, args);
  if (bad.ok()) bad = check_reserved(problem, args);
  return bad;
}

}  // namespace deuce
