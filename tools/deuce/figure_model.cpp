// SPDX-License-Identifier: Apache-2.0
// From cycles of a CTA to bandwidth of a chip.
#include "figure_model.h"

#include <algorithm>
#include <map>

#include "kernel/blackwell/config.h"

namespace deuce::cli {
namespace {

constexpr int64_t kLongest = 128 << 10;
constexpr int kMostTokens = 8;

double bandwidth(const FigureLayer& layer, const emulator::SlotTiming& timing, int batch,
                 int64_t kv_len, std::size_t band) {
  const int64_t tile = blackwell::Config::kTileRows;
  const int64_t blocks = int64_t{batch} * layer.heads.kv * ((kv_len + tile - 1) / tile);
  const int64_t share =
      (blocks + emulator::kMultiprocessors - 1) / emulator::kMultiprocessors;  // of one CTA
  const double cycles =
      timing.fixed_cycles[band] + static_cast<double>(share) * timing.cycles_per_block[band];
  const double bytes = 2.0 * 2 * layer.head_dim * layer.heads.kv * static_cast<double>(kv_len) *
                       static_cast<double>(batch);
  return bytes / cycles * emulator::kClockHz;
}

Status fill(const FigureLayer& layer, const std::vector<FigurePoint>& points, int batch,
            ModelCurve& curve) {
  std::map<int, emulator::SlotTiming> known;  // by q_len
  for (const FigurePoint& point : points) {
    if (known.find(point.q_len) == known.end()) {
      const auto timing = emulator::predict_kernel({.head_dim = layer.head_dim,
                                                    .group = layer.heads.q / layer.heads.kv,
                                                    .q_len = point.q_len,
                                                    .score_slots = curve.score_slots});
      if (!timing.ok()) return timing.status();
      known[point.q_len] = timing.value();
    }
    emulator::BandOf rates{};
    for (std::size_t band = 0; band < rates.size(); ++band)
      rates[band] = bandwidth(layer, known[point.q_len], batch, point.kv_len, band);
    curve.bytes_per_s.push_back(rates);
  }
  return {};
}

}  // namespace

std::vector<FigurePoint> figure_points(Figure figure) {
  std::vector<FigurePoint> points;
  if (figure == Figure::kv_len) {
    for (int64_t length = 1 << 10; length <= kLongest; length *= 2) points.push_back({length, 1});
  } else {
    for (int tokens = 1; tokens <= kMostTokens; ++tokens) points.push_back({kLongest, tokens});
  }
  return points;
}

GainBand ModelLayer::gain(std::size_t point) const {
  std::array<double, 3> sets{};
  for (std::size_t band = 0; band < sets.size(); ++band) {
    sets[band] = 100 * (ping_pong.bytes_per_s[point][band] / base.bytes_per_s[point][band] - 1);
  }
  const auto [low, high] = std::minmax_element(sets.begin(), sets.end());
  return {.best = sets[1], .low = *low, .high = *high};
}

Result<std::vector<ModelLayer>> simulate(Figure figure, int batch) {
  const std::vector<FigurePoint> points = figure_points(figure);
  std::vector<ModelLayer> layers;
  for (const FigureLayer& layer : kFigureLayers) {
    ModelLayer model{.layer = layer, .base = {.score_slots = 1}, .ping_pong = {.score_slots = 2}};
    Status status = fill(layer, points, batch, model.base);
    if (status.ok()) status = fill(layer, points, batch, model.ping_pong);
    if (!status.ok()) return status;
    layers.push_back(std::move(model));
  }
  return layers;
}

}  // namespace deuce::cli
