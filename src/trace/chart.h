// SPDX-License-Identifier: Apache-2.0
// Line charts as SVG: points over an axis, with bands of uncertainty and horizontal marks. Used by
// `deuce bench plot` and the benchmark figures; several charts stand in one picture.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trace/svg.h"

namespace deuce::trace {

/// The colour of a series by number, as a class: "c0" .. "c5".
inline constexpr int kChartColours = 6;

struct ChartSeries {
  int colour = 0;
  std::vector<double> x, y;
  std::vector<double> low, high;  // of a band; empty = none
  std::vector<std::string> tips;  // of the points; empty = none
  bool dashed = false, dots = true;
};

/// A horizontal line; its words stand above the chart.
struct ChartMark {
  double y;
  std::string words;
};

struct Chart {
  std::string title, x_label, y_label;
  bool log_x = false;
  std::vector<std::pair<double, std::string>> x_ticks;
  std::vector<ChartSeries> series;
  std::vector<ChartMark> marks;
  std::vector<std::string> absent;  // instead of everything: why there is nothing to draw
};

struct Box {
  double x, y, width, height;  // of the axes; labels lie outside
};

/// Room that labels take outside a box.
inline constexpr double kChartLeft = 52, kChartAbove = 26, kChartBelow = 40;

/// Style sheet of charts, for Svg's constructor.
std::string_view chart_style();

/// Highest value of a chart, bands and marks included.
double chart_top(const Chart& chart);
/// The y axis runs from 0, or the round value below the lowest, to `top` or the next round value; 0
/// = chart_top.
void draw_chart(Svg& svg, const Box& box, const Chart& chart, double top = 0);

/// One entry of a legend; returns the x behind it.
double legend_entry(Svg& svg, double x, double y, int colour, bool dashed, std::string_view words);

}  // namespace deuce::trace
