// SPDX-License-Identifier: Apache-2.0
// Fences: tcgen05 fences of every role (H14, an error in strict mode, a note else), and the proxy
// fence between a generic read and an asynchronous overwrite (H4).
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/machine.h"
#include "hazard/mutant.h"

namespace deuce::test {
namespace {

using emulator::DecodeCase;
using emulator::KernelSpec;
using emulator::Launch;
using emulator::Machine;
using emulator::Mode;
using emulator::Op;
using emulator::OpContext;
using emulator::OpKind;
using emulator::Options;
using emulator::Report;
using emulator::Severity;

Mutant without(OpKind fence, Role role, const char* about) {
  return {"a tcgen05 fence missing",
          [fence, role](const Op& op, const OpContext& context, const Where&) {
            return !(op.kind == fence && context.role == role);
          },
          {{"H14", about}},
          2,
          true};
}

class TensorFences : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Replicas, TensorFences, testing::Values(1, 2, 4),
                         [](const auto& replicas) { return std::to_string(replicas.param); });

TEST_P(TensorFences, EachRolesFencesAreNeededInStrictMode) {
  std::vector<Mutant> mutants{
      without(OpKind::fence_before, Role::softmax, "S/P slot"),
      without(OpKind::fence_before, Role::correction, "O"),
      without(OpKind::fence_after, Role::softmax, "S/P slot"),
      without(OpKind::fence_after, Role::correction, "O"),
      without(OpKind::fence_after, Role::mma, ""),
  };
  for (Mutant& mutant : mutants) mutant.replicas = GetParam();
  expect_caught(mutants);
}

TEST_P(TensorFences, TheKernelThatWaitsIsCleanInStrictMode) {
  for (const int slots : {2, 3}) {
    const Mutant none{.name = "none", .slots = slots, .strict = true, .replicas = GetParam()};
    EXPECT_EQ(survivors(none), "") << slots << " slots";
  }
}

/// Strict mode takes only the pairs that the PTX text promises to keep their order on the pipe.
TEST_P(TensorFences, TheKernelsOneRelianceIsReportedInStrictMode) {
  for (const Mode mode : kModes) {
    DecodeCase decode(stimulus());
    const Mutant none{.name = "none", .strict = true, .replicas = GetParam(), .relies = true};
    const Report report = run_mutant(decode, mode, none).report;
    EXPECT_TRUE(report.has("H2")) << report.text();
  }
}

TEST_P(TensorFences, AMissingOneIsANoteOtherwise) {
  for (const Mode mode : kModes) {
    DecodeCase decode(stimulus());
    Mutant mutant = without(OpKind::fence_after, Role::mma, "");
    mutant.strict = false;
    mutant.replicas = GetParam();
    const Report report = run_mutant(decode, mode, mutant).report;
    EXPECT_TRUE(report.has("H14")) << report.text();
    EXPECT_FALSE(report.has_error()) << report.text();
    for (const auto& finding : report.findings()) EXPECT_EQ(finding.severity, Severity::note);
  }
}

/// A tile read by one warp's loads, and then overwritten by another warp's copy.
struct Storage {
  alignas(128) unsigned char tile[128];
  Barrier arrived, released;
};

KernelSpec reuse_kernel() {
  KernelSpec spec;
  spec.name = "reuse";
  spec.threads = 64;
  spec.shared_bytes = sizeof(Storage);
  spec.roles = {{Role::load, 0, 1, 128}, {Role::attend, 1, 1, 128}};
  spec.edges = {Edge{.name = "kv_arrived",
                     .arrives = {{{Role::load, By::bytes}}},
                     .waits = Role::attend,
                     .protects = "tile",
                     .offset = offsetof(Storage, arrived)},
                Edge{.name = "kv_released",
                     .arrives = {{{Role::attend, By::one_lane}}},
                     .waits = Role::load,
                     .protects = "tile",
                     .offset = offsetof(Storage, released)}};
  spec.shared_ranges = {{"tile", offsetof(Storage, tile), 128, 1}};
  return spec;
}

void load(Machine& machine, Storage& shared, const unsigned char* source) {
  for (int lap = 0; lap < 3; ++lap) {
    machine.wait(shared.released, lap - 1);
    if (machine.elect()) {
      machine.arrive_expect(shared.arrived, 128);
      machine.copy_bulk(shared.tile, source, 128, shared.arrived);
    }
    machine.sync_warp();
  }
  machine.wait(shared.released, 2);
}

void attend(Machine& machine, Storage& shared, bool fence) {
  for (int lap = 0; lap < 3; ++lap) {
    machine.wait(shared.arrived, lap);
    EXPECT_EQ(machine.load_shared(shared.tile[machine.lane()]), 7);
    if (fence) machine.fence_async();
    machine.sync_warp();
    if (machine.elect()) machine.arrive(shared.released);
    machine.sync_warp();
  }
}

Report run_reuse(Mode mode, bool fence, bool strict) {
  alignas(16) static const unsigned char source[128] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
                                                        7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
                                                        7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
  const KernelSpec kernel = reuse_kernel();
  Launch launch;
  launch.kernel = &kernel;
  launch.memory = {{"source", source, sizeof source, false}};
  launch.entry = [&](Machine& machine) {
    auto& shared = machine.shared<Storage>();
    if (machine.thread() == 0) {
      machine.init(shared.arrived, 1);
      machine.init(shared.released, 1);
      machine.fence_barrier_init();
    }
    machine.sync_block();
    if (machine.warp() == 0) {
      load(machine, shared, source);
    } else {
      attend(machine, shared, fence);
    }
  };
  Options options;
  options.run = {mode, 0, 1};
  options.strict = strict;
  return emulator::run(launch, options).report;
}

TEST(ProxyFences, AGenericReadBeforeAnAsynchronousOverwriteIsNoted) {
  for (const Mode mode : kModes) {
    const Report report = run_reuse(mode, false, false);
    EXPECT_TRUE(report.has("H4")) << report.text();
    EXPECT_EQ(report.verdict(), emulator::Verdict::clean) << "a note: practice everywhere";
    EXPECT_EQ(run_reuse(mode, false, true).verdict(), emulator::Verdict::review);
  }
}

TEST(ProxyFences, AFenceByTheReaderIsEnough) {
  for (const Mode mode : kModes) {
    for (const bool strict : {false, true}) EXPECT_EQ(run_reuse(mode, true, strict).text(), "");
  }
}

}  // namespace
}  // namespace deuce::test
