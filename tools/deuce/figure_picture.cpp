// SPDX-License-Identifier: Apache-2.0
// Three rows of charts, one column for each layer.
#include "figure_picture.h"

#include <algorithm>

#include "trace/chart.h"
#include "units.h"

namespace deuce::cli {
namespace {

using trace::Box;
using trace::Chart;
using trace::ChartSeries;
using trace::Svg;

constexpr double kWidth = 1280, kEdge = 20, kBandwidth = 200, kGain = 120;
constexpr int kBase = 0, kPingPong = 1, kMeasured = 3, kRoof = 5;  // colours
constexpr double kTera = 1e-12;

std::string length_text(int64_t keys) {
  return keys % 1024 == 0 ? fmt::format("{}k", keys / 1024) : fmt::format("{}", keys);
}

double x_of(Figure figure, const FigurePoint& point) {
  return figure == Figure::kv_len ? static_cast<double>(point.kv_len) : point.q_len;
}

std::string x_text(Figure figure, const FigurePoint& point) {
  return figure == Figure::kv_len ? length_text(point.kv_len) : fmt::format("{}", point.q_len);
}

/// Title, axes and ticks that all charts of a column share.
Chart empty_chart(Figure figure, const FigureLayer& layer, const char* unit) {
  Chart chart;
  chart.title =
      fmt::format("{}:{} heads, head dim {}", layer.heads.q, layer.heads.kv, layer.head_dim);
  chart.x_label = figure == Figure::kv_len ? "keys of each request" : "new tokens of each request";
  chart.y_label = unit;
  chart.log_x = figure == Figure::kv_len;
  for (const FigurePoint& point : figure_points(figure))
    chart.x_ticks.emplace_back(x_of(figure, point), x_text(figure, point));
  return chart;
}

ChartSeries curve_series(Figure figure, const ModelCurve& curve, int colour, const char* name) {
  ChartSeries series;
  series.colour = colour;
  const std::vector<FigurePoint> points = figure_points(figure);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const emulator::BandOf& rates = curve.bytes_per_s[i];
    series.x.push_back(x_of(figure, points[i]));
    series.y.push_back(rates[1] * kTera);
    series.low.push_back(rates[2] * kTera);  // high costs
    series.high.push_back(rates[0] * kTera);
    series.tips.push_back(fmt::format("{}, {}: simulated {:.2f} TB/s ({:.2f} to {:.2f})", name,
                                      x_text(figure, points[i]), series.y.back(), series.low.back(),
                                      series.high.back()));
  }
  return series;
}

Chart simulated_chart(const FigureData& data, const ModelLayer& model) {
  Chart chart = empty_chart(data.figure, model.layer, "TB/s");
  chart.series.push_back(curve_series(data.figure, model.base, kBase, "base"));
  chart.series.push_back(curve_series(data.figure, model.ping_pong, kPingPong, "ping-pong"));
  return chart;
}

Chart gain_chart(const FigureData& data, const ModelLayer& model) {
  Chart chart = empty_chart(data.figure, model.layer, "gain, %");
  chart.title.clear();
  ChartSeries gain;
  gain.colour = kPingPong;
  const std::vector<FigurePoint> points = figure_points(data.figure);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const GainBand band = model.gain(i);
    gain.x.push_back(x_of(data.figure, points[i]));
    gain.y.push_back(band.best);
    gain.low.push_back(band.low);
    gain.high.push_back(band.high);
    gain.tips.push_back(fmt::format("{}: simulated gain {:.1f} % ({:.1f} to {:.1f})",
                                    x_text(data.figure, points[i]), band.best, band.low,
                                    band.high));
  }
  chart.series.push_back(std::move(gain));
  chart.marks.push_back({model.layer.published_percent,
                         fmt::format("published: up to {:.1f} %", model.layer.published_percent)});
  return chart;
}

/// A sentence in lines of about `width` letters.
std::vector<std::string> wrapped(const std::string& words, std::size_t width) {
  std::vector<std::string> lines{""};
  for (std::size_t begin = 0; begin < words.size();) {
    const std::size_t end = std::min(words.find(' ', begin), words.size());
    const std::string word = words.substr(begin, end - begin);
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width)
      lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return lines;
}

