// SPDX-License-Identifier: Apache-2.0
// What a caller of the public API is told by the emulator: which memory a call owns, what cannot be
// encoded in tensor maps, and how a finding is repeated.
#include <gtest/gtest.h>

#include <cstring>

#include "emulator/memory_ranges.h"
#include "hazard/caller.h"

namespace deuce::test {
namespace {

using emulator::for_strides;
using emulator::GlobalRange;

TEST(GlobalRanges, HoldExactlyWhatTheStridesAddress) {
  const auto* base = reinterpret_cast<const std::byte*>(4096);
  struct Strides {
    int64_t size[3], stride[3];
  };
  // Nested, transposed, interleaved without nesting, backwards, shared, dense, empty.
  for (const auto& [size, stride] :
       {Strides{{2, 3, 4}, {200, 40, 8}}, Strides{{3, 4, 2}, {8, 40, 160}},
        Strides{{3, 3, 1}, {10, 14, 5}}, Strides{{2, 3, 2}, {-100, 20, -8}},
        Strides{{4, 3, 2}, {0, 24, 12}}, Strides{{2, 3, 4}, {48, 16, 4}},
        Strides{{2, 0, 4}, {48, 16, 4}}}) {
    constexpr int64_t kInner = 4, kElement = 2;
    std::vector<bool> owned(8192);
    for (int64_t a = 0; a < size[0]; ++a) {
      for (int64_t b = 0; b < size[1]; ++b) {
        for (int64_t c = 0; c < size[2]; ++c) {
          const int64_t at = a * stride[0] + b * stride[1] + c * stride[2];
          for (int64_t i = 0; i < kInner * kElement; ++i) {
            owned[static_cast<std::size_t>(4096 + at * kElement + i)] = true;
          }
        }
      }
    }
    const GlobalRange range = for_strides("x", base, size, stride, kInner, kElement, false);
    for (std::size_t i = 0; i < owned.size(); ++i) {
      EXPECT_EQ(range.contains(reinterpret_cast<const std::byte*>(i), 1), owned[i])
          << "byte " << i << " of strides " << stride[0] << ", " << stride[1] << ", " << stride[2];
    }
  }
}

TEST(GlobalRanges, AnAccessStaysInOneRunUnlessRunsTouch) {
  const auto* base = reinterpret_cast<const std::byte*>(4096);
  const GlobalRange apart = for_strides("x", base, {1, 1, 2}, {0, 0, 6}, 4, 2, false);
  EXPECT_TRUE(apart.contains(base, 8));
  EXPECT_FALSE(apart.contains(base + 4, 8));
  const GlobalRange dense = for_strides("x", base, {1, 1, 2}, {0, 0, 4}, 4, 2, false);
  EXPECT_TRUE(dense.contains(base + 4, 8));
  EXPECT_FALSE(dense.contains(base + 12, 8));
}

TEST(Caller, InterleavedTensorsAreNoHazardAndGiveTheSameBits) {
  EmulatedCall interleaved, dense;
  dense.make_dense();
  ASSERT_EQ(interleaved.run(), DEUCE_OK) << deuce_last_error();
  ASSERT_EQ(dense.run(), DEUCE_OK) << deuce_last_error();
  for (int b = 0; b < EmulatedCall::kBatch; ++b) {
    for (int h = 0; h < EmulatedCall::kQHeads; ++h) {
      for (int c = 0; c < EmulatedCall::kHeadDim; ++c) {
        ASSERT_EQ(interleaved.out(b, h, c), dense.out(b, h, c)) << b << ", " << h << ", " << c;
      }
    }
  }
  EXPECT_EQ(interleaved.lse, dense.lse);
}

TEST(Caller, IsToldOfAHazardInOneLineAndHowToRepeatIt) {
  EmulatedCall call;
  call.config.emulator_seed = 5;
  call.args.out = const_cast<void*>(call.args.q);  // results over the queries
  ASSERT_EQ(call.run(), DEUCE_HAZARD);
  const std::string sentence = deuce_last_error();
  // Which CTA stores first differs between builds: a seed repeats a run of the same one.
  EXPECT_TRUE(
      sentence.starts_with("emulator: H20: store to q, which the kernel must not write; at CTA "))
      << sentence;
  EXPECT_NE(sentence.find(" epilogue warp "), std::string::npos) << sentence;
  EXPECT_TRUE(sentence.ends_with("; replay: the same call with emulator_seed 5, row_replicas 4"))
      << sentence;
  EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
  EXPECT_EQ(sentence.find("  "), std::string::npos) << sentence;
}

TEST(Replay, HoldsEveryOptionThatShapesTheRun) {
  emulator::Options options;
  options.run = {emulator::Mode::random, 17, 3};
  EXPECT_EQ(replay_text(options), "--replay random/17 --seed 3");
  options.strict = true;
  EXPECT_EQ(replay_text(options), "--replay random/17 --seed 3 --strict");
  options.strict_order = true;
  EXPECT_EQ(replay_text(options), "--replay random/17 --seed 3 --strict --strict-order");
}

TEST(Caller, IsRefusedWhatNoTensorMapHolds) {
  struct Refusal {
    void (*change)(EmulatedCall&);
    const char *field, *sentence;
  };
  constexpr int64_t kTooFar = int64_t{1} << 39;
  for (const auto& [change, field, sentence] :
       {Refusal{[](EmulatedCall& c) { c.args.k_stride[2] = kTooFar; }, "k_stride",
                "k_stride[2] is 549755813888 elements: blackwell takes multiples of 8 from 0 to "
                "2^39 - 8"},
        Refusal{[](EmulatedCall& c) { c.args.v_stride[0] = kTooFar; }, "v_stride",
                "v_stride[0] is 549755813888 elements: blackwell takes multiples of 8 from 0 to "
                "2^39 - 8"},
        Refusal{[](EmulatedCall& c) { c.args.k_stride[1] = 260; }, "k_stride",
                "k_stride[1] is 260 elements: blackwell takes multiples of 8 from 0 to 2^39 - 8"},
        Refusal{[](EmulatedCall& c) { c.args.q_stride[2] = kTooFar / 4; }, "q_stride",
                "q_stride[2] is 137438953472 elements: blackwell takes less than 2^39 / 4, the "
                "query heads per KV head"},
        Refusal{[](EmulatedCall& c) { c.args.cache_slots = (int64_t{1} << 32) + 1; }, "cache_slots",
                "cache_slots is 4294967297: blackwell takes at most 2^32"}}) {
    EmulatedCall call;
    change(call);
    const std::vector<uint16_t> before = call.rows;
    EXPECT_EQ(call.run(), DEUCE_UNSUPPORTED) << sentence;
    EXPECT_STREQ(deuce_last_error(), sentence);
    EXPECT_STREQ(deuce_last_error_field(), field);
    EXPECT_EQ(call.rows, before);
  }
}

TEST(Caller, StridesThatAreNeverSteppedOverMayBeAnything) {
  EmulatedCall plain, odd;
  for (EmulatedCall* call : {&plain, &odd}) call->args.batch = 1;
  odd.args.q_stride[0] = odd.args.q_stride[1] = 7;  // one request of one row
  odd.args.out_stride[0] = odd.args.out_stride[1] = -3;
  odd.args.k_stride[0] = int64_t{1} << 45;
  odd.args.v_stride[0] = -1;
  ASSERT_EQ(plain.run(), DEUCE_OK) << deuce_last_error();
  ASSERT_EQ(odd.run(), DEUCE_OK) << deuce_last_error();
  EXPECT_EQ(plain.rows, odd.rows);
}

/// What docs/semantics.md says of infinities in V: a weight of 0 times infinity is NaN, and a
/// replica's weights of the keys that are not its own are 0.
TEST(Caller, AnInfiniteValueIsInfiniteWithOneReplicaAndNaNWithMore) {
  for (const int replicas : {1, 2, 4}) {
    EmulatedCall call;
    call.config.row_replicas = replicas;
    const uint16_t infinity = 0x7f80;
    call.v(0, 33, 1, 5) = infinity;
    ASSERT_EQ(call.run(), DEUCE_OK) << deuce_last_error();
    for (int h = 0; h < EmulatedCall::kQHeads; ++h) {
      const bool sees = h >= EmulatedCall::kQHeads / EmulatedCall::kKvHeads;
      for (int c = 0; c < EmulatedCall::kHeadDim; ++c) {
        const uint16_t bits = call.out(0, h, c);
        const bool finite = (bits & infinity) != infinity;
        EXPECT_EQ(finite, !(sees && c == 5)) << replicas << " replicas, head " << h << ", " << c;
        EXPECT_EQ(bits == infinity, !finite && replicas == 1) << replicas << ": " << bits;
      }
    }
  }
}

}  // namespace
}  // namespace deuce::test
