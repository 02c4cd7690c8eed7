// SPDX-License-Identifier: Apache-2.0
// P6, P7 and P23: where the work is cut changes rounding at most; LSE, repeats, memory layout and,
// with split_kv_len, the rest of the batch change no bit.
#include <cmath>

#include "kernel/backends.h"
#include "kernel/values.h"

namespace deuce::testing {
namespace {

class Splits : public Backends {
 protected:
  void expect_same_bits(const Case& a, const Case& b, const char* what) {
    const std::optional<Outcome> first = run_or_refuse(subject(), a);
    const std::optional<Outcome> second = run_or_refuse(subject(), b);
    if (!first || !second) return;
    ASSERT_EQ(first->out, second->out) << what << "\n  " << describe(a);
    if (a.lse != LseWish::none && b.lse != LseWish::none) {
      ASSERT_EQ(first->lse, second->lse) << what << "\n  " << describe(a);
    }
  }
};

TEST_P(Splits, AskingForLseChangesNoOutputBit) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Case with = draw_case(seed, 3e5);
    with.lse = LseWish::natural;
    Case without = with;
    without.lse = LseWish::none;
    expect_same_bits(with, without, "asked for LSE");
  }
}

// The order of the cache's dimensions is not part of this promise: a backend may cut work otherwise
// where heads lie side by side, which is another split layout.
TEST_P(Splits, RepeatsPageOrderAndPoolPositionChangeNoBit) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Case drawn = draw_case(seed, 3e5);
    expect_same_bits(drawn, drawn, "repeated");
    Case moved = drawn;
    moved.q_order = moved.out_order = RowOrder::padded;
    moved.shuffled = !drawn.shuffled;
    moved.spare_columns = 5 - drawn.spare_columns;
    moved.table_padding = 3 - drawn.table_padding;
    expect_same_bits(drawn, moved, "moved in memory");
  }
}

TEST_P(Splits, EveryCuttingStaysWithinTolerance) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Case drawn = draw_case(seed, 3e5);
    for (const auto& [num_splits, split_kv_len] :
         {std::pair{0, 0}, {1, 0}, {2, 0}, {7, 0}, {32, 0}, {256, 0}, {0, 128}, {0, 384}}) {
      drawn.num_splits = num_splits;
      drawn.split_kv_len = split_kv_len;
      for (const int32_t workers : {1, 3, 132}) {
        drawn.workers = workers;
        ASSERT_EQ(check_if_served(subject(), drawn), "") << describe(drawn);
      }
    }
  }
}

// Witness: pytorch/pytorch#194167. With packed queries and two splits only the first request's
// partials had an address of their own.
TEST_P(Splits, PackedQueriesWithSplitsAreAllWritten) {
  for (const int batch : {2, 3, 8}) {
    for (const int32_t num_splits : {1, 2, 5, 8}) {
      Case packed;
      packed.packed_q = true;
      packed.page_size = 256;
      packed.group = 4;
      packed.num_splits = num_splits;
      for (int b = 0; b < batch; ++b) {
        packed.requests.push_back({.kv_len = 700 + b,
                                   .kv_start = 0,
                                   .q_len = 1 + b % 4,
                                   .name = static_cast<uint64_t>(b)});
      }
      ASSERT_EQ(check_if_served(subject(), packed), "");
    }
  }
}

// Witness: pytorch/torchtitan#3235. A length that grows by one each step, with automatic splits,
// met a worker count at which a partial was missing.
TEST_P(Splits, NoLengthIsSpecial) {
  Case growing;
  growing.head_dim_qk = growing.head_dim_v = 64;
  growing.page_size = 16;
  // The reference has no splits, the emulator no time.
  const int64_t step = subject().is_slow() ? 97 : 1;
  for (int64_t length = 1; length <= 2000; length += step) {
    growing.requests = requests_of({length});
    constexpr int32_t kWorkers[] = {0, 46, 76, 108, 114, 132, 148, 152};
    growing.workers = kWorkers[length % 8];
    Instance instance(growing);
    const Outcome outcome = run(subject(), instance);
    if (outcome.refused()) return;
    ASSERT_EQ(outcome.status, DEUCE_OK) << outcome.sentence;
    ASSERT_EQ(instance.frame_violation(), "") << length;
    const reference::Verdict verdict = judge_results(subject(), instance);
    ASSERT_TRUE(verdict.ok) << verdict.first_failure << ", length " << length;
  }
}

