// SPDX-License-Identifier: Apache-2.0
// What is running of wgmma: per warp the registers that it must not touch, per warpgroup the MMAs
// in issue order. Used by block_wgmma.cpp.
// While an MMA may run, its accumulator holds a signalling NaN: whoever computes with it quiets
// that, and the wait finds it. Values are given back by the wait, whatever the clock says.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "emulator/mma.h"
#include "emulator/op.h"

namespace deuce::emulator {

/// One accumulator of one warp: 16 rows of 8 columns a tile.
struct RunningAccumulator {
  std::array<float*, 32> lanes{};  // four floats a tile each
  int tiles = 0;
  uint32_t last = 0;          // MMA of the warp that added to it last, counted from 1
  std::vector<float> values;  // [row][column]
};

/// Registers that an MMA reads as A.
struct RunningOperand {
  std::array<const uint32_t*, 32> lanes{};
  std::array<std::array<uint32_t, 4>, 32> words{};
  uint32_t mma = 0;
  Site site{};
};

struct WarpMmas {
  bool fenced = false;
  uint32_t issued = 0, completed = 0;
  std::vector<uint32_t> group_ends;  // MMAs issued before each commit
  uint32_t awaited = 0;              // by a blocked wait: that many must be complete
  std::vector<RunningAccumulator> accumulators;
  std::vector<RunningOperand> operands;
};

/// One MMA of a warpgroup; runs when all four warps have issued it.
struct GroupMma {
  Site site{};
  uint64_t descriptor = 0;
  SharedOperand b;
  int tiles = 0;
  bool transposed = false, bf16 = false, accumulate = false;
  uint32_t warps = 0;                                          // that have issued it
  std::array<float*, 4> accumulator{};                         // of each warp's lane 0
  std::array<std::array<std::array<uint32_t, 4>, 32>, 4> a{};  // [warp][lane]
};

struct GroupMmas {
  std::deque<GroupMma> running;
  uint32_t completed = 0;
};

}  // namespace deuce::emulator
