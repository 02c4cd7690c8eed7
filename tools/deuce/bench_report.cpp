// SPDX-License-Identifier: Apache-2.0
// The table. Its columns stand in the order of the questions: what ran, how long, how near the
// limit.
#include "bench_report.h"

#include "fit.h"
#include "plan/names.h"
#include "units.h"

namespace deuce::cli {
namespace {

constexpr const char* kColumns =
    "{:<20} {:>5} {:>24} {:>5} {:<5} {:>5} {:>9} {:>8} {:>6} {:>5} {:>9}\n";

std::string keys_text(const BenchPoint& point) {
  const std::vector<int32_t>& lens = point.shape.kv_lens;
  if (!point.shape.lengths.empty()) return point.shape.lengths;
  return lens.empty() ? "-" : fmt::format("{}", lens.front());
}

std::string cache_text(const BenchShape& shape) {
  if (shape.page_size == 0) return "row";
  return fmt::format("{}{}", shape.page_size, shape.layout == Layout::hnd ? "h" : "");
}

}  // namespace

std::string bench_header(const MachineFacts& machine) {
  const std::string where =
      machine.gpu ? fmt::format("{}, {} SMs, driver {}, empty kernel {}", machine.gpu->name,
                                machine.gpu->multiprocessors,
                                machine.gpu->driver.empty() ? "unknown" : machine.gpu->driver,
                                time_text(machine.gpu->empty_kernel_s))
                  : fmt::format("{}, {} threads, {}", machine.cpu, machine.threads, machine.simd);
  return fmt::format("deuce {} ({}), {}\n", DEUCE_VERSION, machine.commit, where) +
         fmt::format(kColumns, "preset", "batch", "keys", "page", "type", "q_len", "time", "spread",
                     "GB/s", "roof", "overhead");
}

std::string bench_row(const BenchPoint& point) {
  const BenchShape& shape = point.shape;
  const auto row = [&](std::string_view time, std::string_view spread, std::string_view bandwidth,
                       std::string_view share, std::string_view overhead) {
    return fmt::format(kColumns, shape.preset, shape.kv_lens.size(), keys_text(point),
                       cache_text(shape), name_of(shape.dtype), shape.q_len, time, spread,
                       bandwidth, share, overhead);
  };
  if (!point.check.ok)
    return row("WRONG", "-", "-", "-", "-") + "  " + point.check.first_failure + "\n";
  if (point.samples.sorted_s.empty()) return row("-", "-", "-", "-", "-");
  const Samples& samples = point.samples;
  const double spread = (samples.quantile(0.9) - samples.quantile(0.1)) / 2 / samples.median();
  const bool roof = point.roof > 0;
  return row(time_text(samples.median()),
             fmt::format("{:.1f}%{}", 100 * spread, samples.settled ? "" : "*"),
             three_digits(point.bytes_per_second() * 1e-9),
             roof ? fmt::format("{:.0f}%", 100 * point.share_of_roof()) : "-",
             roof ? (point.overhead_s() < 0 ? "-" + time_text(-point.overhead_s())
                                            : time_text(point.overhead_s()))
                  : "-");
}

std::string bench_fits(const std::vector<BenchPoint>& points) {
  std::string text;
  for (const BandwidthFit& fit : fit_sweeps(points)) {
    text += fmt::format("fit over {} lengths, {}: T0 {}, {} GB/s; worst residual {:.0f} %\n",
                        fit.kv_lens.size(), fit.title,
                        fit.t0_s < 0 ? "-" + time_text(-fit.t0_s) : time_text(fit.t0_s),
                        three_digits(fit.bytes_per_s * 1e-9), 100 * fit.worst_residual);
  }
  return text;
}

std::string bench_legend() {
  return "time: median; spread: half of p90 - p10, * = still noisy when the time was up; GB/s: K "
         "and V of\n"
         "visible keys over time; roof: GB/s over the read roof, read among the samples; "
         "overhead: time\n"
         "beyond bytes / roof. Results were checked against double precision before they were "
         "timed.\n";
}

}  // namespace deuce::cli
