// SPDX-License-Identifier: Apache-2.0
// What the timing model says about the Hopper kernel: cycles of one CTA of an H200, simulated.
// Used by `deuce check --kernel hopper --timing` and by the table of predictions against measured
// launches (bench/gpu/hopper_predicted.cpp).
#pragma once

#include <array>
#include <string>

#include "emulator/launch.h"
#include "plan/status.h"

namespace deuce::emulator {

/// The work of one CTA: so many requests of one KV head, so many KV tiles each, none of them cut.
struct HopperTimingCase {
  int head_dim = 128;
  bool e4m3 = false;  // cache; else bf16
  int rows = 4;       // query heads of the KV head
  int page_size = 0;  // 0 = contiguous
  int requests = 1, tiles = 48;
  int score_slots = 0;  // 0: as a plan chooses
};

/// UNSUPPORTED or INVALID_ARGUMENT when the kernel does not take the case. `recorder` takes the
/// timeline of the CTA.
Result<double> predict_hopper_cycles(const HopperTimingCase& timed, Band band,
                                     const FittedCosts* fitted = nullptr,
                                     trace::Recorder* recorder = nullptr);

struct HopperTimingReport {
  HopperTimingCase timed;
  std::array<double, 3> cycles_per_tile{};  // low, best and high costs: from two lengths
  std::array<double, 3> fixed_cycles{};     // the rest of the shorter run
  std::string text() const;
};
Result<HopperTimingReport> predict_hopper_timing(const HopperTimingCase& timed);

}  // namespace deuce::emulator
