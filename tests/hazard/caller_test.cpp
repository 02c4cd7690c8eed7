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
  for (const auto& [size, stride] : {Strides{{2, 3, 4}, {200, 40, 8}}, Strides{{3, 4, 2}, {8, 40, 160}},
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

}  // namespace
}  // namespace deuce::test
