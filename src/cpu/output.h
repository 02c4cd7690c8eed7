// SPDX-License-Identifier: Apache-2.0
// The end of a row: sink, normalisation, factors, rounding to the output type, log-sum-exp.
// Used by worker.cpp for rows with and without keys. It must hold that a row without a visible key
// gets exact zeros, whatever its accumulators hold.
#pragma once

#include <cstddef>
#include <cstring>

#include "cpu/piece.h"
#include "kernel/combine.h"
#include "kernel/numbers.h"
#include "plan/cache_view.h"

namespace deuce::cpu {

class RowWriter {
 public:
  RowWriter(const Problem& problem, const Call& call)
      : problem_(problem), call_(call), view_(problem, call) {}

  template <class Math>
  void write(const Math& math, int64_t request, const RowPlace& at, const Partial& state) const {
    const float max = state.max[at.local], sum = state.sum[at.local];
    const float* o = max == kNoKey ? nullptr : state.o + int64_t{at.local} * problem_.head_dim_v;
    const float factor = call_.out_scale * view_.v_descale(request, at.head / problem_.group);
    const RowResult result =
        finish_row(math, max, sum, sink_of(at.head), factor, problem_.lse_base2);
    put(request, at.token, at.head, o, result);
  }

  template <class Math>
  void write_empty(const Math& math, int64_t request, int64_t token, int64_t head) const {
    put(request, token, head, nullptr,
        finish_row(math, kNoKey, 0.0F, sink_of(head), 1.0F, problem_.lse_base2));
  }

 private:
  /// In log2 units; kNoKey without sinks.
  float sink_of(int64_t head) const;
  /// `o` null: zeros.
  void put(int64_t request, int64_t token, int64_t head, const float* o,
           const RowResult& result) const;

  const Problem& problem_;
  const Call& call_;
  CacheView view_;
};

}  // namespace deuce::cpu
