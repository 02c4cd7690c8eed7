// SPDX-License-Identifier: Apache-2.0
// Every wait, arrival, count and parity of the edge table is spoilt in turn, and each spoilt kernel
// must be reported in all five schedule modes, by the right finding about the right edge or memory.
// Mutants that cannot be told from the kernel are listed with the reason.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
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
using emulator::RunResult;

std::vector<Edge> edges_with(EdgeKind kind) {
  std::vector<Edge> list;
  for (const Edge& edge : emulator::blackwell_spec({.score_slots = 2})->edges) {
    if (edge.kind == kind) list.push_back(edge);
  }
  return list;
}

/// By row replicas: the same table must protect other columns of P and a merge that every piece
/// goes through.
class Mutants : public testing::TestWithParam<int> {
 protected:
  static void expect_caught(std::vector<Mutant> mutants) {
    for (Mutant& mutant : mutants) mutant.replicas = GetParam();
    test::expect_caught(mutants);
  }
  /// With replicas, one more finding is right: warps with fewer keys drift further apart.
  static std::vector<Expected> or_replicated(std::vector<Expected> right,
                                             const std::vector<Expected>& more) {
    if (GetParam() > 1) right.insert(right.end(), more.begin(), more.end());
    return right;
  }
};
INSTANTIATE_TEST_SUITE_P(Replicas, Mutants, testing::Values(1, 2, 4),
                         [](const auto& replicas) { return std::to_string(replicas.param); });

TEST_P(Mutants, TheKernelItselfIsCleanInEveryMode) {
  for (int slots = 1; slots <= 3; ++slots) {
    for (const Mode mode : kModes) {
      DecodeCase decode(stimulus());
      const RunResult result = run_mutant(decode, mode, {.slots = slots, .replicas = GetParam()});
      EXPECT_EQ(result.report.text(), "") << slots << " slots";
      EXPECT_EQ(decode.difference(), "") << slots << " slots";
      const KernelSpec& kernel =
          *emulator::blackwell_spec({.score_slots = slots, .row_replicas = GetParam()});
      for (std::size_t i = 0; i < kernel.edges.size(); ++i) {
        const Edge& edge = kernel.edges[i];
        // A run that takes no edge around twice would prove little.
        if (edge.kind != EdgeKind::barrier) continue;
        EXPECT_GT(result.edges[i].phases, 2u * static_cast<unsigned>(edge.slots)) << edge.name;
      }
    }
  }
}

TEST_P(Mutants, EveryDroppedWaitIsCaught) {
  const std::map<std::string, std::vector<Expected>> right{
      {"piece_ready", {{"H7", "piece_taken"}, {"H2", "piece"}}},
      {"piece_taken", {{"H2", "piece"}}},
      {"q_arrived", {{"H1", "Q tile"}}},
      {"q_released", {{"H2", "Q tile"}, {"H9", "q_arrived"}}},
      {"kv_arrived", {{"H1", "K/V tile"}}},
      {"kv_released", {{"H2", "K/V tile"}, {"H9", "kv_arrived"}}},
      {"s_ready",
       {{"H1", "S/P slot"}, {"H12", "S/P slot"}, {"H13", "S/P slot"}, {"H7", "p_tail_ready"}}},
      {"po_ready", {{"H13", "S/P slot"}, {"H2", "S/P slot"}}},
      {"p_tail_ready", {{"H13", "S/P slot"}, {"H2", "S/P slot"}}},
      {"o_ready", {{"H1", "O"}}},
      {"stats_taken", {{"H7", "stats_taken"}, {"H2", "row scale"}}},
      {"o_staged", {{"H7", "o_stored"}}},
      {"o_stored", {{"H7", "o_staged"}}},
      {"stats_ready", {{"H7", "stats_taken"}, {"H17", "stats_ready"}}},
      {"tensor_memory", {{"H15", "tensor memory is freed"}}},
  };
  // With replicas every piece goes through the workspace, and warps with fewer keys drift further
  // apart.
  const std::map<std::string, std::vector<Expected>> replicated{
      {"o_ready", {{"H13", "O"}}},
      {"stats_taken", {{"H1", "row scale"}, {"H17", "stats_ready"}}},
      {"o_staged", {{"H2", "partials"}}},
      {"o_stored", {{"H2", "partials"}}},
  };
  std::vector<Mutant> mutants;
  for (const EdgeKind kind : {EdgeKind::barrier, EdgeKind::named}) {
    for (const Edge& edge : edges_with(kind)) {
      const std::string name(edge.name);
      ASSERT_TRUE(right.contains(name)) << name << ": which finding?";
      std::vector<Expected> any = right.at(name);
      if (GetParam() > 1 && replicated.contains(name)) {
        any.insert(any.end(), replicated.at(name).begin(), replicated.at(name).end());
      }
      // po_ready then covers all of P, so nothing but the count may miss p_tail_ready.
      if (GetParam() > 1 && name == "p_tail_ready") any = {{"H7", name}};
      mutants.push_back({"no wait for " + name,
                         [name](const Op& op, const OpContext&, const Where& where) {
                           return !(is_wait(op) && where.is(name));
                         },
                         any});
    }
  }
  expect_caught(mutants);
}

