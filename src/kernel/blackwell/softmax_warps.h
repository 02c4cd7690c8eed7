// SPDX-License-Identifier: Apache-2.0
// The softmax role: thread = row. Turns S into P in place, keeps the row's maximum and sum, and
// tells the correction warp of the same rows by which factor O must shrink.
// P is published in two steps, so that PV starts while its last quarter is still computed.
#pragma once

#include "kernel/blackwell/pieces.h"
#include "kernel/combine.h"
#include "kernel/ring.h"
#include "kernel/softmax.h"

namespace deuce::blackwell {

template <Config kConfig, class Machine>
class SoftmaxWarps {
 public:
  DEUCE_DEVICE SoftmaxWarps(Machine& machine, SharedStorage<kConfig>& shared, const Params& params)
      : machine_(machine), shared_(shared), params_(params), row_(machine.thread() % 128) {
    const float scale = params.softcap > 0 ? params.softcap : params.score_scale;
    scale_log2_ = (scale < 0 ? -scale : scale) * kLog2E;
    cap_factor_ = params.softcap > 0 ? params.score_scale / params.softcap : 0.0F;
    negate_ = params.softcap <= 0 && params.score_scale < 0;
  }

  DEUCE_DEVICE void run() {
    Pieces<kConfig, Machine> pieces(machine_, shared_);
    for (PieceRecord piece; pieces.next(piece);) {
      begin_piece(piece);
      wait_stats_taken();
      for (int32_t tile = piece.tile_last - 1; tile >= piece.tile_first; --tile) {
        machine_.at_block(block_++);
        attend(piece.kv_start + tile * Config::kTileRows, tile == piece.tile_last - 1);
      }
      machine_.store_shared(shared_.row_scale[row_], row_sum_);
      machine_.store_shared(shared_.row_max[row_], row_max_);
      publish_stats();
    }
    wait_stats_taken();  // the last statistics have been read
  }

 private:
  using Columns = TensorColumns<kConfig>;
  static constexpr int kFragments = 4;
  static constexpr int kFragment = 32;
  static constexpr int kEmulated = 16;  // one exponential in eight by polynomial

  DEUCE_DEVICE void begin_piece(const PieceRecord& piece) {
    row_max_ = kNoKey;
    row_sum_ = 0;
    const int32_t first_row = piece.row_tile * params_.shape.row_tile;
    const int32_t last_row = first_row + piece.rows - 1;
    // Rows past the last one are padding and follow it.
    const int32_t row = row_ < piece.rows ? first_row + row_ : last_row;
    const int32_t group = params_.shape.group;
    const MaskRule& rule = params_.shape.mask;
    visible_ = narrow(visible_keys(rule, piece.sizes(), row / group));
    unmasked_ = narrow(common_keys(rule, piece.sizes(), first_row / group, last_row / group));
  }

  /// Key positions as 32 bits: all that matter lie in [0, 2^31).
  struct Keys {
    int32_t first, last;
  };
  DEUCE_DEVICE static Keys narrow(const KeySpan& span) {
    constexpr int64_t kMost = 0x7fffffff;
    return {static_cast<int32_t>(max64(0, min64(kMost, span.first))),
            static_cast<int32_t>(max64(0, min64(kMost, span.last)))};
  }

  DEUCE_DEVICE void wait_stats_taken() {
    machine_.wait(shared_.stats_taken, taken_.phase());
    taken_.advance();
  }
  DEUCE_DEVICE void publish_stats() {
    machine_.arrive_named(kStatisticsBarrier + machine_.warp(), 64);
  }

  /// One KV block, whose first key is `key`.
  DEUCE_DEVICE void attend(int32_t key, bool first_of_piece) {
    const int slot = ring_.slot();
    float s[kFragments][kFragment];
    machine_.wait(shared_.s_ready[slot], ring_.phase());
    machine_.fence_after_sync();
    DEUCE_UNROLL
    for (int j = 0; j < kFragments; ++j) {
      machine_.load_tensor(s[j], Columns::scores(slot) + kFragment * static_cast<uint32_t>(j));
    }
    machine_.wait_tensor_loads();
    if (negate_ || params_.softcap > 0) transform(s);
    if (key < unmasked_.first || unmasked_.last - key < Config::kTileRows) mask(s, key);

    const RowMax decision =
        update_row_max(machine_, row_max_, max64f(row_max_, row_maximum(s)), kRescaleThreshold);
    row_max_ = decision.max;
    if (!first_of_piece) machine_.store_shared(shared_.row_scale[row_], decision.scale);
    publish_stats();

    const float offset = row_max_ == kNoKey ? 0.0F : -row_max_;
    exponentials<0, 3>(s, offset, slot);
    machine_.wait_tensor_stores();
    machine_.fence_before_sync();
    machine_.arrive(shared_.po_ready[slot]);
    exponentials<3, 4>(s, offset, slot);
    machine_.wait_tensor_stores();
    machine_.fence_before_sync();
    machine_.sync_warp();
    if (machine_.elect()) machine_.arrive(shared_.p_tail_ready[slot]);

    wait_stats_taken();
    row_sum_ = row_sum_ * decision.scale + sum(s);
    ring_.advance();
  }

