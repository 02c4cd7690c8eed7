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

/// Writes output and LSE (where wanted) of row `row` and query head `head` of a request.
void attend_row(const Problem& problem, const Call& call, int64_t request, int64_t row,
                int64_t head, const RowScratch& scratch);

}  // namespace deuce::reference
