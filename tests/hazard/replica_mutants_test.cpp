// SPDX-License-Identifier: Apache-2.0
// The edge table of the kernel with row replicas, spoilt edge by edge as in mutants_test.cpp: the
// same table must protect other columns of P and a merge that every piece goes through.
#include <gtest/gtest.h>

#include <string>

#include "emulator/blackwell.h"
#include "emulator/decode_case.h"

namespace deuce {
namespace {

using emulator::DecodeCase;
using emulator::KernelSpec;
using emulator::Mode;
using emulator::Op;
using emulator::OpContext;
using emulator::OpKind;

enum class Spoiled { wait, arrival, parity };

/// Drops the waits or arrivals of one edge, or waits for the wrong parity.
class SpoilEdge final : public emulator::OpFilter {
 public:
  SpoilEdge(const Edge& edge, Spoiled what) : edge_(edge), what_(what) {}
  bool pass(Op& op, const OpContext& context) override {
    if (!is_mine(op, context)) return true;
    const bool waits = op.kind == OpKind::wait || op.kind == OpKind::sync_named;
    const bool arrives = op.kind == OpKind::arrive || op.kind == OpKind::arrive_expect ||
                         op.kind == OpKind::commit || op.kind == OpKind::arrive_named;
    if (what_ == Spoiled::parity && op.kind == OpKind::wait) op.index += 1;
    return !(what_ == Spoiled::wait && waits) && !(what_ == Spoiled::arrival && arrives);
  }

 private:
  bool is_mine(const Op& op, const OpContext& context) const {
    if (op.kind == OpKind::arrive_named || op.kind == OpKind::sync_named) {
      return edge_.kind == EdgeKind::named && op.index >= edge_.first_id &&
             op.index < edge_.first_id + edge_.slots;
    }
    if (op.barrier == nullptr || edge_.kind != EdgeKind::barrier) return false;
    const auto offset =
        static_cast<std::size_t>(reinterpret_cast<const std::byte*>(op.barrier) - context.shared);
    return offset >= edge_.offset &&
           offset < edge_.offset + sizeof(Barrier) * static_cast<std::size_t>(edge_.slots);
  }
  const Edge& edge_;
  Spoiled what_;
};

constexpr Mode kModes[] = {Mode::timed, Mode::eager, Mode::lazy, Mode::random, Mode::adversarial};

emulator::Report run_spoiled(int replicas, Mode mode, emulator::OpFilter* filter) {
  DecodeCase decode({.kv_len = {600, 500, 300, 200, 260, 200},
                     .num_splits = 2,
                     .row_replicas = replicas,
                     .growing = true});
  const BlackwellPlan plan = plan_blackwell(decode.problem(), 2);
  std::vector<std::byte> workspace(workspace_of(plan).bytes);
  emulator::Options options;
  options.run = {mode, mode == Mode::adversarial ? 2 : 0, 5};
  options.filter = filter;
  options.step_limit = 2'000'000;
  return emulator::run_blackwell(decode.problem(), plan, decode.call(), workspace.data(), options)
      .report;
}

class ReplicaMutants : public testing::TestWithParam<int> {};

TEST_P(ReplicaMutants, TheKernelItselfIsClean) {
  for (const Mode mode : kModes) EXPECT_EQ(run_spoiled(GetParam(), mode, nullptr).text(), "");
}

TEST_P(ReplicaMutants, EverySpoiltEdgeIsCaughtInEveryMode) {
  const KernelSpec& kernel = *emulator::blackwell_spec({.row_replicas = GetParam()});
  int caught = 0, total = 0;
  for (const Edge& edge : kernel.edges) {
    if (edge.kind == EdgeKind::implied) continue;
    for (const Spoiled what : {Spoiled::wait, Spoiled::arrival, Spoiled::parity}) {
      if (what == Spoiled::parity && edge.kind != EdgeKind::barrier) continue;
      for (const Mode mode : kModes) {
        SpoilEdge filter(edge, what);
        const bool error = run_spoiled(GetParam(), mode, &filter).has_error();
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
}  // namespace deuce