TEST_P(Mutants, EveryDroppedArrivalIsCaught) {
  std::vector<Mutant> mutants;
  for (const EdgeKind kind : {EdgeKind::barrier, EdgeKind::named}) {
    for (const Edge& edge : edges_with(kind)) {
      const std::string name(edge.name);
      mutants.push_back({"no arrival on " + name,
                         [name](const Op& op, const OpContext&, const Where& where) {
                           return !(is_arrival(op) && where.is(name));
                         },
                         {{"deadlock", name}}});
    }
  }
  expect_caught(mutants);
}

Mutant wrong_count(const Edge& edge, int change) {
  return {fmt::format("{} expects {:+} arrivals", edge.name, change),
          [name = edge.name, change](Op& op, const OpContext&, const Where& where) {
            if (op.kind == OpKind::init && where.is(name)) {
              op.value += static_cast<uint32_t>(change);
            }
            return true;
          }};
}

TEST_P(Mutants, EveryWrongCountIsCaught) {
  std::vector<Mutant> mutants;
  for (const Edge& edge : edges_with(EdgeKind::barrier)) {
    for (const int change : {-1, 1}) {
      mutants.push_back(wrong_count(edge, change));
      mutants.back().right = {{"H10", std::string(edge.name)}};
    }
  }
  expect_caught(mutants);
}

// What a wrong count does by itself, with no table to compare it with: one too many is a phase that
// never ends. With one too few the last arrival is one too many, unless those who wait have gone on
// before it and meet the harm first.
TEST_P(Mutants, EveryWrongCountDoesHarm) {
  std::vector<Mutant> mutants;
  for (const Edge& edge : edges_with(EdgeKind::barrier)) {
    const std::string name(edge.name);
    mutants.push_back(wrong_count(edge, 1));
    mutants.back().right = {{"deadlock", name}};
    mutants.push_back(wrong_count(edge, -1));
    mutants.back().right = {{"H9", name}};
    if (name == "piece_taken") mutants.back().right.push_back({"H2", "piece"});
    if (name == "p_tail_ready") {  // with replicas po_ready covers all of P
      mutants.back().right.push_back(GetParam() == 1 ? Expected{"H13", "S/P slot"}
                                                     : Expected{"H7", name});
    }
  }
  for (Mutant& mutant : mutants) mutant.table_counts = false;
  expect_caught(mutants);
}

TEST_P(Mutants, EveryInvertedParityIsCaught) {
  std::vector<Mutant> mutants;
  for (const Edge& edge : edges_with(EdgeKind::barrier)) {
    mutants.push_back({fmt::format("{} is waited for by the wrong parity", edge.name),
                       wait_for_other_parity(edge.name),
                       {{"H6", std::string(edge.name)}, {"deadlock", std::string(edge.name)}}});
  }
  expect_caught(mutants);
}

TEST_P(Mutants, EveryWaitOnTheNeighbouringSlotIsCaught) {
  std::vector<Mutant> mutants;
  for (const Edge& edge : edges_with(EdgeKind::barrier)) {
    if (edge.slots == 1) continue;
    const std::string name(edge.name);
    std::vector<Expected> right{{"H7", name}, {"deadlock", name}};
    if (name == "q_arrived") right = {{"H1", "Q tile"}};
    if (name == "kv_arrived") right = {{"H1", "K/V tile"}};
    mutants.push_back({fmt::format("{} is waited for on the next slot", edge.name),
                       wait_for_next_slot(edge), right});
  }
  expect_caught(mutants);
}

TEST_P(Mutants, WrongByteCountsAreCaught) {
  std::vector<Mutant> mutants;
  for (const char* name : {"q_arrived", "kv_arrived"}) {
    for (const int change : {-16, 16, 4096}) {
      mutants.push_back({fmt::format("{} announces {:+} bytes", name, change),
                         announce_bytes(name, change),
                         {{"deadlock", name}}});
    }
  }
  expect_caught(mutants);
}