Chart measured_chart(const FigureData& data, const FigureLayer& layer) {
  Chart chart = empty_chart(data.figure, layer, "TB/s");
  ChartSeries line, roof;
  line.colour = kMeasured;
  roof.colour = kRoof;
  roof.dashed = true;
  roof.dots = false;
  const std::vector<const ResultPoint*> measured = measured_points(data);
  for (const FigurePoint& point : figure_points(data.figure)) {
    const ResultPoint* found = measured_point(measured, layer, point);
    if (found == nullptr) continue;
    line.x.push_back(x_of(data.figure, point));
    line.y.push_back(found->bytes_per_s() * kTera);
    line.low.push_back(found->kv_bytes / found->interval.high * kTera);
    line.high.push_back(found->kv_bytes / found->interval.low * kTera);
    line.tips.push_back(fmt::format("{}: measured {:.2f} TB/s, {}", x_text(data.figure, point),
                                    line.y.back(), time_text(found->median_s)));
    if (found->roof_bytes_per_s == 0) continue;
    roof.x.push_back(line.x.back());
    roof.y.push_back(found->roof_bytes_per_s * kTera);
  }
  if (line.x.empty()) {
    chart.absent = wrapped(
        "not measured: " + (data.absent.empty() ? "the result holds no such point" : data.absent),
        38);
  }
  if (!roof.x.empty()) chart.series.push_back(std::move(roof));
  if (!line.x.empty()) chart.series.push_back(std::move(line));
  return chart;
}

/// A row of charts with one scale; returns the y below it.
double draw_row(Svg& svg, double y, double height, const std::vector<Chart>& charts) {
  const double pitch = (kWidth - 2 * kEdge) / static_cast<double>(charts.size());
  double top = 0;
  for (const Chart& chart : charts) top = std::max(top, trace::chart_top(chart));
  const double above = charts.front().title.empty() ? 22 : 2 + trace::kChartAbove + 12;
  for (std::size_t i = 0; i < charts.size(); ++i) {
    const Box box{kEdge + trace::kChartLeft + pitch * static_cast<double>(i), y + above,
                  pitch - trace::kChartLeft - 12, height};
    trace::draw_chart(svg, box, charts[i], top);
  }
  return y + above + height + trace::kChartBelow;
}

void draw_head(Svg& svg, const FigureData& data) {
  svg.text(kEdge, 28,
           data.figure == Figure::kv_len
               ? "Figure 9: achieved bandwidth over the length of the cache"
               : "Figure 10: achieved bandwidth over the number of new tokens, 128k keys",
           "h");
  svg.text(kEdge, 48,
           fmt::format("bf16, contiguous cache, {} requests{}; bandwidth = bytes of K and V over "
                       "time",
                       data.batch, data.figure == Figure::kv_len ? " of one new token" : ""),
           "n");
}

double draw_simulated(Svg& svg, const FigureData& data, double y) {
  svg.text(kEdge, y, "SIMULATED: a B200 by the timing model of the emulator; never run on one",
           "b");
  svg.text(kEdge, y + 16,
           fmt::format("time = fixed part + KV blocks of a CTA x steady cycles, {} SMs at {:.3f} "
                       "GHz, launch and merge not included; band: all costs low to all costs high",
                       emulator::kMultiprocessors, emulator::kClockHz * 1e-9),
           "n");
  const double x = trace::legend_entry(svg, kEdge, y + 36, kBase, false, "base (1 score slot)");
  trace::legend_entry(svg, x, y + 36, kPingPong, false, "ping-pong (2 score slots)");
  y += 50;
  std::vector<Chart> bandwidths, gains;
  for (const ModelLayer& model : data.model) {
    bandwidths.push_back(simulated_chart(data, model));
    gains.push_back(gain_chart(data, model));
  }
  y = draw_row(svg, y, kBandwidth, bandwidths) + 14;
  svg.text(kEdge, y, "SIMULATED gain of ping-pong over base, beside the PUBLISHED one", "b");
  svg.text(kEdge, y + 16, fmt::format("published: {}", kPublished), "n");
  return draw_row(svg, y + 26, kGain, gains) + 14;
}

double draw_measured(Svg& svg, const FigureData& data, double y) {
  const bool there = data.measured.has_value();
  svg.text(
      kEdge, y,
      there ? fmt::format("MEASURED: {}, commit {}", data.measured->device, data.measured->commit)
            : "MEASURED: absent",
      "b");
  svg.text(kEdge, y + 16, kBaseOnly, "n");
  const double x = trace::legend_entry(svg, kEdge, y + 36, kMeasured, false, "base");
  trace::legend_entry(svg, x, y + 36, kRoof, true, "read roof of the same bytes, same run");
  std::vector<Chart> charts;
  for (const FigureLayer& layer : kFigureLayers) charts.push_back(measured_chart(data, layer));
  return draw_row(svg, y + 50, kBandwidth, charts);
}

}  // namespace

std::string figure_svg(const FigureData& data) {
  Svg svg(kWidth,
          data.figure == Figure::kv_len ? "Bandwidth over cache length" : "Bandwidth over q_len",
          trace::chart_style());
  draw_head(svg, data);
  const double y = draw_simulated(svg, data, 80);
  return svg.finish(draw_measured(svg, data, y) + 8);
}

}  // namespace deuce::cli
