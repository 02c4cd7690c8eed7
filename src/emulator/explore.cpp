// SPDX-License-Identifier: Apache-2.0
// Breadth-first search over the states of a model; see explore.h.
#include "emulator/explore.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "emulator/explore_model.h"

namespace deuce::emulator {
namespace {

constexpr std::size_t kShownMoves = 24;

uint64_t hash_of(const State& state) {
  std::array<uint64_t, 2> taken;
  std::memcpy(taken.data(), state.taken.data(), sizeof taken);
  uint64_t hash = 0;
  for (const uint64_t word : {taken[0], taken[1], state.commits, state.copies}) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return hash;
}

/// Visited states in the order of discovery, each with the move that led to it.
class Visited {
 public:
  Visited() : table_(1u << 16, kFree) {}
  std::size_t size() const { return states_.size(); }
  const State& operator[](std::size_t i) const { return states_[i]; }

  /// False when the state was known.
  bool add(const State& state, uint32_t from, Move by) {
    if (2 * states_.size() >= table_.size()) grow();
    uint32_t& place = find(state);
    if (place != kFree) return false;
    place = static_cast<uint32_t>(states_.size());
    states_.push_back(state);
    from_.push_back(from);
    by_.push_back(by);
    return true;
  }

  /// The last moves on the way to state `at`.
  std::string path(uint32_t at, const Moves& moves) const {
    std::vector<std::string> lines;
    for (; at != 0 && lines.size() < kShownMoves; at = from_[at]) {
      lines.push_back(moves.text(states_[from_[at]], by_[at]));
    }
    std::reverse(lines.begin(), lines.end());
    return fmt::format("\n  {}", fmt::join(lines, "\n  "));
  }

 private:
  static constexpr uint32_t kFree = 0xffffffffu;
  uint32_t& find(const State& state) {
    std::size_t place = hash_of(state) & (table_.size() - 1);
    while (table_[place] != kFree && !(states_[table_[place]] == state)) {
      place = (place + 1) & (table_.size() - 1);
    }
    return table_[place];
  }
  void grow() {
    table_.assign(2 * table_.size(), kFree);
    for (std::size_t i = 0; i < states_.size(); ++i) find(states_[i]) = static_cast<uint32_t>(i);
  }
  std::vector<State> states_;
  std::vector<uint32_t> from_;
  std::vector<Move> by_;
  std::vector<uint32_t> table_;
};

}  // namespace

Exploration explore(const Model& model, uint64_t state_limit) {
  const Moves moves(model);
  Exploration result;
  const std::string fault = model.fault.empty() ? moves.bounds() : model.fault;
  if (!fault.empty()) {
    result.violation = {"model", "", fault};
    return result;
  }
  Visited visited;
  visited.add(State{}, 0, {});
  const auto stop = [&](Violation violation, uint32_t at) {
    result.violation = std::move(violation);
    result.violation.text += visited.path(at, moves);
    result.states = visited.size();
    return result;
  };
  for (uint32_t at = 0; at < visited.size(); ++at) {
    const State state = visited[at];
    Violation violation;
    const std::vector<Move> list = moves.enabled(state, violation);
    if (violation.kind.empty() && list.empty()) violation = moves.judge_end(state);
    if (violation.kind.empty()) violation = moves.judge_leaving(state);
    if (!violation.kind.empty()) return stop(std::move(violation), at);
    for (const Move move : list) {
      const State next = moves.after(state, move);
      if (!visited.add(next, at, move)) continue;
      violation = moves.judge(next, move);
      if (!violation.kind.empty()) {
        return stop(std::move(violation), static_cast<uint32_t>(visited.size() - 1));
      }
    }
    if (visited.size() > state_limit) {
      result.states = visited.size();
      return result;
    }
  }
  result.states = visited.size();
  result.complete = true;
  return result;
}

namespace {

/// Follows a recorded order through the model, making moves only when the order demands them.
class Replay {
 public:
  explicit Replay(const Model& model) : model_(model), moves_(model) {
    submitted_.resize(model.actors.size());
  }

  std::string run(const std::vector<int>& order) {
    for (const int warp : order) {
      for (std::size_t a = 0; a < model_.actors.size(); ++a) {
        if (model_.actors[a].warp != warp) continue;
        ++submitted_[a];
        if (std::string why = catch_up(a); !why.empty()) return why;
      }
    }
    for (std::size_t a = 0; a < model_.actors.size(); ++a) {
      ++submitted_[a];
      if (std::string why = catch_up(a); !why.empty()) return why;
    }
    return moves_.all_left(state_) ? "" : "the order ends before the programs do";
  }

 private:
  /// The warp has submitted an event behind its next step, so the step must have been possible.
  std::string catch_up(std::size_t actor) {
    const std::vector<Step>& steps = model_.actors[actor].steps;
    while (state_.taken[actor] < steps.size() &&
           steps[state_.taken[actor]].last_event + 1 < submitted_[actor]) {
      Violation violation;
      if (moves_.can_step(state_, actor, violation)) {
        state_ = moves_.after(state_, {Move::Kind::step, static_cast<uint8_t>(actor)});
      } else if (!violation.kind.empty()) {
        return violation.text;
      } else if (!help()) {
        return "the emulator went on where the model waits: " +
               moves_.text(state_, {Move::Kind::step, static_cast<uint8_t>(actor)});
      }
    }
    return {};
  }

  /// One move that the order allows so far: a delivery, or a step that has begun.
  bool help() {
    Violation ignored;
    for (const Move move : moves_.enabled(state_, ignored)) {
      const bool is_step = move.kind == Move::Kind::step;
      if (is_step && model_.actors[move.index].steps[state_.taken[move.index]].begins >=
                         submitted_[move.index]) {
        continue;
      }
      state_ = moves_.after(state_, move);
      return true;
    }
    return false;
  }

  const Model& model_;
  Moves moves_;
  State state_;
  std::vector<std::size_t> submitted_;
};

}  // namespace

std::string rejects(const Model& model, const std::vector<int>& order) {
  return Replay(model).run(order);
}

}  // namespace deuce::emulator
