// SPDX-License-Identifier: Apache-2.0
// Support rules, workspace layout, tensor-map specification and launch arguments of the Hopper
// kernel.
#include "plan/hopper_params.h"

#include <algorithm>
#include <bit>

#include "kernel/split_tree.h"
#include "plan/float_type.h"
#include "plan/hopper_shapes.h"
#include "plan/limits.h"
#include "plan/names.h"
#include "plan/tensor_steps.h"

namespace deuce::hopper {
namespace {

// Positions and windows then add up in 32 bits.
constexpr int64_t kMaxKeys = int64_t{1} << 29;
constexpr int64_t kMaxStrideBytes = int64_t{1} << 40;  // of tensor maps
constexpr double kLog2OfE = 1.4426950408889634;

Status check_types(const Problem& problem) {
  if (problem.q_type != DType::bf16 && problem.q_type != DType::f16) {
    return unsupported("q_dtype", "q_dtype is {}: hopper takes bf16 and f16",
                       name_of(problem.q_type));
  }
  if (problem.kv_type != problem.q_type && problem.kv_type != DType::e4m3) {
    return unsupported("kv_dtype", "kv_dtype is {}: hopper takes the type of q ({}) and e4m3",
                       name_of(problem.kv_type), name_of(problem.q_type));
  }
  if (is_fp8(problem.out_type)) {
    return unsupported("out_dtype", "out_dtype is {}: hopper writes f32, f16 and bf16",
                       name_of(problem.out_type));
  }
  return {};
}

Status check_modes(const Problem& problem) {
  if (problem.score_slots > 0 && shape_of(problem) < 0) {
    return unsupported("score_slots",
                       "score_slots is {}: hopper takes 0 and 1, and 2 with more than 16 rows of a "
                       "KV head and a 16-bit cache",
                       problem.score_slots);
  }
  if (problem.row_replicas > 1) {
    return unsupported("row_replicas", "row_replicas is {}: hopper has none; pass 0 or 1",
                       problem.row_replicas);
  }
  if ((problem.flags & DEUCE_FLAG_TRACE) != 0) {
    return unsupported("flags", "flags is {:#x}: hopper does not take DEUCE_FLAG_TRACE",
                       problem.flags);
  }
  return {};
}

Status check_stride(const char* field, const int64_t (&stride)[3], const Extents& extents,
                    int64_t element_bytes) {
  for (int axis = 0; axis < 3; ++axis) {
    if (extents.count[axis] <= 1) continue;
    if (stride[axis] < 0 || stride[axis] >= kMaxStrideBytes / element_bytes ||
        stride[axis] * element_bytes % 16 != 0) {
      return unsupported(field,
                         "{}[{}] is {} elements: hopper takes multiples of 16 bytes from 0 to 2^40 "
                         "- 16",
                         field, axis, stride[axis]);
    }
  }
  return {};
}

Status check_pointer(const char* field, const void* pointer, unsigned alignment) {
  if (reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0) return {};
  return unsupported(field, "{} is {}: hopper takes addresses that are a multiple of {} bytes",
                     field, pointer, alignment);
}

Status check_even(const char* field, const int64_t (&stride)[3], const Extents& extents) {
  for (int axis = 0; axis < 3; ++axis) {
    if (extents.count[axis] > 1 && stride[axis] % 2 != 0) {
      return unsupported(field, "{}[{}] is {} elements: hopper takes even strides", field, axis,
                         stride[axis]);
    }
  }
  return {};
}

/// A row or page stride of 0 shares one row among all requests; for both tensors or for none, and
/// not for pages.
Status check_shared_row(const Problem& problem, const Call& call) {
  const bool k = call.k_stride[0] == 0, v = call.v_stride[0] == 0;
  if (call.num_pages <= 1 || (k == v && !(k && problem.page_size > 0))) return {};
  return unsupported(k ? "k_stride" : "v_stride",
                     "{}[0] is 0 with {} {}: hopper shares a row of a contiguous cache, of K and V "
                     "alike",
                     k ? "k_stride" : "v_stride", call.num_pages,
                     problem.page_size > 0 ? "pages" : "rows");
}

/// How the items of a step whose requests are equally long are shared out. 0 workers an item where
/// there are more items than workers, or where more than one worker in sixteen would be left out.
struct Sharing {
  int workers_per_item = 0, used_workers = 1;
};

Sharing share_items(const Config& shape, const Problem& problem, const Call& call, int workers) {
  if (call.cu_q_len != nullptr) return {};
  const int64_t rows = int64_t{call.q_len} * problem.group;
  const int64_t items =
      int64_t{call.batch} * problem.num_kv_heads * ((rows + shape.rows() - 1) / shape.rows());
  if (items < 1 || items > workers) return {};
  const auto each = static_cast<int>(workers / items), used = static_cast<int>(each * items);
  if (used < workers - workers / 16) return {};
  return {.workers_per_item = each, .used_workers = used};
}

}  // namespace

Status check_problem(const Problem& problem) {
  if (problem.head_dim_qk != problem.head_dim_v ||
      (problem.head_dim_qk != 64 && problem.head_dim_qk != 128)) {
    return unsupported(
        "head_dim_qk",
        "head_dim_qk is {} and head_dim_v {}: hopper takes 64 and 128, both the same",
        problem.head_dim_qk, problem.head_dim_v);
  }
  if (Status bad = check_types(problem); !bad.ok()) return bad;
  if (Status bad = check_modes(problem); !bad.ok()) return bad;
  if (problem.max_kv_len > kMaxKeys) {
    return unsupported("max_kv_len", "max_kv_len is {}: hopper takes at most {}",
                       problem.max_kv_len, kMaxKeys);
  }
  const int64_t rows = int64_t{problem.group} * problem.max_q_len;
  const int64_t groups = rows / kGroupRows + 1;
  const int64_t tiles = problem.max_kv_len / kTileTokens + 2 + kItemCost;
  const double line = static_cast<double>(problem.max_batch) * problem.num_kv_heads *
                      static_cast<double>(groups) * static_cast<double>(tiles);
  if (line > 2e9 || rows >= (int64_t{1} << 30)) {
    return unsupported("max_kv_len",
                       "max_batch {} x max_kv_len {}: hopper counts fewer than 2^31 KV tiles",
                       problem.max_batch, problem.max_kv_len);
  }
  return {};
}

Status check_call(const Problem& problem, const Call& call) {
  const int kv_bytes = dtype_bytes(problem.kv_type);
  if (call.k_token_scale != nullptr || call.v_token_scale != nullptr) {
    return unsupported("k_token_scale", "a token scale is given: hopper takes descales only");
  }
  if (Status bad = check_pointer("k", call.k, 16); !bad.ok()) return bad;
  if (Status bad = check_pointer("v", call.v, 16); !bad.ok()) return bad;
  const int64_t slots = problem.page_size > 0 ? problem.page_size : call.cache_slots;
  if (slots > kMaxExtent) {
    return unsupported("cache_slots", "cache_slots is {}: hopper takes at most 2^32", slots);
  }
  const Extents cache{{call.num_pages, slots, problem.num_kv_heads}};
  Status bad = check_stride("k_stride", call.k_stride, cache, kv_bytes);
  if (bad.ok()) bad = check_stride("v_stride", call.v_stride, cache, kv_bytes);
  if (bad.ok()) bad = check_shared_row(problem, call);
  if (!bad.ok()) return bad;
  const bool ragged = call.cu_q_len != nullptr;
  const Extents rows{
      {ragged ? 1 : call.batch, ragged ? kMaxKeys : call.q_len, problem.num_q_heads}};
  if (Status odd = check_pointer("q", call.q, 4); !odd.ok()) return odd;
  if (Status odd = check_even("q_stride", call.q_stride, rows); !odd.ok()) return odd;
  if (problem.out_type == DType::f32) return {};
  if (Status odd = check_pointer("out", call.out, 4); !odd.ok()) return odd;
  return check_even("out_stride", call.out_stride, rows);
}

Element element_of(const Problem& problem) {
  if (problem.kv_type == DType::e4m3) return Element::e4m3;
  return problem.kv_type == DType::bf16 ? Element::bf16 : Element::half;
}

int shape_of(const Problem& problem) {
  return select_shape(problem.head_dim_qk, element_of(problem),
                      int64_t{problem.group} * problem.max_q_len,
                      problem.num_splits > 0 || problem.split_kv_len > 0, problem.score_slots);
}

WorkspaceParts workspace_parts(const Config& shape, const Problem& problem, int workers) {
  WorkspaceParts parts;
  parts.max_row_tiles = static_cast<int>(
      (int64_t{problem.group} * problem.max_q_len + shape.rows() - 1) / shape.rows());
  const int64_t items = int64_t{problem.max_batch} * problem.num_kv_heads * parts.max_row_tiles;
  int64_t ends = workers;  // counters of items that may be cut
  if (problem.split_kv_len > 0) {
    // Tiles count from a box border, up to a tile before the first key.
    parts.tree_levels = tree_levels((problem.max_kv_len + kTileTokens) / problem.split_kv_len + 1);
    parts.slots = int64_t{3} * parts.tree_levels * workers;
  } else if (problem.num_splits > 0) {
    parts.slots = problem.num_splits > 1 ? items * problem.num_splits : 0;
    ends = items;
  } else {
    parts.slots = int64_t{2} * workers;
  }
  const auto rows = static_cast<std::size_t>(parts.slots * shape.rows());
  parts.control_bytes = workspace_aligned(
      static_cast<std::size_t>((parts.slots + ends) * shape.attend_warps()) * sizeof(uint32_t));
  parts.partials = parts.control_bytes;
  parts.partial_rows =
      parts.partials +
      workspace_aligned(rows * static_cast<std::size_t>(shape.head_dim) * sizeof(float));
  parts.total = parts.partial_rows + workspace_aligned(rows * 2 * sizeof(float));
  return parts;
}

int box_rows_of(const Problem& problem) {
  if (problem.page_size == 0) return kTileTokens;
  const int power = problem.page_size & -problem.page_size;
  return std::min(power, kTileTokens);
}

TensorMapSpec map_spec(const Config& shape, const Problem& problem, const Call& call, bool is_v) {
  const auto bytes = static_cast<uint64_t>(shape.element_bytes());
  const int64_t(&stride)[3] = is_v ? call.v_stride : call.k_stride;
  const auto span = static_cast<uint64_t>(shape.span_bytes());
  const int64_t slots = problem.page_size > 0 ? problem.page_size : call.cache_slots;
  const int box_rows = box_rows_of(problem);
  TensorMapSpec spec;
  spec.base = is_v ? call.v : call.k;
  spec.rank = 5;
  spec.element_bytes = static_cast<uint32_t>(bytes);
  spec.bf16 = shape.element == Element::bf16;
  spec.swizzle = span == 128 ? Swizzle::bytes128 : Swizzle::bytes64;
  spec.extent = {span / bytes, static_cast<uint64_t>(std::max<int64_t>(slots, 1)),
                 static_cast<uint64_t>(shape.halves()), static_cast<uint64_t>(problem.num_kv_heads),
                 static_cast<uint64_t>(std::max(call.num_pages, 1))};
  spec.stride_bytes = {static_cast<uint64_t>(stride[1]) * bytes, span,
                       static_cast<uint64_t>(stride[2]) * bytes,
                       static_cast<uint64_t>(stride[0]) * bytes};
  if (stride[0] == 0) spec.extent[4] = 1;
  replace_idle_strides(spec, span);
  spec.box = {static_cast<uint32_t>(span / bytes), static_cast<uint32_t>(box_rows),
              static_cast<uint32_t>(shape.box_halves(box_rows)), 1, 1};
  return spec;
}

Params make_params(const Config& shape, const Problem& problem, const Call& call, int workers,
                   std::byte* workspace) {
  Params params;
  const bool paged = problem.page_size > 0;
  params.batch = call.batch;
  params.kv_heads = problem.num_kv_heads;
  params.group = problem.group;
  const auto bound = [](int64_t keys) {
    return static_cast<int32_t>(keys < 0 ? kMaxKeys : std::min(keys, kMaxKeys));
  };
  params.window_left = bound(problem.window_left);
  params.window_right = problem.causal && call.q_len > 1 ? 0 : bound(problem.window_right);
  params.q_len = call.q_len;
  params.num_splits = problem.num_splits;
  params.split_tiles = problem.split_kv_len / kTileTokens;
  params.by_split = FastDivide::by(std::max(params.split_tiles, 1));
  params.by_group = FastDivide::by(problem.group);
  params.by_workers = FastDivide::by(workers);
  const Sharing sharing = share_items(shape, problem, call, workers);
  params.workers_per_item = sharing.workers_per_item;
  params.by_workers_per_item = FastDivide::by(std::max(sharing.workers_per_item, 1));
  params.by_used_workers = FastDivide::by(sharing.used_workers);
  params.by_page = FastDivide::by(std::max(problem.page_size, 1));
  params.kv_len_all = static_cast<int32_t>(call.kv_len_all);
  params.max_kv_len = static_cast<int32_t>(problem.max_kv_len);
  params.max_q_len = problem.max_q_len;
  params.capacity =
      std::min(paged ? int64_t{call.block_table_columns} * problem.page_size : call.cache_slots,
               kMaxCapacity);
  params.kv_len = call.kv_len;
  params.kv_start = call.kv_start;
  params.cu_q_len = call.cu_q_len;

  params.page_size = problem.page_size;
  params.paged = paged ? 1 : 0;
  params.num_pages = call.num_pages;
  params.box_rows = box_rows_of(problem);
  params.box_halves = shape.box_halves(params.box_rows);
  params.boxes_per_half = kTileTokens / params.box_rows;
  params.boxes_per_tile = params.boxes_per_half * (shape.halves() / params.box_halves);
  params.boxes_per_tile_log2 = std::countr_zero(static_cast<uint32_t>(params.boxes_per_tile));
  params.tiles_per_round = std::max(32 / params.boxes_per_tile, 1);
  params.rounds_per_tile = std::max(params.boxes_per_tile / 32, 1);
  params.k_data = static_cast<const unsigned char*>(call.k);
  params.v_data = static_cast<const unsigned char*>(call.v);
  for (int i = 0; i < 3; ++i) {
    params.k_step[i] = call.k_stride[i] * shape.element_bytes();
    params.v_step[i] = call.v_stride[i] * shape.element_bytes();
  }
  params.block_table = call.block_table;
  params.block_table_stride = call.block_table_stride;
  params.page_indptr = call.page_indptr;
  params.page_indices = call.page_indices;
  params.last_page_len = call.last_page_len;
  params.cache_row = call.cache_row;
  params.shared_row = !paged && call.k_stride[0] == 0 && call.v_stride[0] == 0 ? 1 : 0;

  params.q = call.q;
  params.out = call.out;
  params.lse = call.lse;
  std::copy_n(call.q_stride, 3, params.q_stride);
  std::copy_n(call.out_stride, 3, params.out_stride);
  std::copy_n(call.lse_stride, 3, params.lse_stride);
  params.q_is_bf16 = problem.q_type == DType::bf16 ? 1 : 0;
  params.out_element = float_type_of(problem.out_type);
  params.sinks = {call.sink, float_type_of(problem.sink_type)};
  params.lse_factor = problem.lse_base2 ? 1.0F : static_cast<float>(1.0 / kLog2OfE);
  const double scale = double{problem.softmax_scale} * call.score_scale;
  params.scale_log2 = static_cast<float>(scale * kLog2OfE);
  params.softcap = problem.softcap;
  params.softcap_scale = problem.softcap > 0 ? static_cast<float>(scale / problem.softcap) : 0.0F;
  params.out_scale = call.out_scale;
  params.k_descale = call.k_descale;
  params.v_descale = call.v_descale;
  std::copy_n(call.k_descale_stride, 2, params.k_descale_stride);
  std::copy_n(call.v_descale_stride, 2, params.v_descale_stride);

  const WorkspaceParts parts = workspace_parts(shape, problem, workers);
  params.max_row_tiles = parts.max_row_tiles;
  params.slots = static_cast<int32_t>(parts.slots);
  params.tree_levels = parts.tree_levels;
  params.arrivals = reinterpret_cast<uint32_t*>(workspace);
  params.partials = reinterpret_cast<float*>(workspace + parts.partials);
  params.partial_rows = reinterpret_cast<float*>(workspace + parts.partial_rows);
  params.tag = call.tag;
  return params;
}

}  // namespace deuce::hopper
