// SPDX-License-Identifier: Apache-2.0
// Merging softmax states of one row over different keys, and the last step to output and LSE.
// Used by every backend; `Math` is the machine (or any type with exp2 and log2), so each backend
// keeps its own stated approximation. Everything is fp32 and in split order: the result does not
// depend on who arrives last.
//
// A state is (max, sum, o): max = the largest score so far, or a value it was within the lazy
// rescale threshold of, in log2 units (score * log2 e); sum and o are the sums of
// exp2(score - max) and exp2(score - max) * v. No key: (-inf, 0, 0). All scores NaN: a NaN maximum.
// Sinks never enter a state.
#pragma once

#include <cstdint>
#include <limits>

namespace deuce {

inline constexpr float kNoKey = -std::numeric_limits<float>::infinity();
inline constexpr float kLog2E = 1.44269504F;
inline constexpr float kLn2 = 0.693147181F;

/// Maximum of a merge; NaN stays, or a part with nothing but NaN would pass for one without a key.
constexpr float merge_max(float merged_max, float max) {
  return max > merged_max || max != max ? max : merged_max;
}

/// Weight of a state with maximum `max` in a merge whose maximum is `merged_max`. A state without
/// a key weighs 0, also when no state of the merge has one (both are -inf).
template <class Math>
constexpr float merge_weight(const Math& math, float max, float merged_max) {
  return max == kNoKey ? 0.0F : math.exp2(max - merged_max);
}

/// What turns a row's state into its results.
struct RowResult {
  float scale;  // output = o * scale
  float lse;    // -inf for a row without key and sink
};

/// Ends a row: the sink (log2 units, kNoKey = none) joins the denominator here and only here.
/// `out_factor` holds out_scale and v_descale; with lse_base2 the LSE stays in log2 units.
template <class Math>
constexpr RowResult finish_row(const Math& math, float max, float sum, float sink, float out_factor,
                               bool lse_base2) {
  const float top = max > sink || max != max ? max : sink;  // NaN stays
  if (top == kNoKey) return {0.0F, kNoKey};
  const float weight = merge_weight(math, max, top);
  const float sink_part = sink == kNoKey ? 0.0F : math.exp2(sink - top);
  const float denominator = sum * weight + sink_part;
  const float lse = top + math.log2(denominator);
  return {out_factor * weight / denominator, lse_base2 ? lse : lse * kLn2};
}

/// State of the rows of an item in memory: o is [row, head_dim_v], max and sum are [row].
struct Partial {
  float* o;
  float* max;
  float* sum;
};

/// Floats of a partial of `rows` rows.
constexpr int64_t partial_floats(int64_t rows, int64_t head_dim_v) {
  return rows * (head_dim_v + 2);
}

constexpr Partial partial_at(float* base, int64_t rows, int64_t head_dim_v) {
  float* max = base + rows * head_dim_v;
  return {base, max, max + rows};
}

/// Merges parts 0 .. count - 1, in this order, into part 0, for one row. `part(i)` gives a Partial.
/// One thread does the whole row; kernels that spread columns over lanes use merge_weight.
template <class Math, class Parts>
constexpr void merge_row(const Math& math, const Parts& part, int32_t count, int32_t row,
                         int32_t head_dim_v) {
  float merged_max = kNoKey;
  for (int32_t i = 0; i < count; ++i) {
    merged_max = merge_max(merged_max, part(i).max[row]);
  }
  const Partial target = part(0);
  float* o = target.o + int64_t{row} * head_dim_v;
  float sum = 0;
  for (int32_t i = 0; i < count; ++i) {
    const Partial source = part(i);
    // Left out rather than weighed by 0: the o of a state without a key need not be finite.
    const bool has_keys = source.max[row] != kNoKey;
    const float weight = merge_weight(math, source.max[row], merged_max);
    const float* source_o = source.o + int64_t{row} * head_dim_v;
    const float source_sum = source.sum[row];
    if (i == 0) {
      sum = has_keys ? weight * source_sum : 0.0F;
      for (int32_t c = 0; c < head_dim_v; ++c) o[c] = has_keys ? weight * source_o[c] : 0.0F;
    } else if (has_keys) {
      sum += weight * source_sum;
      for (int32_t c = 0; c < head_dim_v; ++c) o[c] += weight * source_o[c];
    }
  }
  target.max[row] = merged_max;
  target.sum[row] = sum;
}

}  // namespace deuce
