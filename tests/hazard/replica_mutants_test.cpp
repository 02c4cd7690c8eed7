// SPDX-License-Identifier: Apache-2.0
// The edge table of the kernel with row replicas, spoilt edge by edge as in mutants_test.cpp: the
// same table must protect other columns of P and a merge that every piece goes through.
#include <gtest/gtest.h>

#include <string>

#include "hazard/mutant.h"

namespace deuce::test {
namespace {

using emulator::DecodeCase;
using emulator::KernelSpec;
using emulator::Mode;
using emulator::Op;
using emulator::OpContext;
using emulator::OpKind;

enum class Spoiled { wait, arrival, parity };

/// Drops the waits or arrivals of one edge, or waits for the wrong parity.
Spoil spoil(const Edge& edge, Spoiled what) {
  return [&edge, what](Op& op, const OpContext&, const Where& where) {
    if (!where.is(edge.name)) return true;
    if (what == Spoiled::parity && op.kind == OpKind::wait) op.index += 1;
    return !(what == Spoiled::wait && is_wait(op)) && !(what == Spoiled::arrival && is_arrival(op));
  };
}

class ReplicaMutants : public testing::TestWithParam<int> {};

TEST_P(ReplicaMutants, TheKernelItselfIsClean) {
  for (const Mode mode : kModes) {
    DecodeCase decode(stimulus());
    EXPECT_EQ(run_mutant(decode, mode, {.replicas = GetParam()}).report.text(), "");
  }
}

TEST_P(ReplicaMutants, EverySpoiltEdgeIsCaughtInEveryMode) {
  const KernelSpec& kernel = *emulator::blackwell_spec({.row_replicas = GetParam()});
  int caught = 0, total = 0;
  for (const Edge& edge : kernel.edges) {
    if (edge.kind == EdgeKind::implied) continue;
    for (const Spoiled what : {Spoiled::wait, Spoiled::arrival, Spoiled::parity}) {
      if (what == Spoiled::parity && edge.kind != EdgeKind::barrier) continue;
      for (const Mode mode : kModes) {
        DecodeCase decode(stimulus());
        const Mutant mutant{.spoil = spoil(edge, what), .replicas = GetParam()};
        const bool error = run_mutant(decode, mode, mutant).report.has_error();
        EXPECT_TRUE(error) << edge.name << ", spoilt " << static_cast<int>(what) << ", mode "
                           << static_cast<int>(mode);
        caught += error ? 1 : 0;
        ++total;
      }
    }
  }
  RecordProperty("caught", caught);
  RecordProperty("total", total);
}

INSTANTIATE_TEST_SUITE_P(Replicas, ReplicaMutants, testing::Values(2, 4),
                         [](const auto& replicas) { return std::to_string(replicas.param); });

}  // namespace
}  // namespace deuce::test
