// SPDX-License-Identifier: Apache-2.0
// The compiled Hopper kernels: the only list. src/gpu/kernels holds a file for each row,
// with and without fixed borders. Selection is a pure function over this table.
#pragma once

#include <array>

#include "kernel/hopper/config.h"

namespace deuce::hopper {

/// Without fixed borders. Few rows: streams of one warp, three of them feed a 192 KB ring at the
/// read roof. Many rows: four row groups share every tile, two streams.
inline constexpr std::array kFreeShapes{
    Config{.head_dim = 128, .element = Element::bf16, .row_groups = 1, .streams = 3, .stages = 6},
    Config{.head_dim = 128, .element = Element::half, .row_groups = 1, .streams = 3, .stages = 6},
    Config{.head_dim = 128, .element = Element::e4m3, .row_groups = 1, .streams = 4, .stages = 12},
    Config{.head_dim = 64, .element = Element::bf16, .row_groups = 1, .streams = 4, .stages = 12},
    Config{.head_dim = 64, .element = Element::half, .row_groups = 1, .streams = 4, .stages = 12},
    Config{.head_dim = 64, .element = Element::e4m3, .row_groups = 1, .streams = 6, .stages = 24},
    Config{.head_dim = 128, .element = Element::bf16, .row_groups = 4, .streams = 2, .stages = 4},
    Config{.head_dim = 128, .element = Element::half, .row_groups = 4, .streams = 2, .stages = 4},
    Config{.head_dim = 128, .element = Element::e4m3, .row_groups = 4, .streams = 2, .stages = 8},
    Config{.head_dim = 64, .element = Element::bf16, .row_groups = 4, .streams = 2, .stages = 10},
    Config{.head_dim = 64, .element = Element::half, .row_groups = 4, .streams = 2, .stages = 10},
    Config{.head_dim = 64, .element = Element::e4m3, .row_groups = 4, .streams = 2, .stages = 20},
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

/// The kernel for a head dim, cache type and number of packed rows: the smallest that holds the
/// rows of a request, else the largest, with several row tiles. -1: there is none.
constexpr int select_shape(int head_dim, Element element, int64_t rows, bool fixed_borders) {
  int best = -1;
  for (int i = 0; i < static_cast<int>(kShapes.size()); ++i) {
    const Config& shape = kShapes[i];
    if (shape.head_dim != head_dim || shape.element != element) continue;
    if (shape.fixed_borders != fixed_borders) continue;
    if (best < 0) best = i;
    const bool holds = shape.rows() >= rows, best_holds = kShapes[best].rows() >= rows;
    if (holds && (!best_holds || shape.rows() < kShapes[best].rows())) best = i;
    if (!holds && !best_holds && shape.rows() > kShapes[best].rows()) best = i;
  }
  return best;
}

}  // namespace deuce::hopper
