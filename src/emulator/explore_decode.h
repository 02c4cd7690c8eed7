// SPDX-License-Identifier: Apache-2.0
// The bounds within which the Blackwell kernel is explored, and the recordings to explore.
// Used by `deuce check --explore` and tests/explore.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "emulator/explore.h"
#include "emulator/schedule.h"

namespace deuce::emulator {

inline constexpr int kMostBlocks = 5;                // KV blocks of an item
inline constexpr int kPatternTiles = 4;              // rings with every choice of rescales
inline constexpr int kQuarterTiles = 3;              // rings with two lane quarters, cut items
inline constexpr uint64_t kStateLimit = 20'000'000;  // of one program; above, it is incomplete

/// The bounds in words.
std::string explore_bounds();

/// One program to explore: head dimension 64, one CTA.
struct ExploreCase {
  int score_slots = 2, kv_slots = 4, row_replicas = 1;
  std::vector<int> blocks{3};    // KV blocks of each item
  uint32_t rescale[2] = {0, 0};  // bit n: the n-th block that may rescale does; even, odd quarters
  int quarters = 1;              // of the four groups of 32 rows
  int splits = 0;                // parts of each item; 0: items are whole
  Part part = Part::tiles;
  std::string text() const;
};

/// All cases of 1, 2 or 3 slots and 1, 2 or 4 replicas: 1 to 5 blocks, 2 to 6 ring tiles.
std::vector<ExploreCase> explore_cases(int score_slots, int row_replicas);

/// Records the kernel with all of its lanes; the run only fixes who came first, which a program
/// must not depend on.
Recording record_decode(const ExploreCase& what, const RunName& run);

struct ExploreSummary {
  int cases = 0, complete = 0;
  uint64_t states = 0, most_states = 0;
  ExploreCase last;     // the one with the violation, if any
  int last_number = 0;  // of it among explore_cases(), from 1
  Violation violation;  // the first one ends the exploration
  bool clean() const { return violation.kind.empty() && complete == cases; }
};

/// Explores all cases, or the one of number `only`. `go_on` is called before each; false stops.
ExploreSummary explore_decode(int score_slots, int row_replicas, uint64_t state_limit,
                              const std::function<bool()>& go_on, int only = 0);

}  // namespace deuce::emulator
