// SPDX-License-Identifier: Apache-2.0
// How far a backend's result may lie from the exact one: the formula, and why it has this form.
// Used by judge.h, so by the tests and by `deuce run --check`. docs/numerics.md derives the same
// lines at length; a change here is a change there.
//
// Notation: u = 2^-24 (half an ulp of fp32), w_j = exp(s_j) / (sum of exp(s) + exp(sink)), o_c the
// exact output of column c, v_jc with v_descale and out_scale applied, n visible keys.
//
//  1 scores     A dot product of d terms in fp32 errs by about sqrt(d) u sum_i |q_i k_i|: rounding
//               errors are as good as independent, and no partial sum exceeds that sum. Scaling,
//               the step to log2 units and the subtraction of the maximum add a few u |s| each:
//                 delta_j = (sqrt(d) + 8) u |factor| sum_i |q_i k_ji|
//               Softcap c multiplies that by its slope 1 - (s/c)^2 and adds c (tanh error + 2 u).
//               Sinks are rounded once: 2 u |sink|.  delta = max_j delta_j + error of exp2.
//  2 weights    Scores off by at most delta change o_c by no more than
//                 (exp(2 delta) - 1) (sum_j w_j |v_jc - o_c| + w_sink |o_c|).
//  3 P          Probabilities that pass a matrix unit are rounded to its input type (half an ulp:
//               p_roundoff), while their sum is not. Equal probabilities share one error, which
//               scales o_c; different ones err independently, so 4 standard deviations do:
//                 p_roundoff min(sum_j w_j |v_jc|, |o_c| + 4 sqrt(sum_j w_j^2 v_jc^2)).
//               Below that type's normal range the error is absolute: p_floor max_j w_j sum|v_jc|.
//  4 sums       Products are added in tiles of at most 128 keys and the tiles one by one; a matrix
//               unit may truncate instead of round, hence the factor 2:
//                 2 (128 + n / 64) u sum_j w_j |v_jc|.
//  5 the end    Normalisation and factors: 8 u |o_c|. Probabilities, values and factors below the
//               normal range of fp32 may become 0: 2^-126 (max(1, |out factor|) + sum_j |v_jc|).
//               Then one rounding to the output type.
//
//  LSE: delta + 2 (128 + n / 64) u + error of log2 + 8 u |lse|, all times log2(e) in base 2.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "plan/problem.h"
#include "reference/number_format.h"

namespace deuce::reference {

inline constexpr double kFloatRoundoff = 0x1p-24;

/// What a backend states about its arithmetic beyond fp32.
struct Precision {
  double p_roundoff = 0;        // of probabilities, 0 = they stay fp32
  double p_floor = 0;           // absolute error of probabilities below the normal range
  double exp2_error = 0x1p-21;  // relative
  double log2_error = 0x1p-21;  // absolute
  double tanh_error = 0x1p-21;  // absolute
};

/// `reference` keeps everything in fp32 or better, and so does `cpu` but for problems that are bf16
/// throughout, whose P may be bf16 where the CPU multiplies that. GPU kernels feed P to the matrix
/// unit in the 16-bit type of the cache (half for fp8 caches) and use the hardware's tanh.
constexpr Precision precision_of(Backend backend, const Problem& problem) {
  const bool bf16 = problem.q_type == DType::bf16 && problem.kv_type == DType::bf16 &&
                    problem.out_type == DType::bf16;
  if (backend == Backend::cpu && bf16) return {.p_roundoff = 0x1p-8};
  if (backend == Backend::cpu || backend == Backend::reference) return {};
  const bool half = problem.kv_type == DType::f16 || problem.kv_type == DType::e4m3;
  return {.p_roundoff = half ? 0x1p-11 : 0x1p-8,
          .p_floor = half ? 0x1p-25 : 0.0,
          .tanh_error = 0x1p-10};
}

/// Sums over the visible keys of one row that the bounds are made of.
struct RowSpread {
  double delta = 0;       // largest score error, exp2 included
  double keys = 0;        // n
  double max_weight = 0;  // max_j w_j
  double sink_weight = 0;
  double out_factor = 1;  // |out_scale v_descale|
};
struct ColumnSpread {
  double magnitude = 0;  // sum_j w_j |v_jc|
  double deviation = 0;  // sum_j w_j |v_jc - o_c|
  double square = 0;     // sum_j (w_j v_jc)^2
  double plain = 0;      // sum_j |v_jc|
};

/// delta_j of a key: `magnitude` = |factor| sum_i |q_i k_ji|, `score` after the softcap.
inline double score_error(double magnitude, double score, double head_dim, double softcap,
                          const Precision& precision) {
  const double error = (std::sqrt(head_dim) + 8) * kFloatRoundoff * magnitude;
  if (softcap <= 0) return error;
  const double slope = std::max(0.0, 1 - (score / softcap) * (score / softcap));
  return std::min(error * slope, softcap) + softcap * (precision.tanh_error + 2 * kFloatRoundoff);
}

inline double sum_error(double keys) { return 2 * (128 + keys / 64) * kFloatRoundoff; }

/// Bound of |result - o| for one output element, before the rounding to the output type.
inline double output_error(double o, const RowSpread& row, const ColumnSpread& column,
                           const Precision& precision) {
  const double weights = std::min(std::expm1(2 * row.delta), 1e300) *
                         (column.deviation + row.sink_weight * std::fabs(o));
  const double p = precision.p_roundoff *
                       std::min(column.magnitude, std::fabs(o) + 4 * std::sqrt(column.square)) +
                   precision.p_floor * row.max_weight * column.plain;
  const double underflow = 0x1p-126 * (column.plain + std::max(1.0, row.out_factor));
  return weights + p + sum_error(row.keys) * column.magnitude + 8 * kFloatRoundoff * std::fabs(o) +
         underflow;
}

/// Half a unit in the last place of `value` in the output type, half the smallest step at least.
inline double output_roundoff(double value, DType type) {
  const NumberFormat format = number_format(type);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const double smallest = std::ldexp(1, 1 - bias - format.mantissa_bits);
  return std::max(std::ldexp(std::fabs(value), -format.mantissa_bits - 1), smallest / 2);
}

/// Bound of the natural-log LSE.
inline double lse_error(double lse, const RowSpread& row, const Precision& precision) {
  return row.delta + sum_error(row.keys) + precision.log2_error +
         8 * kFloatRoundoff * std::fabs(lse);
}

}  // namespace deuce::reference
