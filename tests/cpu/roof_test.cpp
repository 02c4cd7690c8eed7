// SPDX-License-Identifier: Apache-2.0
// The roofs are plausible numbers of the machine, measured over a buffer that no cache holds.
#include "cpu/roof.h"

#include <gtest/gtest.h>

namespace deuce::cpu {
namespace {

TEST(Roof, ReadsABufferBeyondTheLastLevelCacheAtAPlausibleRate) {
  const Roof roof = measure_roof(1, 0.2);
  EXPECT_EQ(roof.threads, 1);
  EXPECT_GT(roof.buffer_bytes, 2 * last_level_cache_bytes());
  EXPECT_GE(roof.passes, 5);
  EXPECT_GE(roof.read_bytes.best, roof.read_bytes.median);
  EXPECT_GT(roof.read_bytes.best, 1e8);
  EXPECT_LT(roof.read_bytes.best, 1e12) << "faster than any memory: the loads were optimised away";
  EXPECT_GT(roof.multiply_adds.best, 1e8);
  EXPECT_LT(roof.multiply_adds.best, 1e12) << "faster than any core";
}

TEST(Roof, ReadsTheMemoryItIsGivenAndCountsItsBytes) {
  std::vector<std::byte> first((std::size_t{5} << 20) + 256), second(4096);
  ReadRoof roof(std::vector<std::span<const std::byte>>{first, second});
  EXPECT_EQ(roof.buffer_bytes(), first.size() + second.size());
  const double rate = roof.pass();
  EXPECT_GT(rate, 1e8);
  EXPECT_LT(rate, 1e13);
}

}  // namespace
}  // namespace deuce::cpu
