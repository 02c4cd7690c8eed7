// SPDX-License-Identifier: Apache-2.0
// P8, P9 and P3: every key is found wherever its page lies, every read is the right one, and bytes
// that no row sees stay unseen whatever they are.
#include <fmt/format.h>

#include <cmath>

#include "kernel/backends.h"
#include "kernel/values.h"

namespace deuce::testing {
namespace {

constexpr int kDim = 64, kDigits = 256;

/// One key of each request scores far above the rest; its V row names request, KV head, position,
/// in digits that fp16 holds.
Case needle_case(const Subject& subject, const std::vector<int64_t>& lengths,
                 std::vector<int64_t> needles) {
  Case hidden = fine_case(subject);
  hidden.requests = requests_of(lengths);
  hidden.kv_heads = 2;
  hidden.group = 2;
  hidden.softmax_scale = 1;
  hidden.content = [needles = std::move(needles)](char tensor, int32_t request, int64_t head,
                                                  int64_t position, float* row) {
    for (int i = 0; i < kDim; ++i) row[i] = 0;
    if (tensor == 'q') row[0] = 1;
    if (tensor == 'k') row[0] = position == needles[request] ? 100.0F : 0.0F;
    if (tensor != 'v') return;
    row[0] = static_cast<float>(position % kDigits);
    row[1] = static_cast<float>(request);
    row[2] = static_cast<float>(head);
    row[3] = static_cast<float>(position / kDigits);
  };
  return hidden;
}

class Addressing : public Backends {
 protected:
  void expect_needles(const Case& hidden, const std::vector<int64_t>& needles) {
    const auto outcome = run_or_refuse(subject(), hidden);
    if (!outcome) return;
    const auto out = output_values(hidden, *outcome);
    for (std::size_t b = 0; b < needles.size(); ++b) {
      for (int head = 0; head < 4; ++head) {
        const double* row = &out[(b * 4 + head) * kDim];
        ASSERT_NEAR(row[3] * kDigits + row[0], static_cast<double>(needles[b]), 0.01)
            << "request " << b << " read another position\n  " << describe(hidden).substr(0, 500);
        ASSERT_NEAR(row[1], static_cast<double>(b), 0.01) << "read another request";
        ASSERT_NEAR(row[2], head / 2, 0.01) << "read another KV head";
      }
    }
  }
};

// Witness: tile-ai/TileOPs PR#1787. The last keys of each page dropped when the tile did not
// divide it.
TEST_P(Addressing, EveryKeyOfEveryPageIsFound) {
  for (const int32_t page_size : {0, 1, 8, 16, 24, 48, 96, 128, 192, 256}) {
    const bool is_quick = page_size % 48 == 0 || page_size == 8;
    const bool too_slow = subject().backend == DEUCE_BACKEND_EMULATOR && !is_quick;
    if (leaves_out(too_slow, fmt::format("pages of {}", page_size))) continue;
    const int64_t length = page_size == 0 ? 200 : std::max<int64_t>(200, page_size + 37);
    std::vector<int64_t> lengths, needles;
    for (int64_t position = 0; position < length; ++position) {
      lengths.push_back(length);
      needles.push_back(position);
    }
    Case hidden = needle_case(subject(), lengths, needles);
    hidden.page_size = page_size;
    hidden.indptr = page_size % 16 == 8;
    expect_needles(hidden, needles);
  }
}

// Witness: flashinfer-ai/flashinfer#4347. Only the first 4,096 keys and the last page counted.
TEST_P(Addressing, EveryPageOfALongContextIsFound) {
  for (const int32_t page_size : {16, 256, 1024}) {
    const bool too_slow = subject().backend == DEUCE_BACKEND_EMULATOR && page_size != 256;  // 7 s
    if (leaves_out(too_slow, fmt::format("pages of {}", page_size))) continue;
    std::vector<int64_t> lengths, needles;
    for (const int64_t position : {0, 4095, 4096, 8191, 20000, 32767, 40959}) {
      lengths.push_back(40960);
      needles.push_back(position);
    }
    Case hidden = needle_case(subject(), lengths, needles);
    hidden.page_size = page_size;
    expect_needles(hidden, needles);
  }
}

// Witness: vllm-project/vllm#11340. The last tile spans more pages than the table has. The table
// ends at a page that may not be touched, at every offset mod 16.
TEST_P(Addressing, TablesAreReadToTheirEndAndNoFurther) {
  for (int64_t length = 1; length <= 300; length += subject().is_slow() ? 7 : 1) {
    Case exact;
    exact.requests = requests_of({length, 1, length});
    exact.page_size = length % 2 == 0 ? 16 : 8;
    exact.indptr = length % 3 == 0;
    exact.table_padding = static_cast<int32_t>(length % 4);
    ASSERT_EQ(check_if_served(subject(), exact), "");
  }
}

// Witness: deepseek-ai/FlashMLA#11. All lengths 0 with a table of zero columns.
TEST_P(Addressing, ATableWithoutColumnsIsNeverRead) {
  Case empty;
  empty.requests = requests_of(std::vector<int64_t>(16, 0));
  empty.page_size = 64;
  empty.group = 16;
  ASSERT_EQ(check_if_served(subject(), empty), "");
  empty.requests[7].kv_len = 100;
  empty.requests[0].kv_len = 1;
  ASSERT_EQ(check_if_served(subject(), empty), "");
}

// Witness: PSAL-POSTECH/ONNXim#33. KV head = head / hkv instead of head / ratio.
TEST_P(Addressing, ChangingOneKvHeadChangesItsOwnQueryHeadsOnly) {
  for (const auto& [kv_heads, group] : {std::pair{12, 1}, {8, 4}, {4, 7}, {2, 3}}) {
    Case base = fine_case(subject());
    base.requests = requests_of({77, 300});
    base.kv_heads = kv_heads;
    base.group = group;
    const auto before = run_or_refuse(subject(), base);
    if (!before) continue;
    for (int changed = 0; changed < kv_heads; ++changed) {
      Case other = base;
      other.content = [changed](char tensor, int32_t, int64_t head, int64_t, float* row) {
        if (tensor == 'v' && head == changed) row[0] += 1;
      };
      const auto after = run_or_refuse(subject(), other);
      for (int head = 0; head < base.q_heads(); ++head) {
        const bool differs = before->out[head * kDim] != after->out[head * kDim];
        ASSERT_EQ(differs, head / group == changed) << kv_heads << " KV heads, query head " << head;
      }
    }
  }
}

TEST_P(Addressing, ARequestOfOneKeyReturnsItsVExactly) {
  Case single;
  single.requests = requests_of(std::vector<int64_t>(40, 1), 2);
  single.kv_heads = 3;
  single.group = 2;
  single.page_size = 16;
  single.kv_order = KvOrder::interleaved;
  const auto outcome = run_or_refuse(subject(), single);
  if (!outcome) return;
  Instance source(single);
  for (int b = 0; b < 40; ++b) {
    for (int head = 0; head < 6; ++head) {
      const int64_t page = source.args.block_table[b * source.args.block_table_stride];
      const auto* v = static_cast<const uint16_t*>(source.args.v) + page * source.args.v_stride[0] +
                      head / 2 * source.args.v_stride[2];
      for (int c = 0; c < kDim; ++c) ASSERT_EQ(outcome->out[((b * 2) * 6 + head) * kDim + c], v[c]);
    }
  }
}

// Witnesses: Dao-AILab/flash-attention#1745, #2374, #1974; tenstorrent/tt-metal#41215.
TEST_P(Addressing, UnusedBytesOfAnyKindAreInvisible) {
  using Fill = Poison::Fill;
  std::vector<Case> cases;
  for (const int32_t page_size : {0, 16, 32, 64, 128, 256}) {
    Case partial;
    partial.page_size = page_size;
    partial.spare_columns = 3;
    partial.requests = requests_of({1, 3, 15, 16, 17, 31, 48, 63, 64, 65, 96, 107, 127, 129, 300});
    cases.push_back(partial);
  }
  cases.push_back(cases.back());
  cases.back().window_left = 40;  // pages that left the window belong to somebody else
  cases.back().window_right = 0;
  cases.back().page_size = 16;
  for (const Case& from : cases) {
    Instance zeros(from, {.fill = Fill::zeros});
    const Outcome expected = run(subject(), zeros);
    if (expected.refused()) continue;
    for (const Fill fill : {Fill::nan, Fill::negative_nan, Fill::infinity, Fill::negative_infinity,
                            Fill::largest, Fill::random}) {
      for (const auto& [in_k, in_v] : {std::pair{true, true}, {true, false}, {false, true}}) {
        Instance poisoned(from, {.fill = fill, .in_k = in_k, .in_v = in_v});
        const Outcome outcome = run(subject(), poisoned);
        ASSERT_EQ(outcome.out, expected.out) << "fill " << static_cast<int>(fill);
        ASSERT_EQ(outcome.lse, expected.lse) << "fill " << static_cast<int>(fill);
      }
    }
  }
}

// Witness: vllm-project/vllm#57716. Partly filled fp8 pages with stale bytes.
TEST_P(Addressing, EveryStaleByteOfAnFp8CacheIsInvisible) {
  for (const int32_t dtype : {DEUCE_E4M3, DEUCE_E5M2}) {
    Case partial;
    partial.kv_dtype = dtype;
    partial.page_size = 32;
    partial.requests = requests_of({1, 31, 32, 45});
    partial.token_scales = !subject().is_gpu_kernel();  // those have none
    Instance zeros(partial, {.fill = Poison::Fill::zeros});
    const Outcome expected = run(subject(), zeros);
    if (expected.refused()) continue;
    for (int byte = 0; byte < 256; ++byte) {
      Instance poisoned(partial, {.fill = Poison::Fill::bytes, .byte = static_cast<uint8_t>(byte)});
      const Outcome outcome = run(subject(), poisoned);
      ASSERT_EQ(outcome.out, expected.out) << "byte " << byte;
      ASSERT_EQ(outcome.lse, expected.lse) << "byte " << byte;
    }
  }
}

DEUCE_ON_EVERY_BACKEND(Addressing);

}  // namespace
}  // namespace deuce::testing
