// SPDX-License-Identifier: Apache-2.0
// Axes, lines, bands and marks of chart.h.
#include "trace/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace deuce::trace {
namespace {

constexpr std::string_view kChartStyle = R"(
.g{stroke:#e3e6ec;stroke-width:1}.mark{stroke:#5b6475;stroke-width:1.2;stroke-dasharray:2 3}
.d{stroke-dasharray:5 4}.r{font-size:11px;text-anchor:end;fill:#5b6475}
.c0,.c1,.c2,.c3,.c4,.c5{fill:none;stroke-width:2}
.c0{stroke:#1a67d2}.c1{stroke:#c25e00}.c2{stroke:#17803a}.c3{stroke:#8a34d6}.c4{stroke:#c5221f}.c5{stroke:#0d7a86}
.p0{fill:#1a67d2}.p1{fill:#c25e00}.p2{fill:#17803a}.p3{fill:#8a34d6}.p4{fill:#c5221f}.p5{fill:#0d7a86}
.b0,.b1,.b2,.b3,.b4,.b5{fill-opacity:.16}
.b0{fill:#1a67d2}.b1{fill:#c25e00}.b2{fill:#17803a}.b3{fill:#8a34d6}.b4{fill:#c5221f}.b5{fill:#0d7a86}
@media(prefers-color-scheme:dark){.g{stroke:#2a303b}.mark{stroke:#9aa4b5}.r{fill:#9aa4b5}
.c0{stroke:#8ab4f8}.c1{stroke:#fbb26a}.c2{stroke:#86cf96}.c3{stroke:#c9a5f2}.c4{stroke:#f28b82}.c5{stroke:#78d9e3}
.p0{fill:#8ab4f8}.p1{fill:#fbb26a}.p2{fill:#86cf96}.p3{fill:#c9a5f2}.p4{fill:#f28b82}.p5{fill:#78d9e3}
.b0{fill:#8ab4f8}.b1{fill:#fbb26a}.b2{fill:#86cf96}.b3{fill:#c9a5f2}.b4{fill:#f28b82}.b5{fill:#78d9e3}}
)";

/// 1, 2 or 5 times a power of ten: about `wanted` steps up to `top`.
double round_step(double top, int wanted) {
  const double rough = top / wanted;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * 0.999) return factor * power;
  }
  return 10 * power;
}

/// From values to places in the box.
class Axes {
 public:
  Axes(const Box& box, const Chart& chart, double bottom, double top)
      : box_(box), log_(chart.log_x), bottom_(bottom), top_(top) {
    for (const ChartSeries& series : chart.series) {
      for (const double x : series.x) widen(x);
    }
    for (const auto& tick : chart.x_ticks) widen(tick.first);
    if (high_ <= low_) high_ = low_ + 1;
  }
  double x(double value) const {
    // A margin on both sides keeps the outer points off the frame.
    constexpr double kMargin = 10;
    return box_.x + kMargin + (box_.width - 2 * kMargin) * (scaled(value) - low_) / (high_ - low_);
  }
  double y(double value) const { return box_.y + box_.height * (top_ - value) / (top_ - bottom_); }
  double bottom() const { return bottom_; }
  double top() const { return top_; }

 private:
  double scaled(double value) const { return log_ ? std::log2(std::max(value, 1e-12)) : value; }
  void widen(double value) {
    low_ = std::min(low_, scaled(value));
    high_ = std::max(high_, scaled(value));
  }
  Box box_;
  bool log_;
  double bottom_, top_, low_ = 1e300, high_ = -1e300;
};

void draw_grid(Svg& svg, const Box& box, const Chart& chart, const Axes& axes, double step) {
  const int lines = static_cast<int>((axes.top() - axes.bottom()) / step + 1.5);
  for (int i = 0; i < lines; ++i) {
    const double value = axes.bottom() + i * step;
    const double y = axes.y(value);
    svg.line(box.x, y, box.x + box.width, y, "g");
    svg.text(box.x - 6, y + 4, fmt::format("{:g}", value), "r");
  }
  double free_from = box.x - 20;  // labels that would touch the one before are left out
  for (const auto& [value, words] : chart.x_ticks) {
    const double x = axes.x(value), half = text_width(words) / 2;
    svg.line(x, box.y + box.height, x, box.y + box.height + 4, "x");
    if (x - half < free_from) continue;
    svg.text(x, box.y + box.height + 16, words, "m");
    free_from = x + half + 3;
  }
  svg.line(box.x, box.y + box.height, box.x + box.width, box.y + box.height, "x");
  svg.text(box.x + box.width / 2, box.y + box.height + 32, chart.x_label, "m");
  svg.text(box.x - kChartLeft + 8, box.y - 8, chart.y_label, "n");
}

/// Lowest value of a chart, bands included.
double chart_bottom(const Chart& chart) {
  double bottom = 1e300;
  for (const ChartSeries& series : chart.series) {
    for (const double y : series.y) bottom = std::min(bottom, y);
    for (const double y : series.low) bottom = std::min(bottom, y);
  }
  return bottom;
}

void draw_series(Svg& svg, const Axes& axes, const ChartSeries& series) {
  std::vector<Point> line, band;
  for (std::size_t i = 0; i < series.x.size(); ++i)
    line.push_back({axes.x(series.x[i]), axes.y(series.y[i])});
  if (!series.low.empty()) {
    for (std::size_t i = 0; i < series.x.size(); ++i)
      band.push_back({axes.x(series.x[i]), axes.y(series.high[i])});
    for (std::size_t i = series.x.size(); i-- > 0;)
      band.push_back({axes.x(series.x[i]), axes.y(series.low[i])});
    svg.polygon(band, fmt::format("b{}", series.colour));
  }
  if (line.size() == 1 && !series.dots) {  // a line of one point is none
    constexpr double kHalf = 9;
    line = {{line[0].x - kHalf, line[0].y}, {line[0].x + kHalf, line[0].y}};
  }
  svg.polyline(line, fmt::format("c{}{}", series.colour, series.dashed ? " d" : ""));
  if (!series.dots) return;
  for (std::size_t i = 0; i < line.size(); ++i) {
    svg.dot(line[i], 2.8, fmt::format("p{}", series.colour),
            series.tips.empty() ? std::string() : series.tips[i]);
  }
}

}  // namespace

std::string_view chart_style() { return kChartStyle; }

double chart_top(const Chart& chart) {
  double top = 0;
  for (const ChartSeries& series : chart.series) {
    for (const double y : series.y) top = std::max(top, y);
    for (const double y : series.high) top = std::max(top, y);
  }
  for (const ChartMark& mark : chart.marks) top = std::max(top, mark.y);
  return top;
}

void draw_chart(Svg& svg, const Box& box, const Chart& chart, double top) {
  svg.text(box.x - kChartLeft + 8, box.y - kChartAbove, chart.title, "b");
  if (!chart.absent.empty()) {
    svg.rect(box.x, box.y, box.width, box.height, "empty");
    double y = box.y + box.height / 2 - 8 * static_cast<double>(chart.absent.size() - 1);
    for (const std::string& words : chart.absent) {
      svg.text(box.x + box.width / 2, y, words, "m");
      y += 16;
    }
    return;
  }
  const double highest = std::max(top > 0 ? top : chart_top(chart), 1e-12);
  const double step = round_step(highest, 5);
  const double end = step * std::ceil(highest / step * 1.02);
  const double start = step * std::floor(std::min(0.0, chart_bottom(chart)) / step);
  const Axes axes(box, chart, start, end);
  draw_grid(svg, box, chart, axes, step);
  for (const ChartMark& mark : chart.marks) {
    svg.line(box.x, axes.y(mark.y), box.x + box.width, axes.y(mark.y), "mark");
  }
  // Their words stand above the box, where no line runs through them.
  double words_x = box.x + box.width;
  for (const ChartMark& mark : chart.marks) {
    svg.text(words_x, box.y - 8, mark.words, "r");
    const double sample = words_x - text_width(mark.words) - 6;
    svg.line(sample - 24, box.y - 12, sample, box.y - 12, "mark");
    words_x = sample - 40;
  }
  for (const ChartSeries& series : chart.series) draw_series(svg, axes, series);
}

double legend_entry(Svg& svg, double x, double y, int colour, bool dashed, std::string_view words) {
  svg.line(x, y - 4, x + 24, y - 4, fmt::format("c{}{}", colour, dashed ? " d" : ""));
  svg.text(x + 30, y, words, "s");
  return x + 50 + text_width(words);
}

}  // namespace deuce::trace
