// SPDX-License-Identifier: Apache-2.0
// The compiled Blackwell kernels: the only list. One row per kernel; src/gpu/kernels holds one file
// of a few lines for each. score_slots 1 is the base path and the off switch of the ping-pong.
#pragma once

#include <array>

#include "kernel/blackwell/config.h"

namespace deuce::blackwell {

inline constexpr std::array kShapes{
    Config{.head_dim = 64, .score_slots = 1, .bf16 = true},
    Config{.head_dim = 64, .score_slots = 2, .bf16 = true},
    Config{.head_dim = 64, .score_slots = 3, .bf16 = true},
    Config{.head_dim = 64, .score_slots = 1, .bf16 = false},
    Config{.head_dim = 64, .score_slots = 2, .bf16 = false},
    Config{.head_dim = 64, .score_slots = 3, .bf16 = false},
    Config{.head_dim = 128, .score_slots = 1, .bf16 = true},
    Config{.head_dim = 128, .score_slots = 2, .bf16 = true},
    Config{.head_dim = 128, .score_slots = 3, .bf16 = true},
    Config{.head_dim = 128, .score_slots = 1, .bf16 = false},
    Config{.head_dim = 128, .score_slots = 2, .bf16 = false},
    Config{.head_dim = 128, .score_slots = 3, .bf16 = false},
};

/// The row of a head dim, type and slot count; -1: there is none.
constexpr int select_shape(int head_dim, bool bf16, int score_slots) {
  for (std::size_t i = 0; i < kShapes.size(); ++i) {
    const Config& shape = kShapes[i];
    if (shape.head_dim == head_dim && shape.bf16 == bf16 && shape.score_slots == score_slots) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

}  // namespace deuce::blackwell
