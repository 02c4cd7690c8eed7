// SPDX-License-Identifier: Apache-2.0
// The article's figures 9 and 10 as a picture: what is simulated and what is measured in rows of
// their own, each under its name, the published gains as marks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench_result.h"
#include "figure_model.h"

namespace deuce::cli {

struct FigureData {
  Figure figure = Figure::kv_len;
  int batch = 32;
  std::vector<ModelLayer> model;
  std::optional<ResultFile> measured;
  std::string absent;  // why nothing was measured
  bool wrong = false;  // a measured result lay outside the tolerance
};

/// Said wherever measured numbers of the base kernel stand without those of ping-pong.
inline constexpr const char* kBaseOnly =
    "base only: a second score slot costs the Hopper kernel time (docs/hopper.md)";

/// Empty, or what keeps every point of a result out of this figure.
std::string why_none_belongs(const FigureData& data);

/// The measured points that belong to the figure; they point into `data`.
std::vector<const ResultPoint*> measured_points(const FigureData& data);
/// The one of a layer, or nullptr.
const ResultPoint* measured_point(const std::vector<const ResultPoint*>& points,
                                  const FigureLayer& layer, const FigurePoint& point);

std::string figure_svg(const FigureData& data);

}  // namespace deuce::cli