  DEUCE_DEVICE static float max64f(float a, float b) { return a > b ? a : b; }

  /// Scores into the units of `scale_log2_`: softcap, or a negative scale folded into the sign.
  DEUCE_DEVICE void transform(float (&s)[kFragments][kFragment]) {
    DEUCE_UNROLL
    for (auto& fragment : s) {
      DEUCE_UNROLL
      for (float& value : fragment) {
        value = negate_ ? -value : machine_.tanh(value * cap_factor_);
      }
    }
    machine_.charge(Work::exp2, kFragments * kFragment);
  }

  /// Keys that this row does not see: -inf by assignment, whatever K held there.
  DEUCE_DEVICE void mask(float (&s)[kFragments][kFragment], int32_t key) {
    const int low = visible_.first - key;
    const int high = visible_.last - key;
    DEUCE_UNROLL
    for (int j = 0; j < kFragments; ++j) {
      const uint32_t keep = ones_below(high - kFragment * j) & ~ones_below(low - kFragment * j);
      DEUCE_UNROLL
      for (int k = 0; k < kFragment; ++k) {
        if ((keep >> k & 1u) == 0) s[j][k] = kNoKey;
      }
    }
    machine_.charge(Work::alu, kFragments * kFragment);
  }
  DEUCE_DEVICE static uint32_t ones_below(int bits) {
    return bits <= 0 ? 0u : bits >= 32 ? 0xffffffffu : (1u << bits) - 1u;
  }

  /// Largest score of the row in log2 units. NaN stays NaN: it was visible.
  DEUCE_DEVICE float row_maximum(const float (&s)[kFragments][kFragment]) {
    float chain[4] = {s[0][0], s[1][0], s[2][0], s[3][0]};
    DEUCE_UNROLL
    for (int j = 0; j < kFragments; ++j) {
      DEUCE_UNROLL
      for (int k = 0; k < kFragment; ++k) chain[j] = max64f(chain[j], s[j][k]);
    }
    machine_.charge(Work::alu, kFragments * kFragment / 2);
    return max64f(max64f(chain[0], chain[1]), max64f(chain[2], chain[3])) * scale_log2_;
  }

  /// P = exp2(s * scale + offset) of the fragments kFirst .. kLast - 1, stored as 16-bit pairs.
  template <int kFirst, int kLast>
  DEUCE_DEVICE void exponentials(float (&s)[kFragments][kFragment], float offset, int slot) {
    DEUCE_UNROLL
    for (int j = kFirst; j < kLast; ++j) {
      uint32_t words[kFragment / 2];
      DEUCE_UNROLL
      for (int k = 0; k < kFragment; k += 2) {
        const Float2 x = machine_.fma2(Float2{s[j][k], s[j][k + 1]},
                                       Float2{scale_log2_, scale_log2_}, Float2{offset, offset});
        const bool by_polynomial = is_emulated(kEmulated, j, k);
        s[j][k] = by_polynomial ? exp2_polynomial(machine_, x.x) : machine_.exp2(x.x);
        s[j][k + 1] = by_polynomial ? exp2_polynomial(machine_, x.y) : machine_.exp2(x.y);
        words[k / 2] = machine_.template pack<Element<kConfig>>(s[j][k], s[j][k + 1]);
      }
      machine_.store_tensor(Columns::probabilities(slot) + kFragment / 2 * static_cast<uint32_t>(j),
                            words);
      constexpr int kPolynomial = kFragment * 4 / kEmulated;
      const bool mixed = is_emulated(kEmulated, j, kEmulated - 2);
      machine_.charge(Work::exp2, mixed ? kFragment - kPolynomial : kFragment);
      machine_.charge(Work::fma, kFragment / 2 + (mixed ? 9 * kPolynomial : 0));
      machine_.charge(Work::convert, kFragment / 2);
    }
  }

  DEUCE_DEVICE float sum(const float (&p)[kFragments][kFragment]) {
    Float2 chain[4] = {};
    DEUCE_UNROLL
    for (int j = 0; j < kFragments; ++j) {
      DEUCE_UNROLL
      for (int k = 0; k < kFragment; k += 2) {
        chain[j] = machine_.add2(chain[j], Float2{p[j][k], p[j][k + 1]});
      }
    }
    machine_.charge(Work::fma, kFragments * kFragment / 2);
    const Float2 low = machine_.add2(chain[0], chain[1]);
    const Float2 all = machine_.add2(low, machine_.add2(chain[2], chain[3]));
    return all.x + all.y;
  }

  Machine& machine_;
  SharedStorage<kConfig>& shared_;
  const Params& params_;
  int row_;
  float scale_log2_, cap_factor_;
  bool negate_;
  Keys visible_, unmasked_;
  float row_max_ = kNoKey;  // log2 units; P, O and row_sum_ are relative to it
  float row_sum_ = 0;
  int block_ = 0;
  Ring<kConfig.score_slots> ring_ = Ring<kConfig.score_slots>::consumer();
  Ring<1> taken_ = Ring<1>::producer();
};

}  // namespace deuce::blackwell
