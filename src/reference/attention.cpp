// SPDX-License-Identifier: Apache-2.0
// Attention of one row as in a textbook: all scores, their maximum, then the weighted sum.
// Visibility is the plain predicate of the API page, asked for each live key; nothing is skipped,
// merged or rescaled, so none of the shortcuts under test exists here.
#include "reference/attention.h"

#include <cmath>
#include <limits>

#include "plan/cache_view.h"
#include "reference/number_format.h"

namespace deuce::reference {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
constexpr double kLog2E = 1.4426950408889634074;

/// Whether the row at position `pos` of its request sees key `key`, which is live.
bool is_visible(const Problem& problem, int64_t pos, int64_t key) {
  if (problem.causal && key > pos) return false;
  if (problem.window_left >= 0 && key < pos - problem.window_left) return false;
  if (problem.window_right >= 0 && key > pos + problem.window_right) return false;
  return true;
}

/// Natural-log sink logit of a query head, or minus infinity without sinks.
double sink_logit(const Problem& problem, const Call& call, int64_t head) {
  if (call.sink == nullptr) return kMinusInfinity;
  double logit = 0;
  load_row(problem.sink_type, call.sink, head, 1, &logit);
  return logit;
}

double dot(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

/// NaN wins: a comparison alone would lose it.
double nan_max(double a, double b) { return std::isnan(a) || a > b ? a : b; }

}  // namespace

ExactRow exact_row(const Problem& problem, const Call& call, int64_t request, int64_t row,
                   int64_t head, const RowScratch& scratch) {
  const CacheView view(problem, call);
  const int64_t kv_head = head / problem.group;
  const IndexRange live = view.live(request);
  const int64_t pos = view.kv_len(request) - view.q_len(request) + row;
  load_row(problem.q_type, call.q, view.q_offset(request, row, head), problem.head_dim_qk,
           scratch.q);

  const double score_factor = double{problem.softmax_scale} * call.score_scale *
                              view.q_descale(request, kv_head) * view.k_descale(request, kv_head);
  const double sink = sink_logit(problem, call, head);
  double row_max = sink;
  for (int64_t key = live.first; key < live.last; ++key) {
    double& score = scratch.scores[key - live.first];
    score = kMinusInfinity;
    if (!is_visible(problem, pos, key)) continue;
    const SlotPlace place = view.place(request, key);
    load_row(problem.kv_type, call.k, view.k_offset(place, kv_head), problem.head_dim_qk,
             scratch.key);
    score = score_factor * view.k_token_scale(place, kv_head) *
            dot(scratch.q, scratch.key, problem.head_dim_qk);
    if (problem.softcap > 0) score = problem.softcap * std::tanh(score / problem.softcap);
    row_max = nan_max(score, row_max);
  }

  // Minus infinity stands for "nothing to add", also where the maximum itself is minus infinity.
  double row_sum = sink == kMinusInfinity ? 0 : std::exp(sink - row_max);
  for (int64_t i = 0; i < problem.head_dim_v; ++i) scratch.o[i] = 0;
  for (int64_t key = live.first; key < live.last; ++key) {
    const double score = scratch.scores[key - live.first];
    if (score == kMinusInfinity) continue;
    const double p = std::exp(score - row_max);
    row_sum += p;
    const SlotPlace place = view.place(request, key);
    load_row(problem.kv_type, call.v, view.v_offset(place, kv_head), problem.head_dim_v,
             scratch.key);
    const double weight = p * view.v_token_scale(place, kv_head);
    for (int64_t i = 0; i < problem.head_dim_v; ++i) scratch.o[i] += weight * scratch.key[i];
  }

  const bool is_empty = row_sum == 0;  // the maximum contributes 1, so only an empty row has 0
  const double out_factor = double{call.out_scale} * view.v_descale(request, kv_head);
  for (int64_t i = 0; i < problem.head_dim_v; ++i) {
    scratch.o[i] = is_empty ? 0 : out_factor * scratch.o[i] / row_sum;
  }
  return {row_max, row_sum, sink, is_empty ? kMinusInfinity : row_max + std::log(row_sum)};
}

void attend_row(const Problem& problem, const Call& call, int64_t request, int64_t row,
                int64_t head, const RowScratch& scratch) {
  const ExactRow exact = exact_row(problem, call, request, row, head, scratch);
  const CacheView view(problem, call);
  store_row(problem.out_type, call.out, view.out_offset(request, row, head), problem.head_dim_v,
            scratch.o);
  if (call.lse == nullptr) return;
  call.lse[view.lse_offset(request, row, head)] =
      static_cast<float>(problem.lse_base2 ? exact.lse * kLog2E : exact.lse);
}

}  // namespace deuce::reference
