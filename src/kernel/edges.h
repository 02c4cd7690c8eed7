// SPDX-License-Identifier: Apache-2.0
// The vocabulary of a barrier graph as data: who signals whom, how often, and what it protects.
// A kernel states one constexpr table of edges; initialisation, the emulator's checks, traces, docs
// and mutants are made from it. Arrival counts are computed here and never typed elsewhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace deuce {

enum class Role : uint8_t {
  load,
  load_q,
  mma,
  softmax,
  correction,
  epilogue,
  attend,
  schedule,
  idle
};

constexpr std::string_view name_of(Role role) {
  constexpr std::array<std::string_view, 9> kNames{
      "load", "load q", "mma", "softmax", "correction", "epilogue", "attend", "schedule", "idle"};
  return kNames[static_cast<std::size_t>(role)];
}

/// A run of warps with one role.
struct WarpRange {
  Role role;
  int first_warp, warps;
  int registers;  // per thread, after the start of the kernel
};

/// How a role arrives in one phase.
enum class By : uint8_t {
  nobody,
  bytes,              // one thread announces bytes, copies bring them: 1 arrival and the bytes
  commit,             // the tensor pipe, behind an MMA: 1 arrival
  one_lane,           // one thread: 1 arrival
  one_lane_per_warp,  // one arrival per warp of the role
  each_thread         // 32 arrivals per warp of the role
};

struct Arrival {
  Role role = Role::idle;
  By by = By::nobody;
};

enum class EdgeKind : uint8_t {
  barrier,  // mbarriers in shared memory
  named,    // hardware named barriers, one per slot, ids from `first_id`
  implied   // ordered by something else than a barrier: `protects` says by what
};

struct Edge {
  std::string_view name;
  std::array<Arrival, 6> arrives{};
  Role waits = Role::idle;
  std::array<Role, 5> waits_too{Role::idle, Role::idle, Role::idle, Role::idle, Role::idle};
  int slots = 1;
  std::string_view protects;
  EdgeKind kind = EdgeKind::barrier;
  int first_id = 0;           // named barriers
  int threads = 0;            // named barriers: threads per phase
  std::size_t offset = 0;     // mbarriers: of slot 0 in the shared storage
  bool open_at_exit = false;  // arrivals may be left pending when the kernel ends
};

constexpr int warps_of(Role role, const auto& roles) {
  int warps = 0;
  for (const WarpRange& range : roles) warps += range.role == role ? range.warps : 0;
  return warps;
}

/// Arrivals that complete one phase of the edge.
constexpr int arrivals(const Edge& edge, const auto& roles) {
  int count = 0;
  for (const Arrival& arrival : edge.arrives) {
    const int warps = warps_of(arrival.role, roles);
    switch (arrival.by) {
      case By::nobody: break;
      case By::bytes:
      case By::commit:
      case By::one_lane: count += 1; break;
      case By::one_lane_per_warp: count += warps; break;
      case By::each_thread: count += 32 * warps; break;
    }
  }
  return count;
}

/// The role of a warp in a table of ranges.
constexpr Role role_of(int warp, const auto& roles) {
  for (const WarpRange& range : roles) {
    if (warp >= range.first_warp && warp < range.first_warp + range.warps) return range.role;
  }
  return Role::idle;
}

}  // namespace deuce
