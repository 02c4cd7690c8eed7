// SPDX-License-Identifier: Apache-2.0
// The problem that `deuce check` takes by default must be able to show every edge of the table at
// work: a kernel that lacks a wait or an arrival must never end as clean there.
#include <gtest/gtest.h>

#include <string>

#include "decode_options.h"
#include "emulator/check.h"
#include "hazard/mutant.h"
#include "plan/names.h"

namespace deuce::test {
namespace {

using emulator::CheckResult;
using emulator::CheckSettings;
using emulator::Op;
using emulator::OpContext;
using emulator::Verdict;

CheckSettings default_settings(Backend kernel) {
  cli::DecodeOptions options;  // as without any option on the command line
  options.kernel = name_of(kernel);
  CheckSettings settings;
  settings.spec = cli::spec_of(options).value();
  return settings;
}

std::vector<Edge> edges_of(const CheckSettings& settings) {
  const emulator::DecodeCase decode(settings.spec);
  return emulator::make_decode_kernel(decode.problem(), settings.blocks)->spec({}).edges;
}

/// The verdict on a kernel of which `keep` drops operations.
Verdict verdict_without(CheckSettings settings, const Spoil& keep) {
  const emulator::DecodeCase decode(settings.spec);
  const auto kernel = emulator::make_decode_kernel(decode.problem(), settings.blocks);
  const auto filter = make_filter(kernel->spec({}), keep);
  settings.filter = filter.get();
  settings.schedules = 1;  // the timed one: an error must not hang on luck
  const Result<CheckResult> result = emulator::check(settings);
  EXPECT_TRUE(result.ok()) << result.status().sentence();
  return result.ok() ? result.value().verdict : Verdict::clean;
}

class DefaultProblem : public testing::TestWithParam<Backend> {};
INSTANTIATE_TEST_SUITE_P(Kernels, DefaultProblem,
                         testing::Values(Backend::blackwell, Backend::hopper),
                         [](const auto& kernel) {
                           return kernel.param == Backend::hopper ? "hopper" : "blackwell";
                         });

TEST_P(DefaultProblem, IsCleanAndExercisesEveryEdge) {
  const Result<CheckResult> result = emulator::check(default_settings(GetParam()));
  ASSERT_TRUE(result.ok()) << result.status().sentence();
  EXPECT_EQ(result.value().verdict, Verdict::clean) << result.value().report.text();
  EXPECT_EQ(result.value().exercised_edges(), result.value().total_edges());
}

TEST_P(DefaultProblem, IsNotCleanWithoutTheWaitsOnAnEdge) {
  const CheckSettings settings = default_settings(GetParam());
  for (const Edge& edge : edges_of(settings)) {
    if (edge.kind == EdgeKind::implied) continue;
    int dropped = 0;
    const Verdict verdict =
        verdict_without(settings, [&](const Op& op, const OpContext&, const Where& where) {
          const bool drops = is_wait(op) && where.is(edge.name);
          dropped += drops ? 1 : 0;
          return !drops;
        });
    EXPECT_GT(dropped, 0) << edge.name;
    EXPECT_EQ(verdict, Verdict::error) << edge.name;
  }
}

TEST_P(DefaultProblem, IsNotCleanWithoutTheArrivalsOfARole) {
  const CheckSettings settings = default_settings(GetParam());
  for (const Edge& edge : edges_of(settings)) {
    if (edge.kind == EdgeKind::implied) continue;
    for (const Arrival& arrival : edge.arrives) {
      if (arrival.by == By::nobody) continue;
      int dropped = 0;
      const Verdict verdict = verdict_without(settings, [&](const Op& op, const OpContext& context,
                                                            const Where& where) {
        const bool drops = is_arrival(op) && where.is(edge.name) && context.role == arrival.role;
        dropped += drops ? 1 : 0;
        return !drops;
      });
      // Where all meet at a named barrier, waiting is arriving.
      EXPECT_TRUE(dropped > 0 || edge.kind == EdgeKind::named) << edge.name;
      EXPECT_EQ(verdict == Verdict::error, dropped > 0)
          << edge.name << " without " << deuce::name_of(arrival.role);
    }
  }
}

TEST_P(DefaultProblem, TooShortOnesAreIncompleteAndSayWhy) {
  CheckSettings settings = default_settings(GetParam());
  settings.spec.kv_len = {100};
  const Result<CheckResult> result = emulator::check(settings);
  ASSERT_TRUE(result.ok()) << result.status().sentence();
  EXPECT_EQ(result.value().verdict, Verdict::incomplete);
  const std::string& reason = result.value().report.incomplete_reason();
  EXPECT_NE(reason.find("--kv-len"), std::string::npos) << reason;
  EXPECT_NE(reason.find(GetParam() == Backend::hopper ? "k_arrived" : "kv_released"),
            std::string::npos)
      << reason;
}

}  // namespace
}  // namespace deuce::test
