// SPDX-License-Identifier: Apache-2.0
// Groups the points of a run and fits a straight line to each.
#include "fit.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "plan/names.h"

namespace deuce::cli {
namespace {

constexpr std::size_t kFewestPoints = 3;

bool is_even(const std::vector<int32_t>& lens) {
  return std::all_of(lens.begin(), lens.end(), [&](int32_t one) { return one == lens.front(); });
}

std::string title_of(const BenchPoint& point) {
  const BenchShape& shape = point.shape;
  return fmt::format(
      "{}, batch {}, q_len {}, {}, {}{}", shape.preset, shape.kv_lens.size(), shape.q_len,
      name_of(shape.dtype),
      shape.page_size == 0 ? "contiguous" : fmt::format("pages of {}", shape.page_size),
      shape.layout == Layout::hnd ? " HND" : "");
}

}  // namespace

BandwidthFit fit_line(const std::vector<TimePoint>& points) {
  // Minimises sum (a + b x - t)^2 / t^2: a line fit with weights 1 / t^2.
  double w = 0, wx = 0, wxx = 0, wt = 0, wxt = 0;
  for (const TimePoint& point : points) {
    const double weight = 1 / (point.seconds * point.seconds);
    w += weight;
    wx += weight * point.bytes;
    wxx += weight * point.bytes * point.bytes;
    wt += weight * point.seconds;
    wxt += weight * point.bytes * point.seconds;
  }
  BandwidthFit fit;
  const double determinant = w * wxx - wx * wx;
  const double slope = determinant > 0 ? (w * wxt - wx * wt) / determinant : 0;
  fit.t0_s = w > 0 ? (wt - slope * wx) / w : 0;
  fit.bytes_per_s = slope > 0 ? 1 / slope : 0;
  for (const TimePoint& point : points) {
    const double predicted = fit.t0_s + slope * point.bytes;
    fit.worst_residual = std::max(fit.worst_residual, std::abs(predicted / point.seconds - 1));
  }
  return fit;
}

std::vector<BandwidthFit> fit_sweeps(const std::vector<BenchPoint>& points) {
  struct Sweep {
    std::vector<TimePoint> points;
    std::vector<int64_t> kv_lens;
  };
  std::vector<std::string> order;  // titles as they came
  std::map<std::string, Sweep> sweeps;
  for (const BenchPoint& point : points) {
    if (point.samples.sorted_s.empty() || !is_even(point.shape.kv_lens)) continue;
    const std::string title = title_of(point);
    Sweep& sweep = sweeps[title];
    if (sweep.points.empty()) order.push_back(title);
    const int64_t length = point.shape.kv_lens.front();
    if (std::find(sweep.kv_lens.begin(), sweep.kv_lens.end(), length) != sweep.kv_lens.end())
      continue;
    sweep.kv_lens.push_back(length);
    sweep.points.push_back({static_cast<double>(point.traffic.kv_bytes), point.samples.median()});
  }
  std::vector<BandwidthFit> fits;
  for (const std::string& title : order) {
    const Sweep& sweep = sweeps[title];
    if (sweep.points.size() < kFewestPoints) continue;
    fits.push_back(fit_line(sweep.points));
    fits.back().title = title;
    fits.back().kv_lens = sweep.kv_lens;
  }
  return fits;
}

}  // namespace deuce::cli