/// The mma warp starts its parity anew with every piece.
Spoil parity_reset() {
  // Block of the grid: first KV block of the piece, -1 until it is known.
  return
      [first = std::map<int, int>{}](Op& op, const OpContext& context, const Where& where) mutable {
        if (context.role != Role::mma || op.kind != OpKind::wait) return true;
        if (where.is("q_arrived")) first[context.block] = -1;
        if (!where.is("po_ready")) return true;
        int& begin = first[context.block];
        if (begin < 0) begin = context.kv_block;
        op.index = (context.kv_block - begin) / 2;
        return true;
      };
}

/// K(1) and V(0) change places in the first lap of the ring: K V K V in place of K K V.
Spoil base_order(std::size_t tile_bytes) {
  return [tile_bytes](Op& op, const OpContext& context, const Where& where) {
    if (op.kind != OpKind::copy_tensor || !where.is("kv_arrived")) return true;
    if (where.slot != 1 && where.slot != 2) return true;
    if (context.kv_block > 2) return true;
    const std::ptrdiff_t move = where.slot == 1 ? 1 : -1;
    op.barrier += move;
    op.target = static_cast<std::byte*>(op.target) + move * static_cast<std::ptrdiff_t>(tile_bytes);
    return true;
  };
}

/// Waits of a role for an edge, but for those at the first line that does so.
Spoil drop_later_sites(const std::string& name, Role role) {
  return
      [name, role, line = 0](const Op& op, const OpContext& context, const Where& where) mutable {
        if (op.kind != OpKind::wait || !where.is(name) || context.role != role) return true;
        if (line == 0) line = op.site.line;
        return op.site.line == line;
      };
}

/// The first arrival of each thread of a role on an edge.
Spoil drop_first_arrival(const std::string& name, Role role) {
  return [name, role, seen = std::set<std::array<int, 3>>{}](const Op& op, const OpContext& context,
                                                             const Where& where) mutable {
    if (!is_arrival(op) || !where.is(name) || context.role != role) return true;
    return !seen.insert({context.block, context.warp, context.lane}).second;
  };
}

/// Correction arrives on the barrier of slot 0 for every block.
Spoil hand_over_on_slot_0() {
  return [](Op& op, const OpContext& context, const Where& where) {
    if (where.is("po_ready") && context.role == Role::correction) op.barrier -= where.slot;
    return true;
  };
}

/// A commit becomes an arrival of the issuing thread.
Spoil plain_arrival(const std::string& name) {
  return [name](Op& op, const OpContext&, const Where& where) {
    if (op.kind == OpKind::commit && where.is(name)) op.kind = OpKind::arrive;
    return true;
  };
}

/// The lane that signals p_tail_ready does not wait for its warp. With replicas it need not: each
/// thread has signalled all of its P on po_ready, which the mma warp waits for first.
Mutant tail_out_of_step(int replicas) {
  Mutant mutant{"p_tail_ready without the warp in step",
                [](const Op& op, const OpContext&, const Where&) {
                  return op.kind != OpKind::sync_warp || !is_in(op, "softmax_warps.h");
                }};
  if (replicas == 1) mutant.right = {{"H13", "S/P slot"}};
  mutant.slots = 1;
  return mutant;
}

