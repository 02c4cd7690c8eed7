// SPDX-License-Identifier: Apache-2.0
// Which property tests a subject refuses as a whole, because no case of them is in its reach. In
// all others it must compute something: a test whose every case is refused passes and shows
// nothing. And what the tests leave out for a subject, because it takes too long or lies on a
// device: a list that nobody can lengthen by accident.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
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

const std::set<std::string>& expected_omissions(const std::string& test) {
  using Omissions = std::set<std::string>;
  static const Omissions none, all{"all"};
  static const Omissions pages{"pages of 1", "pages of 16", "pages of 24", "pages of 128",
                               "pages of 256"};
  static const Omissions long_pages{"pages of 16", "pages of 1024"};
  static const std::map<std::string, Omissions> tests{
      {"Backends/Addressing.EveryKeyOfEveryPageIsFound/emulator_blackwell", pages},
      {"Backends/Addressing.EveryKeyOfEveryPageIsFound/emulator_hopper", pages},
      {"Backends/Addressing.EveryPageOfALongContextIsFound/emulator_blackwell", long_pages},
      {"Backends/Addressing.EveryPageOfALongContextIsFound/emulator_hopper", long_pages},
      {"Backends/Large.BatchesBeyond16BitsAreServed/emulator_blackwell", all},
      {"Backends/Large.BatchesBeyond16BitsAreServed/emulator_hopper", all},
      {"Backends/Large.AHundredThousandRequestsOfAFewKeysAreServed/emulator_blackwell", all},
      {"Backends/Large.AHundredThousandRequestsOfAFewKeysAreServed/emulator_hopper", all},
      {"Backends/Large.TwoHundredThousandPackedTokensAreServed/emulator_hopper", all},
      {"Backends/Large.SeventyThousandFoldedHeadsAreServed/emulator_hopper", all},
      // Tensors and workspaces of these tests lie on the host.
      {"Backends/Contract.ContradictoryDataIsRefusedBeforeAnythingIsWritten/hopper", all},
      {"Backends/Contract.PlansShareAWorkspaceInTurnAndRememberNothing/hopper",
       {"workspaces that nobody clears"}},
      {"Backends/Numerics.EveryByteOfTheFp8FormatsIsItself/hopper", all},
  };
  const auto found = tests.find(test);
  return found == tests.end() ? none : found->second;
}

}  // namespace

std::string service_complaint(const std::string& test, const ServedCases& cases) {
  if (const auto& expected = expected_omissions(test); cases.left_out != expected) {
    return fmt::format("{}: left out {}, and the list of what is left out says {}", test,
                       cases.left_out, expected);
  }
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

TEST(ServedCases, WhatATestLeavesOutFailsUnlessItIsListed) {
  const std::string listed = "Backends/Large.BatchesBeyond16BitsAreServed/emulator_hopper";
  EXPECT_EQ(service_complaint(listed, {.left_out = {"all"}}), "");
  EXPECT_NE(service_complaint(listed, {.computed = 1}), "") << "an old list";
  EXPECT_NE(service_complaint("Backends/Masks.Other/cpu", {.computed = 1, .left_out = {"rows"}}),
            "");
}

}  // namespace deuce::testing
