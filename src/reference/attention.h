// SPDX-License-Identifier: Apache-2.0
// One query row of attention in double precision: the judge behind reference_backend.h.
#pragma once

#include <cstdint>

#include "plan/problem.h"

namespace deuce::reference {

/// Memory that one row needs, given by the caller.
struct RowScratch {
  double* scores;  // [max_kv_len]
  double* q;       // [head_dim_qk]
  double* key;     // [max(head_dim_qk, head_dim_v)], a K or a V row
  double* o;       // [head_dim_v]
};

/// A row's result before any rounding; its output lies in scratch.o and the score of each live key
/// in scratch.scores (minus infinity where the row does not see the key).
struct ExactRow {
  double row_max = 0, row_sum = 0;  // of the scores and of exp(score - row_max), sink included
  double sink = 0;                  // logit of the head, minus infinity without sinks
  double lse = 0;                   // natural log
};

ExactRow exact_row(const Problem& problem, const Call& call, int64_t request, int64_t row,
                   int64_t head, const RowScratch& scratch);

/// Writes output and LSE (where wanted) of row `row` and query head `head` of a request.
void attend_row(const Problem& problem, const Call& call, int64_t request, int64_t row,
                int64_t head, const RowScratch& scratch);

}  // namespace deuce::reference
