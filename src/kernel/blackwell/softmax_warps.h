// SPDX-License-Identifier: Apache-2.0
// The softmax role: thread = row. Turns S into P in place, keeps the row's maximum and sum, and
// tells the correction warp of the same rows by which factor O must shrink.
// P is published in two steps, so that PV starts while its last quarter is still computed.
// With row replicas a thread attends to its replica's keys of the block only: P is zero elsewhere,
// and maximum, sum and O are those of that part of the keys.
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
      machine_.store_shared(shared_.row_max[row_], max_log2_of(machine_, row_max_, scale_log2_));
      publish_stats();
    }
    wait_stats_taken();  // the last statistics have been read
  }

 private:
  using Columns = TensorColumns<kConfig>;
  static constexpr int kKeys = kConfig.rows_per_replica();  // of a block, for one thread
  static constexpr int kFragment = 32;
  static constexpr int kFragments = kKeys / kFragment;
  static constexpr int kTileFragments = Config::kTileRows / kFragment;
  static constexpr uint32_t kFragmentColumns = kFragment / 2;  // of P
  // One exponential in eight by polynomial; none with replicas, whose rows have no middle.
  static constexpr int kEmulated = kConfig.row_replicas == 1 ? 16 : 0;
  static constexpr int kChains = 4;  // of additions, so that none waits for the one before
  // Dependent steps that ptxas 13.0 left exposed in the loop for sm_100f (its stall counts over the
  // latency of a step): addresses and loop control, the end of the row maximum, the decision on it,
  // and the end of the row sum. Exponentials leave none at head dim 64; at 128 most of the last
  // quarter's stand before the stores of the third.
  static constexpr int kLoopSteps = 14, kMaximumSteps = 8, kDecisionSteps = 18, kSumSteps = 3;
  static constexpr int kExponentialSteps = kConfig.head_dim == 128 ? 53 : 0;

  /// First fragment of the block that this thread attends to.
  DEUCE_DEVICE int first_fragment() const {
    return kConfig.row_replicas == 1 ? 0 : row_ / kKeys * kFragments;
  }

  DEUCE_DEVICE void begin_piece(const PieceRecord& piece) {
    row_max_ = kNoKey;
    row_sum_ = 0;
    const int32_t first_row = piece.row_tile * params_.shape.row_tile;
    const int32_t last_row = first_row + piece.rows - 1;
    // Rows past the last one are padding and follow it.
    const int32_t own = row_ % kConfig.rows_per_replica();
    const int32_t row = own < piece.rows ? first_row + own : last_row;
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
    if constexpr (Machine::kTraces)
      machine_.trace_begin({Event::sm_wait_stats, taken_.slot(), taken_.phase(), block_ - 1});
    machine_.wait(shared_.stats_taken, taken_.phase());
    if constexpr (Machine::kTraces) machine_.trace_end({Event::sm_wait_stats});
    taken_.advance();
  }
  DEUCE_DEVICE void publish_stats() {
    if constexpr (Machine::kTraces) {
      machine_.trace_instant({Event::arrive_stats_ready, machine_.warp(), 0, block_ - 1});
    }
    machine_.arrive_named(kStatisticsBarrier + machine_.warp(), 64);
  }

  /// One KV block, whose first key is `key`.
  DEUCE_DEVICE void attend(int32_t key, bool first_of_piece) {
    const int slot = ring_.slot();
    float s[kFragments][kFragment];
    machine_.charge(Work::dependent, kLoopSteps);
    if constexpr (Machine::kTraces) machine_.trace_begin(here(Event::sm_wait_S));
    machine_.wait(shared_.s_ready[slot], ring_.phase());
    if constexpr (Machine::kTraces) {
      machine_.trace_end({Event::sm_wait_S});
      machine_.trace_begin(here(Event::sm_compute));
      machine_.trace_begin(here(Event::sm_load));
    }
    machine_.fence_after_sync();
    DEUCE_UNROLL
    for (int j = 0; j < kFragments; ++j) {
      machine_.load_tensor(
          s[j], Columns::scores(slot) + static_cast<uint32_t>(kFragment * (first_fragment() + j)));
    }
    machine_.wait_tensor_loads();
    if constexpr (Machine::kTraces) {
      machine_.trace_end({Event::sm_load});
      machine_.trace_begin(here(Event::sm_max));
    }
    if constexpr (kConfig.row_replicas > 1) clear_other_keys(slot);
    if (negate_ || params_.softcap > 0) transform(s);
    if (key < unmasked_.first || unmasked_.last - key < Config::kTileRows) {
      mask(s, key + kFragment * first_fragment());
    }

    const float seen = machine_.max(row_max_, row_maximum(s));
    const float shrink = raise_maximum(machine_, row_max_, seen, scale_log2_);
    machine_.charge(Work::dependent, kMaximumSteps + kDecisionSteps);
    if (!first_of_piece) machine_.store_shared(shared_.row_scale[row_], shrink);
    publish_stats();
    if constexpr (Machine::kTraces) machine_.trace_end({Event::sm_max});

    float offset = offset_of(machine_, row_max_, scale_log2_);
    // By vote: with a branch for each row the kernels of head dim 64 spill.
    if (machine_.any(is_far(offset))) subtract_maximum(s, offset);
    if constexpr (Machine::kTraces) machine_.trace_begin(here(Event::sm_exp));
    publish_probabilities(s, offset, slot);
    if constexpr (Machine::kTraces) {
      machine_.trace_end({Event::sm_exp});
      machine_.trace_end({Event::sm_compute});
    }

    wait_stats_taken();
    if constexpr (Machine::kTraces) machine_.trace_begin(here(Event::sm_row_sum));
    row_sum_ = row_sum_ * shrink + sum(s);
    if constexpr (Machine::kTraces) machine_.trace_end({Event::sm_row_sum});
    ring_.advance();
  }

  /// P of the first three quarters of the keys, then of the last one. With replicas in one go: some
  /// warp's keys all lie in the first part, so that there is no work left to hide behind it.
  DEUCE_DEVICE void publish_probabilities(float (&s)[kFragments][kFragment], float offset,
                                          int slot) {
    constexpr int kBody = kConfig.row_replicas == 1 ? 3 : kFragments;
    machine_.charge(Work::dependent, kExponentialSteps);
    exponentials<0, kBody>(s, offset, slot);
    machine_.wait_tensor_stores();
    machine_.fence_before_sync();
    if constexpr (Machine::kTraces) machine_.trace_instant(here(Event::arrive_po_ready));
    machine_.arrive(shared_.po_ready[slot]);
    if constexpr (kBody < kFragments) {
      exponentials<kBody, kFragments>(s, offset, slot);
      machine_.wait_tensor_stores();
      machine_.fence_before_sync();
    }
    machine_.sync_warp();
    if (machine_.elect()) {
      if constexpr (Machine::kTraces) machine_.trace_instant(here(Event::arrive_p_tail_ready));
      machine_.arrive(shared_.p_tail_ready[slot]);
    }
  }

  /// Of the block being attended to.
  DEUCE_DEVICE trace::At here(Event event) const {
    return {event, ring_.slot(), ring_.phase(), block_ - 1};
  }

  /// Columns of P of fragment `fragment` of the block.
  DEUCE_DEVICE static uint32_t fragment_column(int slot, int fragment) {
    return Columns::probabilities(slot) + kFragmentColumns * static_cast<uint32_t>(fragment);
  }

  /// P is zero for the keys of the other replicas.
  DEUCE_DEVICE void clear_other_keys(int slot) {
    const uint32_t zeros[kFragmentColumns] = {};
    DEUCE_UNROLL
    for (int j = kFragments; j < kTileFragments; ++j) {
      machine_.store_tensor(fragment_column(slot, (first_fragment() + j) % kTileFragments), zeros);
    }
  }

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

  /// Rows whose maximum is far from zero need no offset any more; the others keep their bits.
  DEUCE_DEVICE void subtract_maximum(float (&s)[kFragments][kFragment], float& offset) {
    const bool far = is_far(offset);
    const float maximum = far ? row_max_ : 0.0F;
    offset = far ? 0.0F : offset;
    DEUCE_UNROLL
    for (auto& fragment : s) {
      DEUCE_UNROLL
      for (float& value : fragment) value -= maximum;
    }
    machine_.charge(Work::alu, kFragments * kFragment);
  }

  /// Largest score of the row. NaN stays NaN: it was visible, and a maximum that dropped it would
  /// make a row of nothing but NaN pass for one without a key.
  DEUCE_DEVICE float row_maximum(const float (&s)[kFragments][kFragment]) {
    float chain[kChains] = {s[0][0], s[0][1], s[0][2], s[0][3]};
    DEUCE_UNROLL
    for (int j = 0; j < kFragments; ++j) {
      DEUCE_UNROLL
      for (int k = 0; k < kFragment; ++k) {
        chain[k % kChains] = machine_.max(chain[k % kChains], s[j][k]);
      }
    }
    machine_.charge(Work::alu, kFragments * kFragment / 2);
    return machine_.max(machine_.max(chain[0], chain[1]), machine_.max(chain[2], chain[3]));
  }

  /// P = exp2(s * scale + offset) of the fragments kFirst .. kLast - 1, stored as 16-bit pairs.
  template <int kFirst, int kLast>
  DEUCE_DEVICE void exponentials(float (&s)[kFragments][kFragment], float offset, int slot) {
    DEUCE_UNROLL
    for (int j = kFirst; j < kLast; ++j) {
      uint32_t words[kFragmentColumns];
      DEUCE_UNROLL
      for (int k = 0; k < kFragment; k += 2) {
        const Float2 x = machine_.fma2(Float2{s[j][k], s[j][k + 1]},
                                       Float2{scale_log2_, scale_log2_}, Float2{offset, offset});
        const bool by_polynomial = is_emulated(kEmulated, j, k);
        s[j][k] = by_polynomial ? exp2_polynomial(machine_, x.x) : machine_.exp2(x.x);
        s[j][k + 1] = by_polynomial ? exp2_polynomial(machine_, x.y) : machine_.exp2(x.y);
        words[k / 2] = machine_.template pack<Element<kConfig>>(s[j][k], s[j][k + 1]);
      }
      machine_.store_tensor(fragment_column(slot, first_fragment() + j), words);
      const int polynomial = emulated_in(j);
      machine_.charge(Work::exp2, kFragment - polynomial);
      machine_.charge(Work::fma, kFragment + 9 * polynomial);
      machine_.charge(Work::convert, kFragment / 2);
    }
  }

  /// Exponentials of a fragment that a polynomial computes.
  constexpr static int emulated_in(int fragment) {
    int count = 0;
    for (int k = 0; k < kFragment; ++k) count += is_emulated(kEmulated, fragment, k) ? 1 : 0;
    return count;
  }

  DEUCE_DEVICE float sum(const float (&p)[kFragments][kFragment]) {
    Float2 chain[kChains] = {};
    DEUCE_UNROLL
    for (int j = 0; j < kFragments; ++j) {
      DEUCE_UNROLL
      for (int k = 0; k < kFragment; k += 2) {
        Float2& sum = chain[k / 2 % kChains];
        sum = machine_.add2(sum, Float2{p[j][k], p[j][k + 1]});
      }
    }
    machine_.charge(Work::fma, kFragments * kFragment);
    machine_.charge(Work::dependent, kSumSteps);
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
  float row_max_ = kNoKey;  // a score; P, O and row_sum_ are relative to its product with the scale
  float row_sum_ = 0;
  int block_ = 0;
  Ring<kConfig.score_slots> ring_ = Ring<kConfig.score_slots>::consumer();
  Ring<1> taken_ = Ring<1>::producer();
};

}  // namespace deuce::blackwell
