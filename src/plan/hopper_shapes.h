// SPDX-License-Identifier: Apache-2.0
// The compiled Hopper kernels: the only list. src/gpu/kernels holds a file for each row,
// with and without fixed borders. Selection is a pure function over this table.
#pragma once

#include <array>

#include "kernel/hopper/config.h"

namespace deuce::hopper {

/// Two warpgroups: of 64 rows each take tiles in turn, or both share the tiles of 128 rows.
constexpr Config warpgroups(int head_dim, Element element, int rows, int score_slots) {
  const bool shared = rows == 128;
  return {.head_dim = head_dim,
          .element = element,
          .engine = Engine::warpgroup,
          .row_groups = rows / kGroupRows,
          .streams = shared ? 1 : 2,
          .stages = head_dim == 128 ? (shared ? 4 : 6) : (shared ? 10 : 12),
          .score_slots = score_slots};
}

/// Without fixed borders. Few rows: streams of one warp, three of them feed a 192 KB ring at the
/// read roof. Many rows: four row groups share every tile, two streams.
inline constexpr std::array kFreeShapes{
    Config{.head_dim = 128, .element = Element::bf16, .row_groups = 1, .streams = 3, .stages = 6},
    Config{.head_dim = 128, .element = Element::half, .row_groups = 1, .streams = 3, .stages = 6},
    Config{.head_dim = 128, .element = Element::e4m3, .row_groups = 1, .streams = 4, .stages = 12},
    Config{.head_dim = 64, .element = Element::bf16, .row_groups = 1, .streams = 4, .stages = 12},
    Config{.head_dim = 64, .element = Element::half, .row_groups = 1, .streams = 4, .stages = 12},
    Config{.head_dim = 64, .element = Element::e4m3, .row_groups = 1, .streams = 6, .stages = 24},
    warpgroups(128, Element::bf16, 64, 1),
    warpgroups(128, Element::half, 64, 1),
    Config{.head_dim = 128, .element = Element::e4m3, .row_groups = 4, .streams = 2, .stages = 8},
    warpgroups(64, Element::bf16, 64, 1),
    warpgroups(64, Element::half, 64, 1),
    Config{.head_dim = 64, .element = Element::e4m3, .row_groups = 4, .streams = 2, .stages = 20},
    warpgroups(128, Element::bf16, 128, 1),
    warpgroups(128, Element::half, 128, 1),
    warpgroups(64, Element::bf16, 128, 1),
    warpgroups(64, Element::half, 128, 1),
    warpgroups(128, Element::bf16, 64, 2),
    warpgroups(128, Element::half, 64, 2),
    warpgroups(64, Element::bf16, 64, 2),
    warpgroups(64, Element::half, 64, 2),
    warpgroups(128, Element::bf16, 128, 2),
    warpgroups(128, Element::half, 128, 2),
    warpgroups(64, Element::bf16, 128, 2),
    warpgroups(64, Element::half, 128, 2),
};

inline constexpr int kFixedBorders =
    static_cast<int>(kFreeShapes.size());  // added to a row's number
inline constexpr auto kShapes = [] {
  std::array<Config, 2 * kFreeShapes.size()> shapes{};
  for (int i = 0; i < kFixedBorders; ++i) {
    shapes[i] = shapes[i + kFixedBorders] = kFreeShapes[i];
    shapes[i + kFixedBorders].fixed_borders = true;
  }
  return shapes;
}();

/// Where the caller leaves it open, and the kernel has both.
inline constexpr int kScoreSlots = 1;

/// The kernel for a head dim, cache type and number of packed rows: the smallest that holds the
/// rows of a request, else the largest, with several row tiles. -1: there is none, or not with that
/// many score slots (0: the usual number).
constexpr int select_shape(int head_dim, Element element, int64_t rows, bool fixed_borders,
                           int score_slots = 0) {
  int best = -1;
  for (int i = 0; i < static_cast<int>(kShapes.size()); ++i) {
    const Config& shape = kShapes[i];
    if (shape.head_dim != head_dim || shape.element != element) continue;
    if (shape.fixed_borders != fixed_borders || shape.score_slots != 1) continue;
    if (best < 0) best = i;
    const bool holds = shape.rows() >= rows, best_holds = kShapes[best].rows() >= rows;
    if (holds && (!best_holds || shape.rows() < kShapes[best].rows())) best = i;
    if (!holds && !best_holds && shape.rows() > kShapes[best].rows()) best = i;
  }
  const int wanted = score_slots == 0 ? kScoreSlots : score_slots;
  if (best < 0 || wanted == 1) return best;
  Config other = kShapes[best];
  other.score_slots = wanted;
  for (int i = 0; i < static_cast<int>(kShapes.size()); ++i) {
    if (kShapes[i] == other) return i;
  }
  return score_slots == 0 ? best : -1;
}

}  // namespace deuce::hopper
