// SPDX-License-Identifier: Apache-2.0
// Rules for one step's arguments except the cache: counts, rows, scales, factors, reserved fields.
// Runs at every call: reads nothing behind a pointer and allocates nothing unless it refuses.
#include <cmath>

#include "api/checks.h"
#include "api/validate.h"
#include "plan/names.h"

namespace deuce {
namespace {

Status check_counts(const Problem& problem, const deuce_decode_args& args) {
  if (args.batch < 0 || args.batch > problem.max_batch) {
    return invalid("batch", "batch is {}: it must be in 0 .. {}, the plan's max_batch", args.batch,
                   problem.max_batch);
  }
  if (args.batch > 0 && (args.q_len < 1 || args.q_len > problem.max_q_len)) {
    return invalid("q_len", "q_len is {}: it must be in 1 .. {}, the plan's max_q_len", args.q_len,
                   problem.max_q_len);
  }
  return {};
}

// q, out or lse: rows of queries at caller's strides.
struct RowTensor {
  const char* stride_field;
  const int64_t (&stride)[3];
  int64_t contiguous;  // elements of the last dimension
  int64_t element_bytes;
};

// With cu_q_len a token number can be any int32, whatever batch and q_len say.
Status check_row_reach(const Problem& problem, const deuce_decode_args& args,
                       const RowTensor& tensor) {
  const bool packed = args.cu_q_len != nullptr;
  const Axis axes[]{{packed ? 1 : args.batch, tensor.stride[0]},
                    {packed ? std::numeric_limits<int32_t>::max() : args.q_len, tensor.stride[1]},
                    {problem.num_q_heads, tensor.stride[2]}};
  return check_reach(tensor.stride_field, axes, tensor.contiguous, tensor.element_bytes);
}

// Two elements that are written must not share an address. Neighbours along one axis are what a
// forgotten stride makes equal.
Status check_no_overlap(const Problem& problem, const deuce_decode_args& args,
                        const RowTensor& tensor) {
  const bool packed = args.cu_q_len != nullptr;
  const int64_t counts[]{packed ? 1 : args.batch,
                         packed ? args.batch * int64_t{args.q_len} : args.q_len,
                         problem.num_q_heads};
  constexpr const char* kAxes[]{"requests", "rows", "heads"};
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t stride = tensor.stride[axis];
    if (counts[axis] <= 1 || stride >= tensor.contiguous || stride <= -tensor.contiguous) continue;
    return invalid(tensor.stride_field,
                   "{}[{}] is {}: neighbouring {} of {} element{} would overlap",
                   tensor.stride_field, axis, stride, kAxes[axis], tensor.contiguous,
                   tensor.contiguous == 1 ? "" : "s");
  }
  return {};
}

Status check_rows(const Problem& problem, const deuce_decode_args& args) {
  const int q_bytes = dtype_bytes(problem.q_type), out_bytes = dtype_bytes(problem.out_type);
  const RowTensor q{"q_stride", args.q_stride, problem.head_dim_qk, q_bytes};
  const RowTensor out{"out_stride", args.out_stride, problem.head_dim_v, out_bytes};
  const RowTensor lse{"lse_stride", args.lse_stride, 1, sizeof(float)};
  Status bad = check_pointer("q", args.q, q_bytes);
  if (bad.ok()) bad = check_pointer("out", args.out, out_bytes);
  if (bad.ok()) bad = check_alignment("lse", args.lse, alignof(float));
  if (bad.ok()) bad = check_alignment("cu_q_len", args.cu_q_len, alignof(int32_t));
  if (bad.ok()) bad = check_row_reach(problem, args, q);
  if (bad.ok()) bad = check_row_reach(problem, args, out);
  if (bad.ok()) bad = check_no_overlap(problem, args, out);
  if (!bad.ok() || args.lse == nullptr) return bad;
  bad = check_row_reach(problem, args, lse);
  return bad.ok() ? check_no_overlap(problem, args, lse) : bad;
}

// A factor per request and KV head, with the names of its arguments.
struct Descale {
  const char *field, *stride_field, *type_field;
  const float* data;
  const int64_t (&stride)[2];
  DType type;
};

Status check_descale(const Problem& problem, const deuce_decode_args& args, const Descale& scale) {
  if (scale.data == nullptr) return {};
  if (!is_fp8(scale.type)) {
    return invalid(scale.field, "{} is given but {} is {}: only fp8 tensors have scales",
                   scale.field, scale.type_field, name_of(scale.type));
  }
  if (Status bad = check_alignment(scale.field, scale.data, alignof(float)); !bad.ok()) return bad;
  const Axis axes[]{{args.batch, scale.stride[0]}, {problem.num_kv_heads, scale.stride[1]}};
  return check_reach(scale.stride_field, axes, 1, sizeof(float));
}

Status check_factor(const char* field, float factor) {
  if (std::isfinite(factor)) return {};
  return invalid(field, "{} is {}: it must be finite, or 0 for 1", field, factor);
}

Status check_scales(const Problem& problem, const deuce_decode_args& args) {
  const Descale q{"q_descale",    "q_descale_stride",    "q_dtype",
                  args.q_descale, args.q_descale_stride, problem.q_type};
  const Descale k{"k_descale",    "k_descale_stride",    "kv_dtype",
                  args.k_descale, args.k_descale_stride, problem.kv_type};
  const Descale v{"v_descale",    "v_descale_stride",    "kv_dtype",
                  args.v_descale, args.v_descale_stride, problem.kv_type};
  Status bad = check_descale(problem, args, q);
  if (bad.ok()) bad = check_descale(problem, args, k);
  if (bad.ok()) bad = check_descale(problem, args, v);
  if (bad.ok()) bad = check_alignment("sink", args.sink, dtype_bytes(problem.sink_type));
  if (bad.ok()) bad = check_factor("score_scale", args.score_scale);
  if (bad.ok()) bad = check_factor("out_scale", args.out_scale);
  if (!bad.ok() || args.score_scale == 1) return bad;  // the plan has checked its own factor
  return check_score_factor("score_scale", args.score_scale,
                            double{problem.softmax_scale} * args.score_scale, problem.softcap);
}

Status check_reserved(const deuce_decode_args& args) {
  if (args.tree_mask != nullptr) {
    return unsupported("tree_mask", "tree_mask is given: it is reserved, pass NULL");
  }
  if (args.tree_mask_stride != 0) {
    return unsupported("tree_mask_stride", "tree_mask_stride is {}: it is reserved, pass 0",
                       args.tree_mask_stride);
  }
  return {};
}

Status check_trace(const Problem& problem, const deuce_decode_args& args) {
  if ((problem.flags & DEUCE_FLAG_TRACE) != 0) {
    return check_pointer("trace", args.trace, alignof(uint64_t));
  }
  if (args.trace == nullptr && args.trace_bytes == 0) return {};
  const char* field = args.trace != nullptr ? "trace" : "trace_bytes";
  return invalid(field, "{} is given but the plan was made without DEUCE_FLAG_TRACE", field);
}

void resolve_defaults(const Problem& problem, deuce_decode_args& args) {
  if (args.score_scale == 0) args.score_scale = 1;
  if (args.out_scale == 0) args.out_scale = 1;
  if (problem.page_size == 0 && args.num_pages == 0 && args.cache_row == nullptr) {
    args.num_pages = args.batch;
  }
}

}  // namespace

Status validate_args(const Problem& problem, deuce_decode_args& args) {
  Status bad = check_counts(problem, args);
  if (bad.ok()) bad = check_reserved(args);
  if (!bad.ok() || args.batch == 0) return bad;
  resolve_defaults(problem, args);
  bad = check_rows(problem, args);
  if (bad.ok()) bad = validate_cache(problem, args);
  if (bad.ok()) bad = check_scales(problem, args);
  if (bad.ok()) bad = check_trace(problem, args);
  return bad;
}

}  // namespace deuce
