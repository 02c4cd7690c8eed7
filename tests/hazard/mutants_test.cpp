// SPDX-License-Identifier: Apache-2.0
// Every wait, arrival, count and parity of the edge table is spoilt in turn, and each spoilt kernel
// must be reported in all five schedule modes. Mutation is done by a filter between kernel and
// machine; the kernel is never touched. Mutants that cannot be told from the kernel are listed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "emulator/blackwell.h"
#include "emulator/decode_case.h"

namespace deuce {
namespace {

using emulator::CaseSpec;
using emulator::DecodeCase;
using emulator::KernelSpec;
using emulator::Mode;
using emulator::Op;
using emulator::OpContext;
using emulator::OpKind;
using emulator::Options;
using emulator::RunResult;

/// Which edge an operation is about.
struct Where {
  const Edge* edge = nullptr;
  int slot = 0;
  bool is(std::string_view name) const { return edge != nullptr && edge->name == name; }
};

/// Alters an operation, or drops it by returning false.
using Spoil = std::function<bool(Op&, const OpContext&, const Where&)>;

class Filter final : public emulator::OpFilter {
 public:
  Filter(const KernelSpec& kernel, Spoil spoil) : kernel_(kernel), spoil_(std::move(spoil)) {}
  bool pass(Op& op, const OpContext& context) override {
    return spoil_(op, context, locate(op, context));
  }

 private:
  Where locate(const Op& op, const OpContext& context) const {
    const bool named = op.kind == OpKind::arrive_named || op.kind == OpKind::sync_named;
    if (!named && op.barrier == nullptr) return {};
    const auto offset =
        static_cast<std::size_t>(reinterpret_cast<const std::byte*>(op.barrier) - context.shared);
    for (const Edge& edge : kernel_.edges) {
      const auto slots = static_cast<std::size_t>(edge.slots);
      if (named && edge.kind == EdgeKind::named && op.index >= edge.first_id &&
          op.index < edge.first_id + edge.slots) {
        return {&edge, op.index - edge.first_id};
      }
      if (!named && edge.kind == EdgeKind::barrier && offset >= edge.offset &&
          offset < edge.offset + 8 * slots) {
        return {&edge, static_cast<int>((offset - edge.offset) / 8)};
      }
    }
    return {};
  }
  const KernelSpec& kernel_;
  Spoil spoil_;
};

bool is_wait(const Op& op) { return op.kind == OpKind::wait || op.kind == OpKind::sync_named; }
bool is_arrival(const Op& op) {
  return op.kind == OpKind::arrive || op.kind == OpKind::commit ||
         op.kind == OpKind::arrive_expect || op.kind == OpKind::arrive_named;
}

/// Six items in two parts each on two blocks: several pieces a block, every ring goes round, every
/// block of keys asks for a rescale.
CaseSpec stimulus() {
  return {.kv_len = {600, 500, 300, 200, 260, 200}, .num_splits = 2, .growing = true};
}

struct Mutant {
  std::string name;
  Spoil spoil;
  int slots = 2;
  const char* check = nullptr;  // the finding it must lead to, where it is one particular one
};

constexpr Mode kModes[] = {Mode::timed, Mode::eager, Mode::lazy, Mode::random, Mode::adversarial};

RunResult run_mode(DecodeCase& decode, Mode mode, emulator::OpFilter* filter) {
  const BlackwellPlan plan = plan_blackwell(decode.problem(), 2);
  Options options;
  options.run = {mode, mode == Mode::adversarial ? 2 : 0, 5};
  options.filter = filter;
  options.step_limit = 2'000'000;
  std::vector<std::byte> workspace(workspace_of(plan).bytes);
  return emulator::run_blackwell(decode.problem(), plan, decode.call(), workspace.data(), options);
}

/// Runs a mutant under the five modes; the text says what is missing, empty when caught everywhere.
std::string survivors(const Mutant& mutant, std::map<std::string, int>& found) {
  DecodeCase decode(stimulus());
  decode.problem().score_slots = mutant.slots;
  std::string missing;
  for (const Mode mode : kModes) {
    Filter filter(*emulator::blackwell_spec(64, mutant.slots, true), mutant.spoil);
    const RunResult result = run_mode(decode, mode, &filter);
    const auto& findings = result.report.findings();
    for (const auto& finding : findings) ++found[finding.check];
    const bool caught =
        mutant.check == nullptr ? result.report.has_error() : result.report.has(mutant.check);
    if (caught) continue;
    missing +=
        fmt::format("  not caught in mode {}\n{}", static_cast<int>(mode), result.report.text());
  }
  return missing;
}

void expect_caught(const std::vector<Mutant>& mutants) {
  std::map<std::string, int> found;
  std::size_t caught = 0;
  for (const Mutant& mutant : mutants) {
    const std::string missing = survivors(mutant, found);
    caught += missing.empty() ? 1 : 0;
    EXPECT_EQ(missing, "") << mutant.name;
  }
  std::string checks;
  for (const auto& [check, count] : found) checks += fmt::format(" {} x{}", check, count);
  fmt::print("caught {} / total {};{}\n", caught, mutants.size(), checks);
}

std::vector<Edge> edges_with(EdgeKind kind) {
  std::vector<Edge> list;
  for (const Edge& edge : emulator::blackwell_spec(64, 2, true)->edges) {
    if (edge.kind == kind) list.push_back(edge);
  }
  return list;
}

TEST(Mutants, TheKernelItselfIsCleanInEveryMode) {
  for (int slots = 1; slots <= 3; ++slots) {
    for (const Mode mode : kModes) {
      DecodeCase decode(stimulus());
      decode.problem().score_slots = slots;
      decode.compute_reference();
      const RunResult result = run_mode(decode, mode, nullptr);
      EXPECT_EQ(result.report.text(), "") << slots << " slots";
      EXPECT_EQ(decode.difference(), "") << slots << " slots";
      const KernelSpec& kernel = *emulator::blackwell_spec(64, slots, true);
      for (std::size_t i = 0; i < kernel.edges.size(); ++i) {
        const Edge& edge = kernel.edges[i];
        // A run that takes no edge around twice would prove little.
        if (edge.kind != EdgeKind::barrier) continue;
        EXPECT_GT(result.phases[i], 2u * static_cast<unsigned>(edge.slots)) << edge.name;
      }
    }
  }
}

TEST(Mutants, EveryDroppedWaitIsCaught) {
  std::vector<Mutant> mutants;
  for (const EdgeKind kind : {EdgeKind::barrier, EdgeKind::named}) {
    for (const Edge& edge : edges_with(kind)) {
      mutants.push_back({fmt::format("no wait for {}", edge.name),
                         [name = edge.name](const Op& op, const OpContext&, const Where& where) {
                           return !(is_wait(op) && where.is(name));
                         }});
    }
  }
  expect_caught(mutants);
}

TEST(Mutants, EveryDroppedArrivalIsCaught) {
  std::vector<Mutant> mutants;
  for (const EdgeKind kind : {EdgeKind::barrier, EdgeKind::named}) {
    for (const Edge& edge : edges_with(kind)) {
      mutants.push_back({fmt::format("no arrival on {}", edge.name),
                         [name = edge.name](const Op& op, const OpContext&, const Where& where) {
                           return !(is_arrival(op) && where.is(name));
                         }});
    }
  }
  expect_caught(mutants);
}

TEST(Mutants, EveryWrongCountIsCaught) {
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
                         2, "H10"});
    }
  }
  expect_caught(mutants);
}

