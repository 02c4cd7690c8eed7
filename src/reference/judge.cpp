// SPDX-License-Identifier: Apache-2.0
// Judging: the exact row first, then a second pass over its keys for the sums of tolerance.h.
#include "reference/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "plan/cache_view.h"
#include "reference/attention.h"

namespace deuce::reference {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
constexpr double kLog2E = 1.4426950408889634074;

class Judge {
 public:
  Judge(const Problem& problem, const Call& call, const Precision& precision)
      : problem_(problem),
        call_(call),
        precision_(precision),
        view_(problem, call),
        scores_(static_cast<std::size_t>(problem.max_kv_len)),
        q_(problem.head_dim_qk),
        key_(std::max(problem.head_dim_qk, problem.head_dim_v)),
        o_(problem.head_dim_v),
        written_(problem.head_dim_v) {}

  Verdict run() {
    for (int64_t request = 0; request < call_.batch; ++request) {
      for (int64_t row = 0; row < view_.q_len(request); ++row) {
        for (int64_t head = 0; head < problem_.num_q_heads; ++head) judge_row(request, row, head);
      }
    }
    return std::move(verdict_);
  }

 private:
  struct Place {
    int64_t request, row, head;
  };

  void judge_row(int64_t request, int64_t row, int64_t head) {
    const Place at{request, row, head};
    const RowScratch scratch{scores_.data(), q_.data(), key_.data(), o_.data()};
    const ExactRow exact = exact_row(problem_, call_, request, row, head, scratch);
    columns_.assign(problem_.head_dim_v, {});
    const RowSpread spread = measure(at, exact);

    load_row(problem_.out_type, call_.out, view_.out_offset(request, row, head),
             problem_.head_dim_v, written_.data());
    for (int64_t c = 0; c < problem_.head_dim_v; ++c) {
      double bound = output_error(o_[c], spread, columns_[c], precision_);
      bound += output_roundoff(std::fabs(o_[c]) + bound, problem_.out_type);
      verdict_.max_output_error =
          std::fmax(verdict_.max_output_error, compare("out", at, c, written_[c], o_[c], bound));
    }
    if (call_.lse == nullptr) return;
    const double base = problem_.lse_base2 ? kLog2E : 1;
    verdict_.max_lse_error =
        std::fmax(verdict_.max_lse_error,
                  compare("lse", at, -1, call_.lse[view_.lse_offset(request, row, head)],
                          exact.lse * base, lse_error(exact.lse, spread, precision_) * base));
  }

  /// The sums of tolerance.h over the keys that the row sees.
  RowSpread measure(const Place& at, const ExactRow& exact) {
    const int64_t kv_head = at.head / problem_.group;
    const IndexRange live = view_.live(at.request);
    const double factor =
        std::fabs(double{problem_.softmax_scale} * call_.score_scale *
                  view_.q_descale(at.request, kv_head) * view_.k_descale(at.request, kv_head));
    const double out_factor = double{call_.out_scale} * view_.v_descale(at.request, kv_head);
    RowSpread spread;
    spread.out_factor = std::fabs(out_factor);
    if (exact.sink != kMinusInfinity) {
      spread.sink_weight = std::exp(exact.sink - exact.row_max) / exact.row_sum;
      spread.delta = 2 * kFloatRoundoff * std::fabs(exact.sink);
    }
    for (int64_t key = live.first; key < live.last; ++key) {
      const double score = scores_[key - live.first];
      if (score == kMinusInfinity) continue;
      const double weight = std::exp(score - exact.row_max) / exact.row_sum;
      const SlotPlace place = view_.place(at.request, key);
      load_row(problem_.kv_type, call_.k, view_.k_offset(place, kv_head), problem_.head_dim_qk,
               key_.data());
      double magnitude = 0;
      for (int64_t i = 0; i < problem_.head_dim_qk; ++i) magnitude += std::fabs(q_[i] * key_[i]);
      magnitude *= factor * std::fabs(view_.k_token_scale(place, kv_head));
      spread.delta = std::fmax(spread.delta, score_error(magnitude, score, problem_.head_dim_qk,
                                                         problem_.softcap, precision_));
      spread.keys += 1;
      spread.max_weight = std::fmax(spread.max_weight, weight);
      add_values(place, kv_head, weight, out_factor * view_.v_token_scale(place, kv_head));
    }
    spread.delta += precision_.exp2_error;
    return spread;
  }

  void add_values(SlotPlace place, int64_t kv_head, double weight, double factor) {
    load_row(problem_.kv_type, call_.v, view_.v_offset(place, kv_head), problem_.head_dim_v,
             key_.data());
    for (int64_t c = 0; c < problem_.head_dim_v; ++c) {
      const double value = key_[c] * factor;
      ColumnSpread& column = columns_[c];
      column.magnitude += weight * std::fabs(value);
      column.deviation += weight * std::fabs(value - o_[c]);
      column.square += weight * value * weight * value;
      column.plain += std::fabs(value);
    }
  }

  /// Records one element; returns its absolute error: 0 for matching non-finite values, infinite
  /// where only one of the two is one.
  double compare(const char* tensor, const Place& at, int64_t column, double written, double exact,
                 double bound) {
    ++verdict_.checked;
    const bool alike = std::isnan(exact) ? std::isnan(written) : written == exact;
    if (alike) return 0;
    const double error = std::fabs(written - exact);
    const bool finite = std::isfinite(exact) && std::isfinite(written);
    if (!finite && overflows(exact, written, bound)) return 0;
    const double ratio = finite ? error / bound : std::numeric_limits<double>::infinity();
    verdict_.worst_ratio = std::fmax(verdict_.worst_ratio, ratio);
    if (finite && error <= bound) return error;
    if (verdict_.ok) {
      verdict_.ok = false;
      verdict_.first_failure = fmt::format(
          "{}: request {}, row {}, head {}{}: got {:.9g}, exact {:.9g}, error {:.3g}, bound {:.3g}",
          tensor, at.request, at.row, at.head,
          column < 0 ? std::string() : fmt::format(", column {}", column), written, exact, error,
          bound);
    }
    return finite ? error : ratio;
  }

  /// An infinity in the output is right where the exact value may round to it.
  bool overflows(double exact, double written, double bound) const {
    if (!std::isinf(written) || !std::isfinite(exact)) return false;
    const NumberFormat format = number_format(problem_.out_type);
    const int bias = (1 << (format.exponent_bits - 1)) - 1;
    const double limit = std::ldexp(2 - std::ldexp(1, -format.mantissa_bits), bias);
    return std::signbit(written) == std::signbit(exact) && std::fabs(exact) + bound >= limit;
  }

  const Problem& problem_;
  const Call& call_;
  const Precision precision_;
  CacheView view_;
  std::vector<double> scores_, q_, key_, o_, written_;
  std::vector<ColumnSpread> columns_;
  Verdict verdict_;
};

}  // namespace

Verdict judge(const Problem& problem, const Call& call, const Precision& precision) {
  return Judge(problem, call, precision).run();
}

}  // namespace deuce::reference
