// SPDX-License-Identifier: Apache-2.0
// Which points of a result belong to a figure: those measured as the figure measures itself.
#include <algorithm>
#include <functional>

#include "figure_picture.h"

namespace deuce::cli {
namespace {

/// One thing that a point of the figure has; `found` tells what another point has instead.
struct Demand {
  std::function<bool(const ResultPoint&)> met;
  std::function<std::string(const ResultPoint&)> found;
  std::string wanted;
};

std::string layer_text(const ResultPoint& point) {
  return fmt::format("{}:{} heads of dim {}", point.q_heads, point.kv_heads, point.head_dim);
}

bool is_layer(const ResultPoint& point, const FigureLayer& layer) {
  return point.q_heads == layer.heads.q && point.kv_heads == layer.heads.kv &&
         point.head_dim == layer.head_dim;
}

bool is_at(const ResultPoint& point, const FigurePoint& at) {
  return point.q_len == at.q_len && point.kv_len() == at.kv_len;
}

bool is_in(const ResultPoint& point, Figure figure) {
  const std::vector<FigurePoint> points = figure_points(figure);
  return std::any_of(points.begin(), points.end(),
                     [&](const FigurePoint& at) { return is_at(point, at); });
}

std::string name_of(Figure figure) { return fmt::format("figure{}", static_cast<int>(figure)); }

std::vector<Demand> demands(int batch) {
  const auto batch_of = [](const ResultPoint& p) { return static_cast<int>(p.kv_lens.size()); };
  return {
      {[](const ResultPoint& p) { return p.backend == "hopper"; },
       [](const ResultPoint& p) { return "backend " + p.backend; }, "hopper"},
      {[](const ResultPoint& p) { return p.dtype == "bf16"; },
       [](const ResultPoint& p) { return "type " + p.dtype; }, "bf16"},
      {[](const ResultPoint& p) { return p.page_size == 0 && p.layout == "NHD"; },
       [](const ResultPoint& p) { return fmt::format("pages of {}, {}", p.page_size, p.layout); },
       "a contiguous cache, NHD"},
      {[](const ResultPoint& p) { return p.mode == "rotated"; },
       [](const ResultPoint& p) { return "mode " + p.mode; }, "rotated"},
      {[](const ResultPoint& p) { return p.window_left < 0 && !p.sinks && p.softcap == 0; },
       [](const ResultPoint&) { return std::string("a window, sinks or softcap"); }, "none"},
      {[](const ResultPoint& p) {
         return std::any_of(kFigureLayers.begin(), kFigureLayers.end(),
                            [&](const FigureLayer& layer) { return is_layer(p, layer); });
       },
       layer_text, "a layer of the figure"},
      {[](const ResultPoint& p) { return p.even(); },
       [](const ResultPoint&) { return std::string("uneven lengths"); }, "even ones"},
      {[batch_of, batch](const ResultPoint& p) { return batch_of(p) == batch; },
       [batch_of](const ResultPoint& p) { return fmt::format("batch {}", batch_of(p)); },
       fmt::format("{} (--batch)", batch)},
  };
}

}  // namespace

std::string why_none_belongs(const FigureData& data) {
  std::vector<const ResultPoint*> left;
  for (const ResultPoint& point : data.measured->points) left.push_back(&point);
  if (left.empty()) return "it holds no time";
  for (const Demand& demand : demands(data.batch)) {
    const ResultPoint& first = *left.front();
    std::erase_if(left, [&](const ResultPoint* point) { return !demand.met(*point); });
    if (left.empty())
      return fmt::format("it has {}, the figure {}", demand.found(first), demand.wanted);
  }
  // Both figures hold the longest length at one token: that alone makes a result of neither.
  const Figure other = data.figure == Figure::kv_len ? Figure::q_len : Figure::kv_len;
  const auto own = [&](const ResultPoint* p) {
    return is_in(*p, data.figure) && !is_in(*p, other);
  };
  const auto foreign = [&](const ResultPoint* p) {
    return is_in(*p, other) && !is_in(*p, data.figure);
  };
  if (std::any_of(left.begin(), left.end(), own)) return "";
  if (std::any_of(left.begin(), left.end(), foreign)) return "it is a result of " + name_of(other);
  for (const ResultPoint* point : left) {
    if (is_in(*point, data.figure)) return "";
  }
  return fmt::format("it has {} keys with q_len {}, which the figure does not show",
                     left.front()->kv_len(), left.front()->q_len);
}

std::vector<const ResultPoint*> measured_points(const FigureData& data) {
  std::vector<const ResultPoint*> points;
  if (!data.measured) return points;
  const std::vector<Demand> all = demands(data.batch);
  for (const ResultPoint& one : data.measured->points) {
    if (std::all_of(all.begin(), all.end(), [&](const Demand& demand) { return demand.met(one); }))
      points.push_back(&one);
  }
  return points;
}

const ResultPoint* measured_point(const std::vector<const ResultPoint*>& points,
                                  const FigureLayer& layer, const FigurePoint& point) {
  const auto found = std::find_if(points.begin(), points.end(), [&](const ResultPoint* one) {
    return is_layer(*one, layer) && is_at(*one, point);
  });
  return found == points.end() ? nullptr : *found;
}

}  // namespace deuce::cli