// Witness: vllm-project/flash-attention PR#87. Right values under the wrong (token, head).
TEST_P(Splits, LseBelongsToItsTokenAndHead) {
  for (const int32_t num_splits : {1, 2, 7, 64}) {
    for (const int32_t q_len : {1, 3, 8}) {
      Case scaled = fine_case(subject());
      scaled.requests = requests_of({500, 90}, q_len);
      scaled.kv_heads = 2;
      scaled.group = 3;
      scaled.causal = true;
      scaled.num_splits = num_splits;
      scaled.content = [](char tensor, int32_t, int64_t head, int64_t position, float* row) {
        if (tensor != 'q') return;  // scores grow with head and token, so each has its own LSE
        for (int i = 0; i < 64; ++i) {
          row[i] *= static_cast<float>(head + 1) * (1 + 0.25F * static_cast<float>(position));
        }
      };
      ASSERT_EQ(check_if_served(subject(), scaled), "");
    }
  }
}

TEST_P(Splits, TwoCallsOverACutRangeMergeToOneCall) {
  for (const int64_t cut : {0, 1, 64, 128, 333, 699, 700}) {
    Case whole = fine_case(subject());
    whole.requests = requests_of({700});
    whole.group = 4;
    Case left = whole, right = whole;
    left.requests[0].kv_len = cut;
    right.requests[0].kv_start = cut;
    const auto all = run_or_refuse(subject(), whole), a = run_or_refuse(subject(), left),
               b = run_or_refuse(subject(), right);
    if (!all || !a || !b) return;
    const auto out = output_values(whole, *all), out_a = output_values(whole, *a),
               out_b = output_values(whole, *b);
    const auto lse = lse_values(*all), lse_a = lse_values(*a), lse_b = lse_values(*b);
    for (std::size_t head = 0; head < lse.size(); ++head) {
      const double weight_a = std::exp(lse_a[head] - lse[head]);
      const double weight_b = std::exp(lse_b[head] - lse[head]);
      ASSERT_NEAR(weight_a + weight_b, 1, 1e-5) << "cut at " << cut;
      for (int c = 0; c < 64; ++c) {
        const std::size_t i = head * 64 + c;
        ASSERT_NEAR(weight_a * out_a[i] + weight_b * out_b[i], out[i], fine_error(whole))
            << "cut at " << cut;
      }
    }
  }
}

// Witness: Dao-AILab/flash-attention#1897. A neighbour that grew by one key changed the split count
// of another request, and with it the last bits.
TEST_P(Splits, FixedSplitsMakeARequestIndependentOfItsCompany) {
  Rng rng(42);
  for (int round = 0; round < 50; ++round) {
    Case batch;
    batch.split_kv_len = round % 2 == 0 ? 128 : 384;
    batch.kv_heads = 2;
    batch.group = 7;
    batch.page_size = 16;
    batch.causal = true;
    batch.workers = static_cast<int32_t>(uniform(rng, 1, 150));
    const RequestCase fixed{
        .kv_len = 1502, .kv_start = round % 3 == 0 ? 5 : 0, .q_len = 2, .name = 99};
    const int64_t before = uniform(rng, 0, 4), after = uniform(rng, 0, 4);
    for (int64_t b = 0; b < before + after; ++b) {
      batch.requests.push_back({.kv_len = uniform(rng, 0, 900),
                                .kv_start = 0,
                                .q_len = 2,
                                .name = static_cast<uint64_t>(b)});
    }
    batch.requests.insert(batch.requests.begin() + before, fixed);
    Case alone = batch;
    alone.requests = {fixed};
    alone.workers = static_cast<int32_t>(uniform(rng, 1, 150));
    const auto together = run_or_refuse(subject(), batch), single = run_or_refuse(subject(), alone);
    if (!together || !single) return;
    const std::size_t rows = 2 * 14, first = before * rows;
    for (std::size_t i = 0; i < single->out.size(); ++i) {
      ASSERT_EQ(together->out[first * 64 + i], single->out[i]) << describe(batch);
    }
    for (std::size_t i = 0; i < rows; ++i) {
      ASSERT_EQ(together->lse[first + i], single->lse[i]) << describe(batch);
    }
  }
}

// Witness: flashinfer-ai/flashinfer#5107. Partials in bf16 made the error grow with the splits.
TEST_P(Splits, TheErrorDoesNotGrowWithTheSplitCount) {
  Case split;
  split.requests = requests_of({8192});
  split.group = 8;
  double error_of_one = 0;
  for (const int32_t num_splits : {1, 8, 64}) {
    split.num_splits = num_splits;
    Instance instance(split);
    const Outcome outcome = run(subject(), instance);
    if (outcome.refused()) return;
    const reference::Verdict verdict = judge_results(subject(), instance);
    ASSERT_TRUE(verdict.ok) << verdict.first_failure;
    if (num_splits == 1) error_of_one = verdict.max_output_error;
    ASSERT_LE(verdict.max_output_error, 1.1 * error_of_one) << num_splits << " splits";
  }
}

DEUCE_ON_EVERY_BACKEND(Splits);

}  // namespace
}  // namespace deuce::testing
