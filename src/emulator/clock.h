// SPDX-License-Identifier: Apache-2.0
// Vector clocks of one block: what an actor knows to have happened.
// Read by every check in shadow.cpp and barrier code. A component is a warp, its tensor-memory
// loads or stores in flight, a tensor-pipe stream, the copies on one barrier, or a barrier's
// phases.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace deuce::emulator {

inline constexpr int kMaxWarps = 16;
inline constexpr int kMaxBarriers = 72;
inline constexpr int kMaxStreams = 8;

using Component = int16_t;
constexpr Component warp_component(int warp) { return static_cast<Component>(warp); }
constexpr Component loads_component(int warp) { return static_cast<Component>(kMaxWarps + warp); }
constexpr Component stores_component(int warp) {
  return static_cast<Component>(2 * kMaxWarps + warp);
}
constexpr Component stream_component(int stream) {
  return static_cast<Component>(3 * kMaxWarps + stream);
}
constexpr Component copies_component(int barrier) {
  return static_cast<Component>(3 * kMaxWarps + kMaxStreams + barrier);
}
constexpr Component phases_component(int barrier) {
  return static_cast<Component>(3 * kMaxWarps + kMaxStreams + kMaxBarriers + barrier);
}
inline constexpr int kComponents = 3 * kMaxWarps + kMaxStreams + 2 * kMaxBarriers;

/// tcgen05 operations: loads and stores of each warp, and the streams of the tensor pipe.
inline constexpr int kTensorComponents = 2 * kMaxWarps + kMaxStreams;
using TensorOrder = std::array<uint32_t, kTensorComponents>;
constexpr bool is_tensor_component(Component component) {
  return component >= kMaxWarps && component < kMaxWarps + kTensorComponents;
}
constexpr std::size_t tensor_index(Component component) {
  return static_cast<std::size_t>(component - kMaxWarps);
}

/// What a block knows of the warps of another block.
struct Foreign {
  int block;
  std::array<uint32_t, kMaxWarps> warps;
};

/// The vectors of an actor: causality, visibility of generic writes, generic accesses that the
/// async proxy may see, and tcgen05 operations that their thread has fenced before it signalled. A
/// completion of an asynchronous operation carries `k` and `t` only.
struct Clock {
  std::array<uint32_t, kComponents> k{};
  std::array<uint32_t, kMaxWarps> c{};
  std::array<uint32_t, kMaxWarps> f{};
  TensorOrder t{};
  std::vector<Foreign> foreign;

  void join_order(const Clock& other) {
    for (int i = 0; i < kComponents; ++i) k[i] = std::max(k[i], other.k[i]);
    for (int i = 0; i < kTensorComponents; ++i) t[i] = std::max(t[i], other.t[i]);
  }
  void join(const Clock& other) {
    join_order(other);
    for (int i = 0; i < kMaxWarps; ++i) {
      c[i] = std::max(c[i], other.c[i]);
      f[i] = std::max(f[i], other.f[i]);
    }
    for (const Foreign& seen : other.foreign) join_foreign(seen);
  }
  void join_foreign(const Foreign& seen) {
    for (Foreign& mine : foreign) {
      if (mine.block != seen.block) continue;
      for (int i = 0; i < kMaxWarps; ++i) mine.warps[i] = std::max(mine.warps[i], seen.warps[i]);
      return;
    }
    foreign.push_back(seen);
  }
  uint32_t knows(int block, int warp) const {
    for (const Foreign& seen : foreign) {
      if (seen.block == block) return seen.warps[warp];
    }
    return 0;
  }
};

}  // namespace deuce::emulator
