// SPDX-License-Identifier: Apache-2.0
// The article's two benchmark figures as numbers: which layers, what was published, and what the
// timing model says a B200 would reach. Everything of the model is simulated.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "axes.h"
#include "emulator/timing_report.h"

namespace deuce::cli {

/// One layer of the figures and the largest published gain of ping-pong over base.
struct FigureLayer {
  Heads heads;
  int head_dim;
  double published_percent;
};
inline constexpr std::array kFigureLayers{
    FigureLayer{{16, 1}, 64, 16.0}, FigureLayer{{16, 1}, 128, 9.3}, FigureLayer{{16, 2}, 64, 15.6},
    FigureLayer{{16, 2}, 128, 14.9}};
inline constexpr const char* kPublished =
    "Colfax Research, \"Optimization diaries: S/P ping-pong for FlashAttention-4 decode\", figures "
    "9 "
    "and 10 (B200; gains as its text states them)";

enum class Figure { kv_len = 9, q_len = 10 };

/// What a figure varies: lengths at one token, or tokens at one length.
struct FigurePoint {
  int64_t kv_len = 0;
  int q_len = 1;
};
std::vector<FigurePoint> figure_points(Figure figure);

/// Achieved bandwidth at every point of a figure, with all costs low, best and high.
struct ModelCurve {
  int score_slots = 1;
  std::vector<emulator::BandOf> bytes_per_s = {};
};
/// Percent by which ping-pong lies above base: with best costs, and the least and most of the three
/// sets. More costs may well mean less or more gain, so the sets are in no order.
struct GainBand {
  double best = 0, low = 0, high = 0;
};
struct ModelLayer {
  FigureLayer layer;
  ModelCurve base, ping_pong;
  GainBand gain(std::size_t point) const;
};

/// `batch` even requests over all SMs of the chip: KV blocks are dealt out evenly, every CTA takes
/// its share at steady cycles, and its fixed part comes on top. Launch and merge are not in it.
Result<std::vector<ModelLayer>> simulate(Figure figure, int batch);

}  // namespace deuce::cli
