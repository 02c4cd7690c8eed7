// SPDX-License-Identifier: Apache-2.0
// The exhaustive search: the kernel is free of violations within its bounds, programs do not depend
// on the schedule, the model accepts what the emulator does, and mutants are found.
#include "emulator/explore.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "emulator/explore_decode.h"

namespace deuce::emulator {
namespace {

/// Score slots and row replicas.
class Explore : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(Explore, IsCompleteWithinBoundsWithoutAViolation) {
  const auto [slots, replicas] = GetParam();
  const ExploreSummary found = explore_decode(slots, replicas, kStateLimit, [] { return true; });
  EXPECT_EQ(found.violation.kind, "") << found.last.text() << "\n" << found.violation.text;
  EXPECT_EQ(found.complete, found.cases);
  fmt::print("complete within bounds: {} programs, {} states, at most {} in one\n", found.cases,
             found.states, found.most_states);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Explore,
                         testing::Combine(testing::Values(1, 2, 3), testing::Values(1, 2, 4)),
                         [](const auto& kernel) {
                           return fmt::format("Slots{}Replicas{}", std::get<0>(kernel.param),
                                              std::get<1>(kernel.param));
                         });

TEST(ExploreCases, AreExploredAloneByTheirNumbers) {
  constexpr int kNumber = 17;
  const ExploreCase wanted = explore_cases(2, 1)[kNumber - 1];
  const ExploreSummary found = explore_decode(
      2, 1, kStateLimit, [] { return true; }, kNumber);
  EXPECT_EQ(found.cases, 1);
  EXPECT_EQ(found.last_number, kNumber);
  EXPECT_EQ(found.last.text(), wanted.text());
  EXPECT_TRUE(found.clean());
}

ExploreCase small(int slots, int replicas = 1) {
  return {.score_slots = slots,
          .kv_slots = 3,
          .row_replicas = replicas,
          .blocks = {3, 2},
          .rescale = {0b101, 0b010},
          .quarters = 4,
          .splits = 0,
          .part = Part::whole};
}

std::vector<RunName> some_runs() { return runs(16, 3); }

// Barriers and contents are numbered as they come, which depends on the schedule: by name, here.
std::vector<std::string> words(const Recording& recording) {
  std::vector<std::string> list;
  for (const std::vector<Event>& events : recording.warps) {
    std::string text;
    for (const Event& event : events) {
      text += fmt::format(
          "{} {} {} {} {} {}\n", static_cast<int>(event.kind),
          event.barrier < 0 ? "" : recording.barriers[static_cast<std::size_t>(event.barrier)].name,
          event.phase, event.count, event.access.reads.to_string(),
          event.access.writes.to_string());
    }
    list.push_back(text);
  }
  return list;
}

TEST(Recording, IsTheSameUnderEverySchedule) {
  for (const ExploreCase& what : {small(1), small(2), small(3), small(2, 2), small(2, 4)}) {
    const std::vector<std::string> first = words(record_decode(what, {}));
    for (const RunName& run : some_runs()) {
      EXPECT_EQ(words(record_decode(what, run)), first) << what.text() << ", " << run.text();
    }
  }
}

TEST(Recording, IsInAnOrderThatTheModelAccepts) {
  for (const ExploreCase& what : {small(1), small(2), small(3), small(2, 2), small(2, 4)}) {
    for (const RunName& run : some_runs()) {
      const Recording recording = record_decode(what, run);
      ASSERT_EQ(recording.fault, "");
      EXPECT_EQ(rejects(make_model(recording, 4, Part::whole), recording.order), "") << run.text();
    }
  }
}

TEST(Recording, IsRejectedWhenAWarpRunsBeforeItsInputs) {
  Recording recording = record_decode(small(2), {});
  std::stable_partition(recording.order.begin(), recording.order.end(),
                        [](int warp) { return warp == 12; });  // mma first
  EXPECT_NE(rejects(make_model(recording, 4, Part::whole), recording.order), "");
}

// Mutants of recordings -------------------------------------------------------------------------

using Mutate = std::function<void(Recording&)>;

bool is_about(const Recording& recording, const Event& event, const std::string& edge) {
  if (event.barrier < 0) return false;
  const std::string& name = recording.barriers[static_cast<std::size_t>(event.barrier)].name;
  return name == edge || name.starts_with(edge + "[");
}

Mutate no_wait(const std::string& edge) {
  return [edge](Recording& recording) {
    for (std::vector<Event>& events : recording.warps) {
      std::erase_if(events, [&](const Event& event) {
        return event.kind == Event::Kind::wait && is_about(recording, event, edge);
      });
    }
  };
}

Mutate no_arrival(const std::string& edge) {
  return [edge](Recording& recording) {
    for (std::vector<Event>& events : recording.warps) {
      std::erase_if(events, [&](const Event& event) {
        return event.kind != Event::Kind::wait && is_about(recording, event, edge);
      });
    }
  };
}

/// Signals change places with the access or the MMAs before them.
Mutate early(const std::string& edge) {
  return [edge](Recording& recording) {
    for (std::vector<Event>& events : recording.warps) {
      for (std::size_t i = 1; i < events.size(); ++i) {
        const bool signals = events[i].kind != Event::Kind::wait &&
                             events[i].kind != Event::Kind::copy &&
                             is_about(recording, events[i], edge);
        const Event::Kind before = events[i - 1].kind;
        const bool uses = before == Event::Kind::access || before == Event::Kind::mma;
        if (signals && uses) std::swap(events[i], events[i - 1]);
      }
    }
  };
}

/// The second and third tile change places: K V K V in place of K K V.
void base_order(Recording& recording) {
  for (std::vector<Event>& events : recording.warps) {
    std::vector<Event*> copies;
    for (Event& event : events) {
      if (event.kind == Event::Kind::copy && is_about(recording, event, "kv_arrived")) {
        copies.push_back(&event);
      }
    }
    if (copies.size() > 2) std::swap(copies[1]->content, copies[2]->content);
  }
}

struct ExploreMutant {
  std::string name;
  Mutate mutate;
  std::set<std::string> right;  // kinds of violation; empty: equivalent, nothing is found
};

Violation run_mutant(const ExploreMutant& mutant, const ExploreCase& what) {
  Recording recording = record_decode(what, {});
  mutant.mutate(recording);
  return explore(make_model(recording, what.quarters, what.part), kStateLimit).violation;
}

void expect_found(const std::vector<ExploreMutant>& mutants, const ExploreCase& what) {
  int found = 0, equivalent = 0;
  for (const ExploreMutant& mutant : mutants) {
    const Violation violation = run_mutant(mutant, what);
    const bool right =
        mutant.right.empty() ? violation.kind.empty() : mutant.right.contains(violation.kind);
    EXPECT_TRUE(right) << mutant.name << ": " << violation.kind << " " << violation.edge << "\n"
                       << violation.text;
    (mutant.right.empty() ? equivalent : found) += right ? 1 : 0;
  }
  fmt::print("explored mutants: caught {} / total {} / equivalent {}\n", found, mutants.size(),
             equivalent);
}

class ExploreMutants : public testing::TestWithParam<int> {};  // row replicas
INSTANTIATE_TEST_SUITE_P(Replicas, ExploreMutants, testing::Values(1, 2, 4),
                         [](const auto& replicas) { return std::to_string(replicas.param); });

const std::vector<std::string> kTileEdges{
    "q_arrived",    "q_released", "kv_arrived",  "kv_released", "s_ready",      "po_ready",
    "p_tail_ready", "o_ready",    "stats_ready", "stats_taken", "tensor_memory"};

TEST_P(ExploreMutants, DroppedWaitsAndArrivalsAndWrongOrdersAreFound) {
  const ExploreCase what{.score_slots = 2,
                         .kv_slots = 2,
                         .row_replicas = GetParam(),
                         .blocks = {4, 1, 1},
                         .rescale = {~0u, ~0u},
                         .quarters = 1};
  ASSERT_EQ(run_mutant({"the kernel", [](Recording&) {}, {}}, what).text, "");
  std::vector<ExploreMutant> mutants;
  // With replicas all of P lies before po_ready: no order needs p_tail_ready, which only keeps
  // step.
  const auto needed = [](const std::string& edge) {
    return GetParam() == 1 || edge != "p_tail_ready";
  };
  const std::set<std::string> none, harm{"early", "overtaken", "race", "operand"};
  for (const std::string& edge : kTileEdges) {
    mutants.push_back({"no wait for " + edge, no_wait(edge), needed(edge) ? harm : none});
    mutants.push_back({"no arrival on " + edge, no_arrival(edge), {"deadlock"}});
  }
  for (const std::string edge :
       {"s_ready", "po_ready", "p_tail_ready", "o_ready", "stats_ready", "stats_taken"}) {
    mutants.push_back({edge + " before what it says", early(edge),
                       needed(edge) ? std::set<std::string>{"race"} : none});
  }
  if (GetParam() > 1) {  // every piece is staged
    for (const std::string edge : {"o_staged", "o_stored"}) {
      mutants.push_back({"no wait for " + edge, no_wait(edge), {"overtaken"}});
      mutants.push_back({"no arrival on " + edge, no_arrival(edge), {"deadlock"}});
    }
  }
  mutants.push_back({"K and V in the order of one slot", base_order, {"operand"}});
  expect_found(mutants, what);
}

TEST(ExplorePieces, MutantsOfTheListOfPiecesAreFound) {
  const ExploreCase what{.score_slots = 2,
                         .kv_slots = 2,
                         .blocks = {1, 1, 1, 1, 1, 1},
                         .quarters = 1,
                         .part = Part::pieces};
  ASSERT_EQ(run_mutant({"the kernel", [](Recording&) {}, {}}, what).text, "");
  expect_found({{"no wait for piece_ready", no_wait("piece_ready"), {"race", "overtaken"}},
                {"no wait for piece_taken", no_wait("piece_taken"), {"race", "overtaken"}},
                {"no arrival on piece_ready", no_arrival("piece_ready"), {"deadlock"}},
                {"no arrival on piece_taken", no_arrival("piece_taken"), {"deadlock"}},
                {"piece_ready before the record", early("piece_ready"), {"race"}},
                {"piece_taken before the record is read", early("piece_taken"), {"race"}}},
               what);
}

}  // namespace
}  // namespace deuce::emulator
