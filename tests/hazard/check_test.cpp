// SPDX-License-Identifier: Apache-2.0
// The problem that `deuce check` takes by default must be able to show every edge of the table at
// work: a kernel that lacks a wait or an arrival must never end as clean there.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "emulator/check.h"
#include "hazard/mutant.h"

namespace deuce::test {
namespace {

using emulator::CheckResult;
using emulator::CheckSettings;
using emulator::Op;
using emulator::OpContext;
using emulator::Verdict;

CheckSettings default_settings(Backend kernel) {
  CheckSettings settings;
  settings.spec.kernel = kernel;
  settings.spec.kv_len = emulator::mixed_lengths(1000);
  settings.spec.row_replicas = 0;
  if (kernel == Backend::hopper) settings.spec.score_slots = 0;
  settings.schedules = 1;  // the timed one: the verdict must not hang on luck
  return settings;
}

const emulator::KernelSpec& kernel_of(const CheckSettings& settings) {
  static std::vector<std::unique_ptr<emulator::DecodeKernel>> kept;
  const emulator::DecodeCase decode(settings.spec);
  kept.push_back(emulator::make_decode_kernel(decode.problem(), settings.blocks));
  return kept.back()->spec({});
}

/// The verdict on a kernel of which every operation that `lost` picks is missing.
Verdict verdict_without(CheckSettings settings, const Spoil& keep) {
  const auto filter = make_filter(kernel_of(settings), keep);
  settings.filter = filter.get();
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

TEST_P(DefaultProblem, IsNotCleanWithoutAnyWaitOrArrival) {
  const CheckSettings settings = default_settings(GetParam());
  for (const Edge& edge : kernel_of(settings).edges) {
    if (edge.kind == EdgeKind::implied) continue;
    const std::string name(edge.name);
    int waits = 0, arrivals = 0;
    const Verdict waitless =
        verdict_without(settings, [&](const Op& op, const OpContext&, const Where& where) {
          const bool drops = is_wait(op) && where.is(name);
          waits += drops ? 1 : 0;
          return !drops;
        });
    EXPECT_GT(waits, 0) << name;
    EXPECT_EQ(waitless, Verdict::error) << "no wait for " << name;
    const Verdict arrivalless =
        verdict_without(settings, [&](const Op& op, const OpContext&, const Where& where) {
          const bool drops = is_arrival(op) && where.is(name);
          arrivals += drops ? 1 : 0;
          return !drops;
        });
    // Where all meet at a named barrier, waiting is arriving.
    EXPECT_TRUE(arrivals > 0 || edge.kind == EdgeKind::named) << name;
    EXPECT_EQ(arrivalless, arrivals > 0 ? Verdict::error : Verdict::clean)
        << "no arrival on " << name;
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
