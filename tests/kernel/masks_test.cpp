// SPDX-License-Identifier: Apache-2.0
// P5, P16 and P24: masks against the definition, written out here a second time. All scores are
// equal and V is a unit vector per key, so an output row shows which keys it saw.
#include <cmath>
#include <limits>

#include "kernel/backends.h"
#include "kernel/values.h"

namespace deuce::testing {
namespace {

constexpr int kDim = 64;

/// Keys are told apart by position, so at most kDim of them.
Case marked_case(const Subject& subject, int64_t kv_len, int32_t q_len) {
  Case marked = fine_case(subject);
  marked.requests = requests_of({kv_len}, q_len);
  marked.content = [](char tensor, int32_t, int64_t, int64_t position, float* row) {
    for (int i = 0; i < kDim; ++i) row[i] = 0;
    if (tensor == 'v') row[position] = 1;
  };
  return marked;
}

bool sees(const Case& from, int64_t row, int64_t key) {
  const RequestCase& r = from.requests[0];
  const int64_t pos = r.kv_len - r.q_len + row;
  return key >= r.kv_start && key < r.kv_len && (!from.causal || key <= pos) &&
         (from.window_left < 0 || key >= pos - from.window_left) &&
         (from.window_right < 0 || key <= pos + from.window_right);
}

class Masks : public Backends {
 protected:
  void expect_definition(const Case& from) {
    const auto outcome = run_or_refuse(subject(), from);
    if (!outcome) return;
    const auto out = output_values(from, *outcome), lse = lse_values(*outcome);
    for (int64_t row = 0; row < from.requests[0].q_len; ++row) {
      int count = 0;
      for (int64_t key = 0; key < kDim; ++key) count += sees(from, row, key) ? 1 : 0;
      for (int64_t key = 0; key < kDim; ++key) {
        const double expected = sees(from, row, key) ? 1.0 / count : 0;
        ASSERT_NEAR(out[row * kDim + key], expected, fine_error(from) * expected)
            << "row " << row << ", key " << key << "\n  " << describe(from);
      }
      ASSERT_NEAR(std::exp(lse[row]), count, 1e-5 * count + 1e-30) << describe(from);
      if (count == 0) {
        ASSERT_EQ(lse[row], -std::numeric_limits<double>::infinity());
      }
    }
  }
};

// Witness: pytorch/pytorch#108108. Alignment to the top left instead of the bottom right.
TEST_P(Masks, CausalIsBottomRight) {
  Case longer = marked_case(subject(), 7, 3);
  longer.causal = true;
  const auto outcome = run_or_refuse(subject(), longer);
  if (!outcome) return;
  const auto out = output_values(longer, *outcome);
  const int visible_by_hand[3] = {5, 6, 7};
  for (int row = 0; row < 3; ++row) {
    for (int key = 0; key < 7; ++key) {
      const double expected = key < visible_by_hand[row] ? 1.0 / visible_by_hand[row] : 0;
      EXPECT_NEAR(out[row * kDim + key], expected, fine_error(longer) * expected);
    }
  }
  Case shorter = marked_case(subject(), 3, 7);  // rows 0 to 3 stand before the first key
  shorter.causal = true;
  const auto second = run_or_refuse(subject(), shorter);
  const auto lse = lse_values(*second);
  const int counts_by_hand[7] = {0, 0, 0, 0, 1, 2, 3};
  for (int row = 0; row < 7; ++row) EXPECT_NEAR(std::exp(lse[row]), counts_by_hand[row], 1e-5);
}

// Witness: Dao-AILab/flash-attention#895. Two-sided windows with more queries than keys.
TEST_P(Masks, TwoSidedWindowsWithMoreQueriesThanKeys) {
  for (int32_t left = -1; left <= 4; ++left) {
    for (int32_t right = -1; right <= 4; ++right) {
      for (const bool causal : {false, true}) {
        for (const int64_t kv_start : {0, 1}) {
          Case windowed = marked_case(subject(), 3, 8);
          windowed.window_left = left;
          windowed.window_right = right;
          windowed.causal = causal;
          windowed.requests[0].kv_start = kv_start;
          expect_definition(windowed);
        }
      }
    }
  }
}

// Witness: huggingface/transformers#39408. Whether the window counts the current token.
TEST_P(Masks, WindowEdgesAreInclusive) {
  const int64_t length = 41;
  for (const int32_t window : {0, 1, 7, 8, 9, 15, 16, 17, 40, 41, 42, 1000000000}) {
    for (const int32_t q_len : {1, 2, 4}) {
      for (const int32_t page_size : {0, 8, 16}) {
        Case windowed = marked_case(subject(), length, q_len);
        windowed.window_left = window;
        windowed.page_size = page_size;
        windowed.causal = true;
        expect_definition(windowed);
        windowed.causal = false;
        windowed.window_right = window / 2;
        expect_definition(windowed);
      }
    }
  }
}

// Witness: MinghuasLab/flash-attention-npu#168. Output NaN for a window inside a long context.
TEST_P(Masks, WindowsInsideALongContext) {
  for (const int32_t window : {128, 256}) {
    for (const int32_t num_splits : {0, 1, 32}) {
      Case windowed;
      windowed.kv_dtype = windowed.q_dtype = windowed.out_dtype = DEUCE_F16;
      windowed.requests = requests_of({20000, 19999}, 16);
      windowed.packed_q = true;
      windowed.page_size = 16;
      windowed.window_left = window;
      windowed.window_right = 0;
      windowed.num_splits = num_splits;
      ASSERT_EQ(check_if_served(subject(), windowed), "");
    }
  }
}

// Witness: Dao-AILab/flash-attention#2082. All scores far below zero and a first tile that is
// masked: a running maximum that starts at 0 loses every key.
TEST_P(Masks, LowScoresSurviveAMaskedFirstTile) {
  for (const int64_t length : {448, 130, 257}) {
    for (const int32_t window : {-1, 100, 200}) {
      Case low = fine_case(subject());
      low.requests = requests_of({length}, 88);
      low.group = 7;
      low.causal = true;
      low.softmax_scale = 1;
      low.window_left = window;
      low.content = [](char tensor, int32_t, int64_t, int64_t position, float* row) {
        if (tensor == 'v') return;
        for (int i = 1; i < kDim; ++i) row[i] = 0;
        row[0] = tensor == 'q' ? 1.0F : -200.0F - static_cast<float>(position * 37 % 100);
      };
      ASSERT_EQ(check_if_served(subject(), low), "");
    }
  }
}

// Witnesses: flashinfer-ai/flashinfer#4484, NVIDIA/TensorRT-LLM#17477, NVIDIA/cudnn-frontend#943.
// V is 1 everywhere, so any weight that leaks into an empty row shows.
TEST_P(Masks, RowsThatSeeNothingAreZeroWhateverTheCause) {
  for (const int32_t num_splits : {0, 1, 7}) {
    for (const int32_t split_kv_len : {0, 128}) {
      for (const bool sink : {false, true}) {
        if (num_splits > 0 && split_kv_len > 0) continue;
        Case empty;
        empty.requests = requests_of({0, 5, 0, 130, 3, 300}, 6);
        empty.requests[3].kv_start = 130;  // no live key although the length is not 0
        empty.causal = true;               // 3 keys: rows 0 to 2 stand before them
        empty.window_left = 2;
        empty.page_size = 16;
        empty.group = 3;
        empty.sink = sink;
        empty.num_splits = num_splits;
        empty.split_kv_len = split_kv_len;
        empty.content = [](char tensor, int32_t, int64_t, int64_t, float* row) {
          for (int i = 0; i < kDim && tensor == 'v'; ++i) row[i] = 1;
        };
        ASSERT_EQ(check_if_served(subject(), empty), "");
      }
    }
  }
}

// Witness: hyprstream/hyprstream PR#1521. Draft tokens that see each other's future.
TEST_P(Masks, SeveralTokensEqualSeveralCallsOfOne) {
  for (const int32_t q_len : {2, 3, 5, 8, 17}) {
    for (const int64_t length : {128 + 1, 256 + q_len - 1, 200}) {
      Case many = fine_case(subject());
      many.requests = requests_of({length}, q_len);
      many.group = 2;
      many.causal = true;
      many.sink = true;
      many.softcap = 30;
      many.window_left = 150;
      const auto together = run_or_refuse(subject(), many);
      if (!together) return;
      const auto out = output_values(many, *together), lse = lse_values(*together);
      for (int32_t i = 0; i < q_len; ++i) {
        Case one = many;
        one.requests[0].kv_len = length - q_len + 1 + i;
        one.requests[0].q_len = 1;
        Instance source(many);  // row i of it is the one row of the single call
        one.content = [&](char tensor, int32_t, int64_t head, int64_t, float* row) {
          if (tensor != 'q') return;
          const int64_t at = i * source.args.q_stride[1] + head * source.args.q_stride[2];
          for (int c = 0; c < kDim; ++c) {
            row[c] = static_cast<float>(element(many.q_dtype, source.args.q, at + c));
          }
        };
        const auto single = run_or_refuse(subject(), one);
        const auto out_one = output_values(one, *single), lse_one = lse_values(*single);
        for (std::size_t c = 0; c < out_one.size(); ++c) {
          const double expected = out[i * 2 * kDim + c];
          ASSERT_NEAR(out_one[c], expected, 2 * fine_error(many) * (1 + std::fabs(expected)))
              << describe(many);
        }
        for (int h = 0; h < 2; ++h) ASSERT_NEAR(lse_one[h], lse[i * 2 + h], 1e-5);
      }
    }
  }
}

DEUCE_ON_EVERY_BACKEND(Masks);

}  // namespace
}  // namespace deuce::testing
