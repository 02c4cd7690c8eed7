// SPDX-License-Identifier: Apache-2.0
// States and moves of a model; shared by the search and by the replay of recorded orders.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/explore.h"

namespace deuce::emulator {

/// Steps taken by each actor, and which of the issued commits and copies have been delivered.
/// Everything else follows: barriers count what these have signalled.
struct State {
  std::array<uint8_t, 16> taken{};
  uint64_t commits = 0, copies = 0;
  friend bool operator==(const State&, const State&) = default;
};

/// An actor's step, or the delivery of a commit or copy.
struct Move {
  enum class Kind : uint8_t { step, commit, copy } kind;
  uint8_t index;
};

class Moves {
 public:
  explicit Moves(const Model& model);

  /// All moves that can be made; a wait that passes on the wrong phase is a violation.
  std::vector<Move> enabled(const State& state, Violation& violation) const;
  bool can_step(const State& state, std::size_t actor, Violation& violation) const;
  State after(const State& state, Move move) const;
  /// Of the state that a move has led to: races of the mover, wrong operands.
  Violation judge(const State& state, Move move) const;
  /// Of a state in which the last warp has left.
  Violation judge_leaving(const State& state) const;
  /// Of a state without moves.
  Violation judge_end(const State& state) const;
  bool all_left(const State& state) const;
  uint64_t open_commits(const State& state) const;
  uint64_t open_copies(const State& state) const;
  std::string text(const State& before, Move move) const;
  /// Why the search cannot hold this model, or "".
  std::string bounds() const;

 private:
  struct Async {  // a commit, a copy, or MMAs up to the next commit
    int barrier = -1;
    Access access;
    int tile = -1, content = -1;
    Site site{};
    int kv_block = -1;
  };
  struct Prefix {               // what an actor has done after so many steps
    std::vector<int> arrivals;  // by barrier
    uint64_t commits = 0, copies = 0;
    int mmas = 0;
    std::vector<std::pair<int, int>> contents;  // tile, content of the last copy issued there
  };

  int phases(const State& state, int barrier) const;
  const Prefix& prefix(const State& state, std::size_t actor) const {
    return prefixes_[actor][state.taken[actor]];
  }
  const Access& held(const State& state, std::size_t actor) const;
  Violation race(const State& state, std::size_t actor, const Access& access, bool is_mma,
                 const std::string& name) const;
  std::string where(std::size_t actor, Site site) const;
  int finished_mmas(const State& state) const;
  int content_of(const State& state, int tile) const;

  const Model& model_;
  std::vector<std::vector<Prefix>> prefixes_;
  std::vector<Async> commits_, copies_, mmas_;
  std::vector<int> mmas_before_commit_;
  std::vector<uint64_t> commits_on_, copies_on_;  // by barrier
};

}  // namespace deuce::emulator
