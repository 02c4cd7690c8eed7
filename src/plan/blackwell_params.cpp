// SPDX-License-Identifier: Apache-2.0
// Parameters of the Blackwell kernel; see blackwell_params.h.
#include "plan/blackwell_params.h"

#include <algorithm>

#include "kernel/blackwell/config.h"
#include "kernel/combine.h"
#include "plan/float_type.h"
#include "plan/limits.h"
#include "plan/names.h"
#include "plan/tensor_steps.h"

namespace deuce {
namespace {

constexpr int64_t kMaxPosition = int64_t{1} << 31;
constexpr int64_t kMaxStride = int64_t{1} << 39;  // elements: tensor maps hold 2^40 bytes

Status check_shape(const Problem& problem) {
  if (problem.head_dim_qk != problem.head_dim_v ||
      (problem.head_dim_qk != 64 && problem.head_dim_qk != 128)) {
    return unsupported("head_dim_qk",
                       "head_dim_qk is {}, head_dim_v {}: blackwell takes 64 or 128, "
                       "equal for both",
                       problem.head_dim_qk, problem.head_dim_v);
  }
  if (problem.group > blackwell::Config::kTileRows) {
    return unsupported("num_q_heads",
                       "num_q_heads is {} for {} KV heads: blackwell takes at most "
                       "128 query heads per KV head",
                       problem.num_q_heads, problem.num_kv_heads);
  }
  if (problem.page_size != 0 && problem.page_size < 8) {
    return unsupported("page_size", "page_size is {}: blackwell needs 8 or more (cpu takes any)",
                       problem.page_size);
  }
  if (problem.max_kv_len >= kMaxPosition) {
    return unsupported("max_kv_len", "max_kv_len is {}: blackwell takes less than 2^31",
                       problem.max_kv_len);
  }
  return {};
}

Status check_types(const Problem& problem) {
  if (problem.kv_type != DType::bf16 && problem.kv_type != DType::f16) {
    return unsupported("kv_dtype", "kv_dtype is {}: blackwell takes f16 or bf16",
                       name_of(problem.kv_type));
  }
  if (problem.q_type != problem.kv_type) {
    return unsupported("q_dtype", "q_dtype is {}: blackwell takes the type of the cache",
                       name_of(problem.q_type));
  }
  if (problem.out_type != problem.q_type) {
    return unsupported("out_dtype", "out_dtype is {}: blackwell writes the type of q",
                       name_of(problem.out_type));
  }
  return {};
}

}  // namespace

Status check_blackwell(const Problem& problem) {
  for (const Status& status : {check_shape(problem), check_types(problem)}) {
    if (!status.ok()) return status;
  }
  if (problem.split_kv_len % blackwell::Config::kTileRows != 0) {
    return unsupported("split_kv_len", "split_kv_len is {}: blackwell takes multiples of 128",
                       problem.split_kv_len);
  }
  if (problem.score_slots < 0 || problem.score_slots > 3) {
    return unsupported("score_slots", "score_slots is {}: blackwell takes 0 to 3",
                       problem.score_slots);
  }
  if (problem.group * problem.row_replicas > blackwell::Config::kTileRows) {
    return unsupported("row_replicas",
                       "row_replicas is {}: blackwell takes that for at most {} query heads per KV "
                       "head, here {}",
                       problem.row_replicas, blackwell::Config::kTileRows / problem.row_replicas,
                       problem.group);
  }
  return {};
}

namespace {

Status check_rows(const char* field, const void* base, const int64_t (&stride)[3],
                  const Extents& extents) {
  if (reinterpret_cast<std::uintptr_t>(base) % 16 != 0) {
    return unsupported(field, "{} is not aligned to 16 bytes: blackwell needs that", field);
  }
  for (int axis = 0; axis < 3; ++axis) {
    if (extents.count[axis] <= 1) continue;
    if (stride[axis] < 0 || stride[axis] % 8 != 0 || stride[axis] >= kMaxStride) {
      return unsupported(fmt::format("{}_stride", field),
                         "{}_stride[{}] is {} elements: blackwell takes multiples of 8 from 0 to "
                         "2^39 - 8",
                         field, axis, stride[axis]);
    }
  }
  return {};
}

/// Query heads of a KV head are one axis of the tensor map, KV heads the next.
Status check_group_stride(const Problem& problem, const Call& call) {
  if (problem.num_kv_heads == 1 || call.q_stride[2] < kMaxStride / problem.group) return {};
  return unsupported("q_stride",
                     "q_stride[2] is {} elements: blackwell takes less than 2^39 / {}, the query "
                     "heads per KV head",
                     call.q_stride[2], problem.group);
}

}  // namespace

Status check_blackwell_call(const Problem& problem, const Call& call) {
  if (call.k_token_scale != nullptr || call.v_token_scale != nullptr) {
    return unsupported("k_token_scale", "a token scale is given: blackwell takes none");
  }
  if (call.cache_slots > kMaxExtent) {
    return unsupported("cache_slots", "cache_slots is {}: blackwell takes at most 2^32",
                       call.cache_slots);
  }
  const bool ragged = call.cu_q_len != nullptr;
  const Extents rows{
      {ragged ? 1 : call.batch, ragged ? kMaxPosition : call.q_len, problem.num_q_heads}};
  const int64_t slots = problem.page_size == 0 ? call.cache_slots : problem.page_size;
  const Extents cache{{call.num_pages, slots, problem.num_kv_heads}};
  for (const Status& status :
       {check_rows("q", call.q, call.q_stride, rows), check_rows("k", call.k, call.k_stride, cache),
        check_rows("v", call.v, call.v_stride, cache),
        check_rows("out", call.out, call.out_stride, rows), check_group_stride(problem, call)}) {
    if (!status.ok()) return status;
  }
  return {};
}

namespace {

/// Replicas where the timing model says that they pay (docs/blackwell.md): head dim 64, whose
/// softmax is the bound. By fields of the plan alone, so that lengths and batch never change bits.
/// Not with split_kv_len: callers take max_q_len from the batch, on which bits then must not
/// depend.
int choose_row_replicas(const Problem& problem) {
  if (problem.row_replicas != 0) return problem.row_replicas;
  if (problem.split_kv_len > 0) return 1;
  if (problem.head_dim_v != 64) return 1;
  const int rows = problem.group * problem.max_q_len;
  for (const int replicas : {4, 2}) {
    if (rows <= blackwell::Config::kTileRows / replicas) return replicas;
  }
  return 1;
}

}  // namespace

BlackwellPlan plan_blackwell(const Problem& problem, int workers) {
  BlackwellPlan plan;
  plan.workers = workers;
  plan.score_slots = problem.score_slots == 0 ? 2 : problem.score_slots;
  plan.row_replicas = choose_row_replicas(problem);
  plan.query_tokens =
      std::min(blackwell::Config::kTileRows / plan.row_replicas / problem.group, problem.max_q_len);
  plan.shape = WorkShape{.kv_heads = problem.num_kv_heads,
                         .group = problem.group,
                         .row_tile = plan.query_tokens * problem.group,
                         .kv_tile = blackwell::Config::kTileRows,
                         .workers = workers,
                         .num_splits = problem.num_splits,
                         .split_tiles = problem.split_kv_len / blackwell::Config::kTileRows,
                         .mask = {.causal = problem.causal,
                                  .window_left = problem.window_left,
                                  .window_right = problem.window_right}};
  plan.partials = partial_map(plan.shape, {.max_batch = problem.max_batch,
                                           .max_q_len = problem.max_q_len,
                                           .max_kv_len = problem.max_kv_len});
  plan.counter_bytes =
      workspace_aligned(static_cast<std::size_t>(plan.partials.counter_count()) * 4);
  // Each block stages a piece before it joins the tree of split_kv_len, and replicated rows.
  const bool stages = plan.partials.tree || plan.row_replicas > 1;
  const int64_t slots =
      plan.partials.slot_count() + (stages ? int64_t{workers} * plan.row_replicas : 0);
  const int64_t floats = partial_floats(blackwell::partial_rows(plan.shape), problem.head_dim_v);
  plan.partial_bytes = workspace_aligned(static_cast<std::size_t>(slots * floats) * 4);
  return plan;
}

WorkspaceNeed workspace_of(const BlackwellPlan& plan) {
  return {.bytes = plan.counter_bytes + plan.partial_bytes, .control_bytes = plan.counter_bytes};
}

namespace {

TensorMapSpec query_map(const Problem& problem, const BlackwellPlan& plan, const Call& call) {
  const bool ragged = call.cu_q_len != nullptr;
  const auto bytes = [](int64_t elements) { return static_cast<uint64_t>(elements * 2); };
  TensorMapSpec map;
  map.base = call.q;
  map.rank = 5;
  map.swizzle = Swizzle::bytes128;
  map.bf16 = problem.q_type == DType::bf16;
  // The host does not know how many ragged rows there are; the kernel asks for real ones only.
  const int64_t rows = ragged ? kMaxPosition : call.q_len;
  map.extent = {static_cast<uint64_t>(problem.head_dim_qk), static_cast<uint64_t>(problem.group),
                static_cast<uint64_t>(rows), static_cast<uint64_t>(problem.num_kv_heads),
                static_cast<uint64_t>(ragged ? 1 : call.batch)};
  map.stride_bytes = {bytes(call.q_stride[2]), bytes(call.q_stride[1]),
                      bytes(call.q_stride[2] * problem.group),
                      bytes(ragged ? 0 : call.q_stride[0])};
  map.box = {blackwell::Config::kBlockColumns, static_cast<uint32_t>(problem.group),
             static_cast<uint32_t>(ragged ? 1 : plan.query_tokens), 1, 1};
  replace_idle_strides(map, 16);
  return map;
}

/// Pages or rows that the maps and the kernel know: one where all requests share a row.
int32_t pages_of(const Problem& problem, const Call& call) {
  const bool shared = problem.page_size == 0 && call.cache_row == nullptr &&
                      call.k_stride[0] == 0 && call.v_stride[0] == 0;
  return shared ? std::min(call.num_pages, 1) : call.num_pages;
}

TensorMapSpec cache_map(const Problem& problem, const Call& call, const void* base,
                        const int64_t (&stride)[3], uint32_t height) {
  const auto bytes = [](int64_t elements) { return static_cast<uint64_t>(elements * 2); };
  const int64_t slots = problem.page_size == 0 ? call.cache_slots : problem.page_size;
  TensorMapSpec map;
  map.base = base;
  map.rank = 4;
  map.swizzle = Swizzle::bytes128;
  map.bf16 = problem.kv_type == DType::bf16;
  map.extent = {static_cast<uint64_t>(problem.head_dim_v),
                static_cast<uint64_t>(std::max<int64_t>(slots, 1)),
                static_cast<uint64_t>(problem.num_kv_heads),
                static_cast<uint64_t>(std::max(pages_of(problem, call), 1))};
  map.stride_bytes = {bytes(stride[1]), bytes(stride[2]), bytes(stride[0]), 0};
  map.box = {blackwell::Config::kBlockColumns, height, 1, 1};
  replace_idle_strides(map, 16);
  return map;
}

Status encode_maps(const Problem& problem, const BlackwellPlan& plan, const Call& call,
                   const EncodeMap& encode, blackwell::Params& params) {
  Status status = encode(query_map(problem, plan, call), params.q_map);
  for (std::size_t i = 0; status.ok() && i < blackwell::kBoxHeights; ++i) {
    const uint32_t height = 1u << i;
    status = encode(cache_map(problem, call, call.k, call.k_stride, height), params.k_map[i]);
    if (!status.ok()) break;
    status = encode(cache_map(problem, call, call.v, call.v_stride, height), params.v_map[i]);
  }
  return status;
}

}  // namespace

Status fill_params(const Problem& problem, const BlackwellPlan& plan, const Call& call,
                   std::byte* workspace, const EncodeMap& encode, blackwell::Params& params) {
  params.shape = plan.shape;
  params.shape.batch = call.batch;
  params.partial_map = plan.partials;
  params.counters = reinterpret_cast<uint32_t*>(workspace);
  params.partials = reinterpret_cast<float*>(workspace + plan.counter_bytes);
  params.kv_len = call.kv_len;
  params.kv_start = call.kv_start;
  params.cu_q_len = call.cu_q_len;
  params.kv_len_all = call.kv_len_all;
  params.q_len = call.q_len;
  params.max_q_len = problem.max_q_len;
  const bool paged = problem.page_size != 0;
  params.paged = paged;
  params.max_kv_len = problem.max_kv_len;
  params.tag = call.tag;
  params.page_size = static_cast<int32_t>(
      paged ? problem.page_size : std::min<int64_t>(call.cache_slots, kMaxPosition - 1));
  params.num_pages = pages_of(problem, call);
  params.page_indptr = call.page_indptr;
  params.last_page_len = call.last_page_len;
  if (paged) {
    params.page_ids = call.page_indptr != nullptr ? call.page_indices : call.block_table;
    params.page_ids_stride = call.block_table_stride;
    params.capacity = int64_t{call.block_table_columns} * problem.page_size;
  } else {
    params.page_ids = call.cache_row;
    params.page_ids_stride = 1;
    params.capacity = call.cache_slots;
  }
  params.out = call.out;
  params.lse = call.lse;
  params.out_stride_request = call.out_stride[0];
  params.out_stride_row = call.out_stride[1];
  params.out_stride_head = call.out_stride[2];
  params.lse_stride_request = call.lse_stride[0];
  params.lse_stride_row = call.lse_stride[1];
  params.lse_stride_head = call.lse_stride[2];
  params.lse_base2 = problem.lse_base2;
  params.score_scale = problem.softmax_scale * call.score_scale;
  params.softcap = problem.softcap;
  params.out_factor = call.out_scale;
  params.sinks = {call.sink, float_type_of(problem.sink_type)};
  params.query_tokens = plan.query_tokens;
  return encode_maps(problem, plan, call, encode, params);
}

}  // namespace deuce
