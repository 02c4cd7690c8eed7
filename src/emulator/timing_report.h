// SPDX-License-Identifier: Apache-2.0
// What `deuce check --timing` predicts: steady cycles of a KV block and what they mean in bytes per
// second, for each number of score slots and row replicas, with the band of the table in timing.h.
// Simulated figures from published unit costs. None was measured on a Blackwell by this project.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "emulator/launch.h"
#include "plan/status.h"

namespace deuce::emulator {

/// A figure with all costs low, best and high.
using BandOf = std::array<double, 3>;

struct SlotTiming {
  int score_slots = 1, row_replicas = 1;
  BandOf cycles_per_block{};  // steady state: from the difference of two lengths
  BandOf fixed_cycles{};      // the rest of the shorter run
  double overlap = 0;         // of QK and softmax, as trace/summary.h defines it; best figures
};

struct TimingReport {
  int head_dim = 64, rows = 16;
  std::vector<SlotTiming> slots;  // 1, 2 and 3 slots, then 2 slots with the replicas that fit
  /// K and V bytes of a block over its cycles, for one SM at the clock of timing.h, bytes/s.
  double bytes_per_second(const SlotTiming& timing, int band) const;
  /// 100 * (base / this - 1), at one set of costs.
  double gain_percent(const SlotTiming& timing, int band = 1) const;
  /// The same over ping-pong: two slots, no replicas.
  double gain_over_ping_pong(const SlotTiming& timing, int band) const;
  std::string text() const;
};

/// Times all of them on one block of the grid; protocol and time only, no values.
Result<TimingReport> predict_timing(int head_dim, int rows);

/// One kernel on one problem: `group` query heads of a KV head, q_len tokens, causal.
struct TimedKernel {
  int head_dim = 64, group = 16, q_len = 1, score_slots = 1, row_replicas = 1;
};
/// Its steady cycles and fixed part on one CTA with a whole item. The merge of items that are cut
/// is not in it: the emulator takes its loads one after the other, a GPU does not.
Result<SlotTiming> predict_kernel(const TimedKernel& kernel);

}  // namespace deuce::emulator
