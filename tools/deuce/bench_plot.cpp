// SPDX-License-Identifier: Apache-2.0
// Groups the points of results into charts of GB/s next to the roof of the same run.
#include "bench_plot.h"

#include <algorithm>
#include <map>
#include <set>

#include "options.h"
#include "output_file.h"
#include "trace/chart.h"
#include "units.h"

namespace deuce::cli {
namespace {

using trace::Box;
using trace::Chart;
using trace::ChartSeries;
using trace::Svg;

constexpr double kWidth = 1120, kTop = 60;
constexpr int kColumns = 3;

/// What varies along the x axis.
enum class Axis { kv_len, q_len, batch };

struct AxisInfo {
  Axis axis;
  const char* label;
  bool log;
  int64_t (*value)(const ResultPoint& point);
};
constexpr AxisInfo kAxes[]{
    {Axis::kv_len, "keys of each request", true, [](const ResultPoint& p) { return p.kv_len(); }},
    {Axis::q_len, "new tokens of each request (q_len)", false,
     [](const ResultPoint& p) { return p.q_len; }},
    {Axis::batch, "requests", true,
     [](const ResultPoint& p) { return static_cast<int64_t>(p.kv_lens.size()); }},
};

/// The axis with the most values; lengths where several have as many.
const AxisInfo& axis_of(const std::vector<ResultFile>& files) {
  const AxisInfo* best = kAxes;
  std::size_t most = 0;
  for (const AxisInfo& info : kAxes) {
    std::set<int64_t> values;
    for (const ResultFile& file : files) {
      for (const ResultPoint& point : file.points) {
        if (point.even()) values.insert(info.value(point));
      }
    }
    if (values.size() > most) {
      most = values.size();
      best = &info;
    }
  }
  return *best;
}

std::string count_text(int64_t value) {
  if (value >= 1 << 20 && value % (1 << 20) == 0) return fmt::format("{}M", value >> 20);
  return value >= 1024 && value % 1024 == 0 ? fmt::format("{}k", value >> 10)
                                            : fmt::format("{}", value);
}

/// What a panel's points have in common.
std::string panel_of(const ResultPoint& point) {
  std::string text = fmt::format(
      "{}:{} x {}, {}, {}", point.q_heads, point.kv_heads, point.head_dim, point.dtype,
      point.page_size == 0 ? "contiguous" : fmt::format("pages of {}", point.page_size));
  if (point.layout != "NHD") text += " " + point.layout;
  if (point.window_left >= 0) text += fmt::format(", window {}", point.window_left);
  return text + (point.mode == "hot" ? ", hot" : "");
}

/// What sets a line of a panel apart from the others.
std::string series_of(const ResultFile& file, const ResultPoint& point, Axis axis) {
  std::string text = file.label;
  if (axis != Axis::batch) text += fmt::format(", batch {}", point.kv_lens.size());
  if (axis != Axis::q_len) text += fmt::format(", q_len {}", point.q_len);
  if (axis != Axis::kv_len) text += fmt::format(", {} keys", count_text(point.kv_len()));
  return text;
}

/// Charts by their titles, lines by their names, both in the order in which they came.
struct Panels {
  std::vector<std::string> titles, names;
  std::map<std::string, std::map<std::string, std::vector<const ResultPoint*>>> points;

