// SPDX-License-Identifier: Apache-2.0
// The compiled Blackwell kernels: the only list. One row per kernel; src/gpu/kernels holds one file
// of a few lines for each. score_slots 1 is the base path and the off switch of the ping-pong;
// row_replicas 1 that of the replicas, which head dim 128 has with two slots only, as nothing is
// predicted to be won there.
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
    Config{.head_dim = 64, .score_slots = 1, .bf16 = true, .row_replicas = 2},
    Config{.head_dim = 64, .score_slots = 2, .bf16 = true, .row_replicas = 2},
    Config{.head_dim = 64, .score_slots = 3, .bf16 = true, .row_replicas = 2},
    Config{.head_dim = 64, .score_slots = 1, .bf16 = true, .row_replicas = 4},
    Config{.head_dim = 64, .score_slots = 2, .bf16 = true, .row_replicas = 4},
    Config{.head_dim = 64, .score_slots = 3, .bf16 = true, .row_replicas = 4},
    Config{.head_dim = 64, .score_slots = 1, .bf16 = false, .row_replicas = 2},
    Config{.head_dim = 64, .score_slots = 2, .bf16 = false, .row_replicas = 2},
    Config{.head_dim = 64, .score_slots = 3, .bf16 = false, .row_replicas = 2},
    Config{.head_dim = 64, .score_slots = 1, .bf16 = false, .row_replicas = 4},
    Config{.head_dim = 64, .score_slots = 2, .bf16 = false, .row_replicas = 4},
    Config{.head_dim = 64, .score_slots = 3, .bf16 = false, .row_replicas = 4},
    Config{.head_dim = 128, .score_slots = 2, .bf16 = true, .row_replicas = 2},
    Config{.head_dim = 128, .score_slots = 2, .bf16 = true, .row_replicas = 4},
    Config{.head_dim = 128, .score_slots = 2, .bf16 = false, .row_replicas = 2},
    Config{.head_dim = 128, .score_slots = 2, .bf16 = false, .row_replicas = 4},
};

/// The row of a configuration; -1: there is none.
constexpr int select_shape(const Config& config) {
  for (std::size_t i = 0; i < kShapes.size(); ++i) {
    if (kShapes[i] == config) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace deuce::blackwell