TEST(Mutants, EveryInvertedParityIsCaught) {
  std::vector<Mutant> mutants;
  for (const Edge& edge : edges_with(EdgeKind::barrier)) {
    mutants.push_back({fmt::format("{} is waited for by the wrong parity", edge.name),
                       [name = edge.name](Op& op, const OpContext&, const Where& where) {
                         if (op.kind == OpKind::wait && where.is(name)) op.index += 1;
                         return true;
                       }});
  }
  expect_caught(mutants);
}

TEST(Mutants, WrongByteCountsAreCaught) {
  std::vector<Mutant> mutants;
  for (const char* name : {"q_arrived", "kv_arrived"}) {
    for (const int change : {-16, 16}) {
      mutants.push_back({fmt::format("{} announces {:+} bytes", name, change),
                         [name, change](Op& op, const OpContext&, const Where& where) {
                           if (op.kind == OpKind::arrive_expect && where.is(name)) {
                             op.bytes += static_cast<uint32_t>(change);
                           }
                           return true;
                         }});
    }
  }
  expect_caught(mutants);
}

Spoil drop(OpKind kind, Role role) {
  return [kind, role](const Op& op, const OpContext& context, const Where&) {
    return !(op.kind == kind && context.role == role);
  };
}

TEST(Mutants, PlantedFaultsAreCaught) {
  const std::vector<Mutant> mutants{
      {"softmax gives S away before its loads are done", drop(OpKind::wait_loads, Role::softmax),
       1},
      {"correction uses O before its loads are done", drop(OpKind::wait_loads, Role::correction), 1,
       "H12"},
      {"softmax signals P before it is stored", drop(OpKind::wait_stores, Role::softmax), 1, "H13"},
      {"correction signals O before it is stored", drop(OpKind::wait_stores, Role::correction), 1,
       "H13"},
      {"p_tail_ready without the warp in step",
       [](const Op& op, const OpContext&, const Where&) {
         return op.kind != OpKind::sync_warp ||
                std::string_view(op.site.file).find("softmax_warps.h") == std::string_view::npos;
       },
       1, "H13"},
      {"Q padding without a proxy fence",
       [](const Op& op, const OpContext&, const Where&) { return op.kind != OpKind::fence_async; },
       1, "H3"},
      {"tensor memory is never freed",
       [](const Op& op, const OpContext&, const Where&) { return op.kind != OpKind::tensor_free; },
       1, "H11"},
      {"barriers without the init fence",
       [](const Op& op, const OpContext&, const Where&) {
         return op.kind != OpKind::fence_barrier_init;
       },
       1, "H9"},
      {"ring slots released by a plain arrival",
       [](Op& op, const OpContext&, const Where& where) {
         if (op.kind == OpKind::commit && where.is("kv_released")) op.kind = OpKind::arrive;
         return true;
       },
       1, "H2"},
      {"one p_tail_ready for both slots",
       [](Op& op, const OpContext&, const Where& where) {
         if (where.is("p_tail_ready") && op.kind != OpKind::init) {
           op.barrier -= where.slot;
           if (op.kind == OpKind::wait) op.index = op.index * 2 + where.slot;
         }
         return true;
       },
       2},
      {"correction hands O over on slot 0",
       [](Op& op, const OpContext& context, const Where& where) {
         if (where.is("po_ready") && context.role == Role::correction) op.barrier -= where.slot;
         return true;
       },
       2},
      {"MMA reads the first K step of O as an overwrite",
       [](Op& op, const OpContext&, const Where&) {
         if (op.kind == OpKind::mma_tensor) op.column += 448;  // outside the accumulator
         return true;
       },
       2, "H15"},
  };
  expect_caught(mutants);
}

}  // namespace
}  // namespace deuce
