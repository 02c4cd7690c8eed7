// SPDX-License-Identifier: Apache-2.0
// Schedules: in which order warps run and when asynchronous operations complete.
// Every choice comes from (mode, run number, seed), so that a run can be replayed by name.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "kernel/edges.h"

namespace deuce::emulator {

enum class Mode : uint8_t {
  timed,       // warps and operations take the time of timing.h
  eager,       // operations complete at issue; warps take turns
  lazy,        // operations complete only when nothing else can run
  random,      // random priorities with change points, random delays, commits in any order
  adversarial  // as timed, with one role slower by a drawn factor of 10 to 100
};

/// Name of one run: `timed/0`, `random/17`; `adversarial/2` slows the third role.
struct RunName {
  Mode mode = Mode::timed;
  int number = 0;
  uint64_t seed = 1;
  std::string text() const;  // "random/17"
};
std::optional<RunName> parse_run_name(const std::string& text, uint64_t seed);

/// The runs of `count` schedules: one timed, eager and lazy, one adversarial per role, else random.
std::vector<RunName> runs(int count, uint64_t seed);

inline constexpr int kAdversarialRoles = 5;
constexpr Role adversary(int number) {
  constexpr Role kRoles[kAdversarialRoles] = {Role::load, Role::mma, Role::softmax,
                                              Role::correction, Role::epilogue};
  return kRoles[number % kAdversarialRoles];
}

enum class Delay : uint8_t { copy, mma, commit, arrival, wake };

class Schedule {
 public:
  explicit Schedule(const RunName& name);
  const RunName& name() const { return name_; }
  bool lazy() const { return name_.mode == Mode::lazy; }
  bool timed() const { return name_.mode == Mode::timed; }
  /// Cycles after which the warp that ran an operation of `cost` cycles may run again.
  double step(int warp, Role role, double cost);
  /// Cycles from the issue of something asynchronous to its effect, `cost` in the timing model.
  double delay(Delay kind, double cost);
  /// A try of a barrier whose phase is complete may still answer no.
  bool spurious_failure();
  uint64_t draw(uint64_t below) { return random_() % below; }

 private:
  RunName name_;
  std::mt19937_64 random_;
  double slowdown_ = 1;
  std::vector<double> pace_;  // random mode: per warp, redrawn now and then
  int steps_to_change_ = 0;
  bool is_slowed(Role role) const;
  double unit() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
};

}  // namespace deuce::emulator
