// SPDX-License-Identifier: Apache-2.0
// Mutants of the Hopper kernel: every wait, arrival, count, parity and byte count of its edge table
// is spoilt in turn, and what else orders its memory. Each must be reported in all five schedule
// modes, by the right finding about the right edge or memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "emulator/hopper.h"
#include "hazard/mutant.h"
#include "plan/hopper_shapes.h"

namespace deuce::test {
namespace {

using emulator::DecodeCase;
using emulator::Finding;
using emulator::KernelSpec;
using emulator::Op;
using emulator::OpContext;
using emulator::OpKind;
using emulator::RunResult;

/// With 64 rows a warpgroup takes each tile, with 128 two share it; both move registers.
struct Kernel {
  int rows, slots;
};

class HopperMutants : public testing::TestWithParam<Kernel> {
 protected:
  static const KernelSpec& kernel() {
    return emulator::hopper_spec(
        hopper::select_shape(128, hopper::Element::bf16, GetParam().rows, true, GetParam().slots));
  }
  static std::vector<Edge> edges_with(EdgeKind kind) {
    std::vector<Edge> list;
    for (const Edge& edge : kernel().edges) {
      if (edge.kind == kind) list.push_back(edge);
    }
    return list;
  }
  static std::vector<Edge> all_edges() {
    std::vector<Edge> list = edges_with(EdgeKind::barrier);
    for (const Edge& edge : edges_with(EdgeKind::named)) list.push_back(edge);
    return list;
  }
  static void expect_caught(std::vector<Mutant> mutants) {
    for (Mutant& mutant : mutants) {
      mutant.kernel = Backend::hopper;
      mutant.rows = GetParam().rows;
      mutant.slots = GetParam().slots;
    }
    test::expect_caught(mutants);
  }
};
class HopperWarpgroupMutants : public HopperMutants {};

std::string name_of(const testing::TestParamInfo<Kernel>& kernel) {
  return fmt::format("{}{}", kernel.param.rows, kernel.param.slots > 1 ? "TwoSlots" : "");
}
INSTANTIATE_TEST_SUITE_P(Rows, HopperMutants,
                         testing::Values(Kernel{16, 1}, Kernel{64, 1}, Kernel{64, 2},
                                         Kernel{128, 1}),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Rows, HopperWarpgroupMutants,
                         testing::Values(Kernel{64, 1}, Kernel{64, 2}, Kernel{128, 1}), name_of);

TEST_P(HopperMutants, TheKernelItselfIsCleanInEveryMode) {
  for (const emulator::Mode mode : kModes) {
    DecodeCase decode(hopper_stimulus(GetParam().rows));
    const RunResult result =
        run_mutant(decode, mode,
                   {.slots = GetParam().slots, .kernel = Backend::hopper, .rows = GetParam().rows});
    for (const Finding& finding : result.report.findings()) {
      EXPECT_EQ(finding.check, "H4") << finding.text;
      EXPECT_EQ(finding.severity, emulator::Severity::note) << finding.text;
    }
    EXPECT_EQ(result.report.verdict(), emulator::Verdict::clean);
    EXPECT_EQ(decode.difference(), "");
    for (std::size_t i = 0; i < kernel().edges.size(); ++i) {
      const Edge& edge = kernel().edges[i];
      // A run that takes no edge around twice would prove little.
      if (edge.kind == EdgeKind::implied) continue;
      EXPECT_GT(result.edges[i].phases, 2u * static_cast<unsigned>(edge.slots)) << edge.name;
    }
  }
}

TEST_P(HopperMutants, EveryDroppedWaitIsCaught) {
  const std::map<std::string, std::vector<Expected>> right{
      {"k_arrived", {{"H1", "K tile"}, {"H2", "K tile"}, {"H1", "poisoned"}, {"H2", "poisoned"}}},
      // Nobody waits for the V warp: the others may go round while it has not begun.
      {"v_arrived", {{"H1", "V tile"}, {"H2", "V tile"}, {"H7", "kv_released"}}},
      {"kv_released",
       {{"H2", "K tile"},
        {"H2", "V tile"},
        {"H2", "poisoned"},
        {"H9", "k_arrived"},
        {"H9", "v_arrived"}}},
      {"streams_meet",
       {{"H1", "stream state"},
        {"H2", "stream state"},
        {"H1", "row states"},
        {"H2", "row states"}}},
  };
  std::vector<Mutant> mutants;
  for (const Edge& edge : all_edges()) {
    const std::string name(edge.name);
    ASSERT_TRUE(right.contains(name)) << name << ": which finding?";
    mutants.push_back({"no wait for " + name,
                       [name](const Op& op, const OpContext&, const Where& where) {
                         return !(is_wait(op) && where.is(name));
                       },
                       right.at(name)});
  }
  expect_caught(mutants);
}

TEST_P(HopperMutants, EveryDroppedArrivalIsCaught) {
  std::vector<Mutant> mutants;
  for (const Edge& edge : edges_with(EdgeKind::barrier)) {
    const std::string name(edge.name);
    mutants.push_back({"no arrival on " + name,
                       [name](const Op& op, const OpContext&, const Where& where) {
                         return !(is_arrival(op) && where.is(name));
                       },
                       {{"deadlock", name}}});
  }
  // Where each participant both arrives and waits, the one that stays away leaves the others.
  mutants.push_back({"one warp stays away from streams_meet",
                     [](const Op& op, const OpContext& context, const Where& where) {
                       return !(where.is("streams_meet") &&
                                context.warp == kernel().threads / 32 - 1 &&
                                op.kind == OpKind::sync_named);
                     },
                     {{"deadlock", "streams_meet"},
                      {"H1", "stream state"},
                      {"H2", "stream state"},
                      {"H1", "row states"},
                      {"H2", "row states"},
                      {"H11", "streams_meet"}}});
  expect_caught(mutants);
}

TEST_P(HopperMutants, EveryWrongCountIsCaught) {
  std::vector<Mutant> mutants;
  for (const Edge& edge : edges_with(EdgeKind::barrier)) {
    for (const int change : {-1, 1}) {
      mutants.push_back({fmt::format("{} expects {:+} arrivals", edge.name, change),
                         [name = edge.name, change](Op& op, const OpContext&, const Where& where) {
                           if (op.kind == OpKind::init && where.is(name)) {
                             op.value += static_cast<uint32_t>(change);
                           }
                           return true;
                         },
                         {{"H10", std::string(edge.name)}}});
    }
  }
  expect_caught(mutants);
}

TEST_P(HopperMutants, EveryInvertedParityIsCaught) {
  std::vector<Mutant> mutants;
  for (const Edge& edge : edges_with(EdgeKind::barrier)) {
    mutants.push_back({fmt::format("{} is waited for by the wrong parity", edge.name),
                       wait_for_other_parity(edge.name),
                       {{"H6", std::string(edge.name)}, {"deadlock", std::string(edge.name)}}});
  }
  expect_caught(mutants);
}

TEST_P(HopperMutants, EveryWaitOnTheNeighbouringSlotIsCaught) {
  const std::map<std::string, std::vector<Expected>> right{
      {"k_arrived", {{"H1", "K tile"}, {"H2", "K tile"}, {"H1", "poisoned"}, {"H2", "poisoned"}}},
      {"v_arrived", {{"H1", "V tile"}, {"H2", "V tile"}, {"H7", "kv_released"}}},
      {"kv_released", {{"H2", "K tile"}, {"H2", "V tile"}, {"H2", "poisoned"}}}};
  std::vector<Mutant> mutants;
  for (const Edge& edge : edges_with(EdgeKind::barrier)) {
    const std::string name(edge.name);
    std::vector<Expected> any = right.at(name);
    for (const char* check : {"H6", "H7", "deadlock"}) any.push_back({check, name});
    mutants.push_back({fmt::format("{} is waited for on the next slot", edge.name),
                       wait_for_next_slot(edge), any});
  }
  expect_caught(mutants);
}

TEST_P(HopperMutants, WrongByteCountsAreCaught) {
  std::vector<Mutant> mutants;
  for (const char* name : {"k_arrived", "v_arrived"}) {
    for (const int change : {-16, 16, 16384}) {
      mutants.push_back({fmt::format("{} announces {:+} bytes", name, change),
                         announce_bytes(name, change),
                         {{"deadlock", name}}});
    }
  }
  expect_caught(mutants);
}

TEST_P(HopperMutants, PlantedFaultsAreCaught) {
  expect_caught({
      {"V cleared without a proxy fence", drop(OpKind::fence_async), {{"H3", "V tile"}}},
      {"barriers without the init fence", drop(OpKind::fence_barrier_init), {{"H9", ""}}},
      {"a slot is released while other lanes of the warp may read it",
       [](const Op& op, const OpContext& context, const Where&) {
         return !(op.kind == OpKind::sync_warp && context.role == Role::attend &&
                  is_in(op, "hopper/tiles.h"));
       },
       {{"H2", "K tile"}, {"H2", "V tile"}, {"H2", "poisoned"}}},
      {"K is read where V lies",
       [](Op& op, const OpContext& context, const Where&) {
         const std::byte* begin = context.shared + kernel().shared_ranges[0].first;
         const auto* row = static_cast<const std::byte*>(op.source);
         const std::ptrdiff_t to_values =
             kernel().shared_ranges[1].first - kernel().shared_ranges[0].first;
         const bool in_keys = row >= begin && row < begin + to_values;
         if (op.kind == OpKind::load_matrices && in_keys) op.source = row + to_values;
         if (op.kind == OpKind::wgmma && !op.transposed) {
           op.b_descriptor += static_cast<uint64_t>(to_values) / 16;
         }
         return true;
       },
       {{"H19", "V tile"}, {"H1", "V tile"}}},  // a warpgroup does not wait for V before QK
      {"an attend warp arrives for the slot before the one it read",
       [](Op& op, const OpContext&, const Where& where) {
         if (op.kind == OpKind::arrive && where.is("kv_released") && where.slot > 0) --op.barrier;
         return true;
       },
       {{"H9", "kv_released"},
        {"H7", "kv_released"},
        {"H2", "K tile"},
        {"H2", "V tile"},
        {"H2", "poisoned"},
        {"deadlock", "kv_released"}}},
      {"the partial is counted before the warp has stored it",
       [](const Op& op, const OpContext&, const Where&) {
         return !(op.kind == OpKind::sync_warp && is_in(op, "hopper/states.h"));
       },
       {{"H1", ""}, {"H2", ""}}},
  });
}

TEST_P(HopperWarpgroupMutants, SpoiltProductsAreCaught) {
  const auto nth_group = [](bool transposed) {
    return [transposed](Op& op, const OpContext& context, const Where&) {
      // One warp of four multiplies something else.
      if (op.kind == OpKind::wgmma && op.transposed == transposed && context.warp % 4 == 1) {
        op.b_descriptor += 2;
      }
      return true;
    };
  };
  expect_caught({
      {"nobody waits for products", drop(OpKind::wgmma_wait), {{"H21", ""}}},
      {"products are never committed", drop(OpKind::wgmma_commit), {{"H21", ""}}},
      {"no fence before products", drop(OpKind::wgmma_fence), {{"H21", ""}}},
      // What it reads ends in the tile of the next slot, which some schedules fill meanwhile.
      {"a warp has other keys than its warpgroup",
       nth_group(false),
       {{"H17", ""}, {"H1", "K tile"}}},
      {"a warp has other values than its warpgroup",
       nth_group(true),
       {{"H17", ""}, {"H1", "V tile"}}},
      {"one group is left running at each wait",
       [](Op& op, const OpContext&, const Where&) {
         if (op.kind == OpKind::wgmma_wait) op.index += 1;
         return true;
       },
       {{"H21", ""}, {"H2", "V tile"}, {"H2", "K tile"}}},
  });
}

}  // namespace
}  // namespace deuce::test