TEST_P(Mutants, PlantedFaultsAreCaught) {
  // Where the softmax warps stay together, the count of the one barrier runs ahead of the mma warp
  // (H7). Where they drift apart, arrivals of two blocks complete a phase together, and PV reads a
  // last quarter that a slow warp still stores (H13): the harm itself. With replicas po_ready
  // covers that quarter.
  std::vector<Expected> shared_tail{{"H7", "p_tail_ready"}};
  if (GetParam() == 1) shared_tail.push_back({"H13", "S/P slot"});
  const std::vector<Mutant> mutants{
      {"softmax gives S away before its loads are done",
       drop(OpKind::wait_loads, Role::softmax),
       {{"H12", "S/P slot"}},
       1},
      {"correction uses O before its loads are done",
       drop(OpKind::wait_loads, Role::correction),
       {{"H12", "O"}},
       1},
      {"softmax signals P before it is stored",
       drop(OpKind::wait_stores, Role::softmax),
       {{"H13", "S/P slot"}},
       1},
      {"correction signals O before it is stored",
       drop(OpKind::wait_stores, Role::correction),
       {{"H13", "O"}},
       1},
      tail_out_of_step(GetParam()),
      {"Q padding without a proxy fence", drop(OpKind::fence_async), {{"H3", "Q tile"}}, 1},
      {"tensor memory is never freed", drop(OpKind::tensor_free), {{"H11", "tensor memory"}}, 1},
      {"barriers without the init fence", drop(OpKind::fence_barrier_init), {{"H9", ""}}, 1},
      {"ring slots released by a plain arrival",
       plain_arrival("kv_released"),
       {{"H2", "K/V tile"}},
       1},
      {"Q released by a plain arrival", plain_arrival("q_released"), {{"H2", "Q tile"}}, 1},
      {"S signalled by a plain arrival", plain_arrival("s_ready"), {{"H1", "S/P slot"}}, 1},
      {"O signalled by a plain arrival", plain_arrival("o_ready"), {{"H1", "O"}}, 1},
      {"the epilogue's warps do not wait for each other",
       [](const Op& op, const OpContext& context, const Where& where) {
         return !(op.kind == OpKind::sync_named && where.edge == nullptr &&
                  context.role == Role::epilogue);
       },
       {{"H1", "last arriver"}, {"H2", "last arriver"}}},
      {"softmax signals the statistics of another warp",
       [](Op& op, const OpContext& context, const Where& where) {
         if (where.is("stats_ready") && context.role == Role::softmax) {
           op.index += where.slot == 3 ? -3 : 1;
         }
         return true;
       },
       {{"H1", "row scale"}, {"H2", "row scale"}}},
      {"one p_tail_ready for both slots",
       [](Op& op, const OpContext&, const Where& where) {
         if (where.is("p_tail_ready") && op.kind != OpKind::init) {
           op.barrier -= where.slot;
           if (op.kind == OpKind::wait) op.index = op.index * 2 + where.slot;
         }
         return true;
       },
       shared_tail},
      {"correction hands O over on slot 0", hand_over_on_slot_0(),
       // Nobody completes slot 1; or arrivals meant for it complete slot 0 in place of softmax.
       or_replicated({{"deadlock", "po_ready"}, {"H2", "S/P slot"}}, {{"H13", "S/P slot"}})},
      {"correction does not hand O over at the start",
       drop_first_arrival("po_ready", Role::correction),
       {{"deadlock", "po_ready"}}},
      {"P of an accumulator outside the allocation",
       [](Op& op, const OpContext&, const Where&) {
         if (op.kind == OpKind::mma_tensor) op.column += 448;
         return true;
       },
       {{"H15", "tensor-memory columns"}}},
      {"the mma warp's parity starts anew with every piece", parity_reset(),
       or_replicated({{"H1", "O"}, {"H12", "O"}}, {{"H13", "S/P slot"}})},
      {"K and V in the order of one slot", base_order(16384), {{"H19", "kv_arrived"}}},
      {"load leaves before its last tiles are read",
       drop_later_sites("kv_released", Role::load),
       {{"H11", "kv_released"}}},
      {"load q leaves before its last tile is read",
       drop_later_sites("q_released", Role::load_q),
       {{"H11", "q_released"}}},
      {"tensor memory is freed before its users are done",
       [](Op&, const OpContext& context, const Where& where) {
         return !(where.is("tensor_memory") && context.role == Role::mma);
       },
       {{"H15", "tensor memory is freed"}}},
      {"O is rescaled without waiting for PV",
       [](const Op& op, const OpContext& context, const Where& where) {
         return !(op.kind == OpKind::wait && where.is("o_ready") &&
                  context.role == Role::correction);
       },
       or_replicated({{"H1", "O"}}, {{"H13", "O"}})},
  };
  expect_caught(mutants);
}

TEST(Deadlock, NamesTheRolesThatWaitForEachOther) {
  DecodeCase decode(stimulus());
  // As docs/debugging.md shows it.
  const Mutant mutant{"correction hands O over on slot 0", hand_over_on_slot_0()};
  const std::string text = run_mutant(decode, Mode::lazy, mutant).report.text();
  EXPECT_NE(text.find("cycle: mma -> correction -> mma, by o_ready, po_ready\n"), std::string::npos)
      << text;
}

// None of these can be told from the kernel by anything that it computes or orders.
TEST_P(Mutants, EquivalentOnesFindNothing) {
  expect_caught({
      {"relinquish_tensor_memory dropped: no second block shares the SM with 512 columns taken",
       drop(OpKind::tensor_relinquish),
       {}},
      {"tcgen05 fences before signals dropped: hardware-fifo mode notes them, strict mode judges",
       drop(OpKind::fence_before),
       {}},
      {"tcgen05 fences after waits dropped: the same", drop(OpKind::fence_after), {}},
  });
}

}  // namespace
}  // namespace deuce::test