  void add(const std::string& title, const std::string& name, const ResultPoint& point) {
    if (std::find(titles.begin(), titles.end(), title) == titles.end()) titles.push_back(title);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    points[title][name].push_back(&point);
  }
};

Panels panels_of(const std::vector<ResultFile>& files, Axis axis) {
  Panels panels;
  for (const ResultFile& file : files) {
    for (const ResultPoint& point : file.points) {
      if (point.even()) panels.add(panel_of(point), series_of(file, point, axis), point);
    }
  }
  return panels;
}

int colour_of(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return static_cast<int>(found - names.begin()) % trace::kChartColours;
}

Chart chart_of(const Panels& panels, const std::string& title, const AxisInfo& axis) {
  Chart chart;
  chart.title = title;
  chart.x_label = axis.label;
  chart.y_label = "GB/s";
  chart.log_x = axis.log;
  std::set<int64_t> ticks;
  for (auto [name, points] : panels.points.at(title)) {
    std::stable_sort(points.begin(), points.end(), [&](const ResultPoint* a, const ResultPoint* b) {
      return axis.value(*a) < axis.value(*b);
    });
    ChartSeries line, roof;
    line.colour = roof.colour = colour_of(panels.names, name);
    roof.dashed = true;
    roof.dots = false;
    for (const ResultPoint* point : points) {
      const int64_t x = axis.value(*point);
      ticks.insert(x);
      line.x.push_back(static_cast<double>(x));
      line.y.push_back(point->bytes_per_s() * 1e-9);
      line.low.push_back(point->kv_bytes / point->interval.high * 1e-9);
      line.high.push_back(point->kv_bytes / point->interval.low * 1e-9);
      line.tips.push_back(fmt::format("{}: {}, {}, {} GB/s", name, count_text(x),
                                      time_text(point->median_s), three_digits(line.y.back())));
      if (point->roof_bytes_per_s == 0) continue;
      roof.x.push_back(static_cast<double>(x));
      roof.y.push_back(point->roof_bytes_per_s * 1e-9);
    }
    if (!roof.x.empty()) chart.series.push_back(std::move(roof));
    chart.series.push_back(std::move(line));
  }
  for (const int64_t tick : ticks)
    chart.x_ticks.emplace_back(static_cast<double>(tick), count_text(tick));
  return chart;
}

/// One line for each file: who measured what the picture shows.
double draw_sources(Svg& svg, const std::vector<ResultFile>& files, double y) {
  for (const ResultFile& file : files) {
    svg.text(24, y,
             fmt::format("{}: measured, {}, commit {}", file.label, file.device, file.commit), "n");
    y += 16;
    if (file.no_result.empty()) continue;
    svg.text(24, y,
             fmt::format("not drawn: {} of its points, without a result", file.no_result.size()),
             "n");
    y += 16;
  }
  return y;
}

struct PlotOptions {
  std::vector<std::string> files;
  std::string out = ".";
};

Result<ExitCode> plot(const PlotOptions& options) {
  std::vector<ResultFile> files;
  for (const std::string& path : options.files) {
    auto file = read_result(path);
    if (!file.ok()) return file.status();
    files.push_back(std::move(file.value()));
  }
  for (const ResultFile& file : files) {
    for (const ResultPoint& point : file.no_result) {
      fmt::print(stderr, "{}: {}: not drawn: {}\n", file.path, point.title(), point.fault);
    }
  }
  int written = 0;
  for (const auto& [name, svg] : {std::pair{"bandwidth.svg", bandwidth_svg(files)},
                                  std::pair{"cases.svg", cases_svg(files)}}) {
    if (svg.empty()) continue;
    if (Status status = save_in(options.out, name, svg); !status.ok()) return status;
    fmt::print("{}/{}\n", options.out, name);
    ++written;
  }
  if (written == 0) return invalid("FILE", "no file holds a point that was timed");
  return ExitCode::ok;
}

}  // namespace

std::string bandwidth_svg(const std::vector<ResultFile>& files) {
  const AxisInfo& axis = axis_of(files);
  const Panels panels = panels_of(files, axis.axis);
  if (panels.titles.empty()) return "";
  Svg svg(kWidth, "Achieved bandwidth", trace::chart_style());
  svg.text(24, 28, "Achieved bandwidth: K and V over time", "h");
  double y = draw_sources(svg, files, 48);
  double x = 24;
  for (const std::string& name : panels.names) {
    if (x + 50 + trace::text_width(name) > kWidth - 20) x = 24, y += 18;
    x = trace::legend_entry(svg, x, y + 4, colour_of(panels.names, name), false, name);
  }
  svg.text(24, y + 22, "dashed: read roof of the same run; band: 95 % interval of the median", "n");
  y += kTop;
  const int columns = std::min<int>(kColumns, static_cast<int>(panels.titles.size()));
  const double pitch = (kWidth - 48) / columns, height = 220;
  double top = 0;
  std::vector<Chart> charts;
  for (const std::string& title : panels.titles) {
    charts.push_back(chart_of(panels, title, axis));
    top = std::max(top, trace::chart_top(charts.back()));
  }
  for (std::size_t i = 0; i < charts.size(); ++i) {
    const int column = static_cast<int>(i) % columns;
    if (i > 0 && column == 0) y += height + trace::kChartAbove + trace::kChartBelow + 24;
    const Box box{24 + trace::kChartLeft + pitch * column, y + 10, pitch - trace::kChartLeft - 16,
                  height};
    trace::draw_chart(svg, box, charts[i], top);
  }
  return svg.finish(y + height + trace::kChartBelow + 16);
}

std::string cases_svg(const std::vector<ResultFile>& files) {
  constexpr double kRow = 22, kEdge = 24;
  struct Row {
    std::string name;
    const ResultPoint* point;
    std::size_t colour;
  };
  std::vector<Row> rows;
  double most = 0, names = 0;
  for (std::size_t f = 0; f < files.size(); ++f) {
    for (const ResultPoint& point : files[f].points) {
      if (point.even()) continue;
      rows.push_back({files[f].label + ": " + point.title(), &point, f % trace::kChartColours});
      names = std::max(names, trace::text_width(rows.back().name));
      most = std::max({most, point.bytes_per_s(), point.roof_bytes_per_s});
    }
  }
  if (rows.empty()) return "";
  Svg svg(kWidth, "Achieved bandwidth of uneven batches", trace::chart_style());
  svg.text(kEdge, 28, "Achieved bandwidth of uneven batches, GB/s; line: read roof of the same run",
           "h");
  double y = draw_sources(svg, files, 48) + 4;
  const double left = kEdge + names + 8, scale = (kWidth - left - 80) / most;
  for (const Row& row : rows) {
    const double bytes = row.point->bytes_per_s(), roof = row.point->roof_bytes_per_s;
    svg.text(left - 8, y + 14, row.name, "r");
    svg.rect(left, y + 2, scale * bytes, kRow - 6, fmt::format("p{}", row.colour));
    if (roof > 0) svg.line(left + scale * roof, y, left + scale * roof, y + kRow - 2, "mark");
    svg.text(left + scale * std::max(bytes, roof) + 6, y + 14, three_digits(bytes * 1e-9), "n");
    y += kRow;
  }
  return svg.finish(y + 16);
}

void add_bench_plot(CLI::App& bench, Action& action) {
  CLI::App& command = *bench.add_subcommand("plot", "Draw results as SVG");
  auto options = std::make_shared<PlotOptions>();
  command.add_option("FILE", options->files, "results of deuce bench --json")
      ->required()
      ->type_name("FILE..");
  command.add_option("--out", options->out, "folder of the pictures (default .)")->type_name("DIR");
  command.footer(
      "bandwidth.svg: sweeps, one chart for each layer, type and cache, one line for each file "
      "and\n"
      "batch; cases.svg: uneven batches. Pictures need nothing else and follow light and dark.");
  command.callback([options, &action] { action = [options] { return plot(*options); }; });
}

}  // namespace deuce::cli
