// SPDX-License-Identifier: Apache-2.0
// Which property tests a subject refuses as a whole, because no case of them is in its reach. In
// all others it must compute something: a test whose every case is refused passes and shows
// nothing.
#include <fmt/format.h>

#include <set>

#include "kernel/backends.h"

namespace deuce::testing {
namespace {

const std::set<std::string>& expected_refusals() {
  static const std::set<std::string> tests{
      // No fp8 cache, no fp32 output, at most 128 rows of an item.
      "Backends/Addressing.EveryStaleByteOfAnFp8CacheIsInvisible/emulator_blackwell",
      "Backends/Numerics.EveryByteOfTheFp8FormatsIsItself/emulator_blackwell",
      "Backends/Numerics.RatioSevenIsAsGoodAsRatioEight/emulator_blackwell",
      "Backends/Numerics.TheErrorDoesNotGrowWithTheLength/emulator_blackwell",
      "Backends/Large.SeventyThousandFoldedHeadsAreServed/emulator_blackwell",
      // Head dims 64 and 128 alone.
      "Backends/Numerics.TheErrorDoesNotGrowWithTheLength/emulator_hopper",
      "Backends/Numerics.TheErrorDoesNotGrowWithTheLength/hopper",
  };
  return tests;
}

}  // namespace

std::string service_complaint(const std::string& test, const ServedCases& cases) {
  if (cases.computed + cases.refused == 0) return {};  // skipped, or already failed
  const bool refuses_all = expected_refusals().contains(test);
  if (refuses_all == (cases.computed == 0)) return {};
  return fmt::format("{}: computed {} cases and refused {}, and the list of what is refused {} it",
                     test, cases.computed, cases.refused, refuses_all ? "has" : "lacks");
}

TEST(ServedCases, ATestThatIsRefusedAsAWholeFailsUnlessItIsListed) {
  const std::string listed = *expected_refusals().begin(), other = "Backends/Masks.Other/cpu";
  EXPECT_NE(service_complaint(other, {.computed = 0, .refused = 3}), "");
  EXPECT_EQ(service_complaint(other, {.computed = 1, .refused = 3}), "");
  EXPECT_EQ(service_complaint(other, {}), "");
  EXPECT_EQ(service_complaint(listed, {.computed = 0, .refused = 3}), "");
  EXPECT_NE(service_complaint(listed, {.computed = 1, .refused = 3}), "") << "an old list";
}

}  // namespace deuce::testing
