// SPDX-License-Identifier: Apache-2.0
// The draw, under the whole frame, on every backend: P1 to P5 and P28 of the test plan. Any single
// feature that is wrong in any combination shows here first.
#include "kernel/backends.h"
#include "kernel/mutants.h"

namespace deuce::testing {
namespace {

class RandomCases : public Backends {};

TEST_P(RandomCases, EveryDrawnCaseIsExactWithinToleranceAndSeesNoUnusedByte) {
  const Property property = [](const Subject& subject, const Case& from) {
    bool refused = false;
    return check_frame(subject, from, &refused);
  };
  int refused_cases = 0;
  const uint64_t rounds = subject().backend == DEUCE_BACKEND_EMULATOR ? 100 : 300;
  for (uint64_t seed = 1; seed <= rounds; ++seed) {
    const Case drawn = within_reach(subject(), draw_case(seed, subject().is_slow() ? 4e5 : 2e6));
    bool refused = false;
    const std::string failure = check_frame(subject(), drawn, &refused);
    ASSERT_EQ(failure, "") << shrink(subject(), drawn, property);
    refused_cases += refused ? 1 : 0;
  }
  EXPECT_LT(refused_cases, static_cast<int>(2 * rounds / 3)) << "hardly anything was computed";
}
DEUCE_ON_EVERY_BACKEND(RandomCases);

void expect_to_die(const Subject& mutant) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    bool refused = false;
    const std::string failure = check_frame(mutant, draw_case(seed, 1e5), &refused);
    const bool was_refused = failure.starts_with("refused");  // by validation: proves nothing
    if (!failure.empty() && !was_refused) return;
  }
  ADD_FAILURE() << "the frame does not notice: " << mutant.name;
}

TEST(RandomCasesMutants, EveryWrongArgumentIsNoticed) {
  for (const Subject& mutant : argument_mutants()) expect_to_die(mutant);
}

TEST(RandomCasesMutants, EveryDamagedResultIsNoticed) {
  for (const Subject& mutant : result_mutants()) expect_to_die(mutant);
}

}  // namespace
}  // namespace deuce::testing
