// SPDX-License-Identifier: Apache-2.0
// Schedules; see schedule.h.
#include "emulator/schedule.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "emulator/clock.h"

namespace deuce::emulator {
namespace {

constexpr std::array<const char*, 5> kModeNames{"timed", "eager", "lazy", "random", "adversarial"};

uint64_t mix(uint64_t a, uint64_t b) {  // splitmix64 finaliser
  uint64_t x = a * 0x9e3779b97f4a7c15u + b;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

std::string RunName::text() const {
  return fmt::format("{}/{}", kModeNames[static_cast<std::size_t>(mode)], number);
}

std::optional<RunName> parse_run_name(const std::string& text, uint64_t seed) {
  const std::size_t slash = text.find('/');
  const std::string mode = text.substr(0, slash);
  for (std::size_t i = 0; i < kModeNames.size(); ++i) {
    if (mode != kModeNames[i]) continue;
    int number = 0;
    if (slash != std::string::npos) {
      const std::string digits = text.substr(slash + 1);
      if (digits.empty() || digits.size() > 9) return std::nullopt;
      if (digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
      number = std::stoi(digits);
    }
    const auto found = static_cast<Mode>(i);
    // Only random schedules are many; an adversarial one is numbered by its slow role.
    const int count = found == Mode::random        ? number + 1
                      : found == Mode::adversarial ? kAdversarialRoles
                                                   : 1;
    if (number >= count) return std::nullopt;
    return RunName{static_cast<Mode>(i), number, seed};
  }
  return std::nullopt;
}

std::vector<RunName> runs(int count, uint64_t seed) {
  std::vector<RunName> out;
  for (const Mode mode : {Mode::timed, Mode::eager, Mode::lazy}) out.push_back({mode, 0, seed});
  for (int i = 0; i < kAdversarialRoles; ++i) out.push_back({Mode::adversarial, i, seed});
  for (int i = 0; static_cast<int>(out.size()) < count; ++i) {
    out.push_back({Mode::random, i, seed});
  }
  out.resize(static_cast<std::size_t>(count < 0 ? 0 : count));
  return out;
}

Schedule::Schedule(const RunName& name)
    : name_(name),
      random_(mix(mix(name.seed, static_cast<uint64_t>(name.mode)),
                  static_cast<uint64_t>(name.number))),
      pace_(kMaxWarps, 1.0) {
  if (name.mode == Mode::adversarial) slowdown_ = 10.0 * std::pow(10.0, unit());
  if (name.mode == Mode::random) {
    constexpr std::array kScales{0.1, 1.0, 10.0};
    slowdown_ = kScales[random_() % kScales.size()];  // of asynchronous delays
  }
}

/// A kernel whose attend warps do it all has one role to slow down in place of four.
bool Schedule::is_slowed(Role role) const {
  const Role slow = adversary(name_.number);
  return role == slow || (role == Role::attend && slow != Role::load);
}

double Schedule::step(int warp, Role role, double cost) {
  switch (name_.mode) {
    case Mode::timed: return cost;
    case Mode::eager:
    case Mode::lazy: return 1;
    case Mode::adversarial: return is_slowed(role) ? cost * slowdown_ : cost;
    case Mode::random: break;
  }
  if (--steps_to_change_ <= 0) {  // new fast and slow warps
    steps_to_change_ = 50 + static_cast<int>(random_() % 400);
    for (double& pace : pace_) pace = std::pow(10.0, 3 * unit() - 1);  // 0.1 to 100
  }
  return (0.5 + unit()) * 20 * pace_[static_cast<std::size_t>(warp)];
}

double Schedule::delay(Delay kind, double cost) {
  switch (name_.mode) {
    case Mode::timed:
    case Mode::adversarial: return cost;
    case Mode::eager: return 0;
    case Mode::lazy: return kind == Delay::wake ? 0 : 1;
    case Mode::random: break;
  }
  if (kind == Delay::wake) return unit() * 50;
  const double drawn = cost * slowdown_ * (0.1 + 1.9 * unit());
  // Now and then a straggler: what came later overtakes it.
  return random_() % 8 == 0 ? drawn * 20 : drawn;
}

bool Schedule::spurious_failure() { return name_.mode == Mode::random && random_() % 4 == 0; }

}  // namespace deuce::emulator
