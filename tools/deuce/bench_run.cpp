// SPDX-License-Identifier: Apache-2.0
// The loop over points.
#include "bench_run.h"

#include <algorithm>

#include "interrupt.h"
#include "options.h"
#include "progress.h"

namespace deuce::cli {
namespace {

/// "[#####-----] 3/12 llama3-8b azure_code/b8/s4945: timing"
std::string progress_text(std::size_t done, std::size_t all, const BenchShape& shape,
                          std::string_view what) {
  constexpr std::size_t kWidth = 20;
  std::string bar(kWidth * done / all, '#');
  bar.resize(kWidth, '-');
  const std::string lengths =
      shape.lengths.empty() ? fmt::format("{} x {}", shape.kv_lens.size(), shape.kv_lens.front())
                            : shape.lengths;
  return fmt::format("[{}] {}/{} {} {}: {}", bar, done + 1, all, shape.preset, lengths, what);
}

}  // namespace

void add_sampling_options(CLI::App& command, BenchSettings& settings) {
  text_option(command, "--seconds", "X", "longest sampling of a point (default 5)",
              [&settings](const std::string& text) {
                const Result<double> seconds = parse_number(text);
                if (!seconds.ok()) return seconds.status();
                if (seconds.value() <= 0)
                  return invalid("", "{} is not above 0", io::quoted_name(text));
                settings.limits.longest_s = seconds.value();
                settings.limits.shortest_s = std::min(settings.limits.shortest_s, seconds.value());
                return Status{};
              });
  text_option(command, "--noise", "X",
              "half of the median's 95 % interval that will do, percent (default 1)",
              [&settings](const std::string& text) {
                const Result<double> percent = parse_number(text);
                if (!percent.ok()) return percent.status();
                if (percent.value() < 0)
                  return invalid("", "{} is negative", io::quoted_name(text));
                settings.limits.noise = percent.value() / 100;
                return Status{};
              });
  integer_option(command, "--seed", settings.seed, 0, "of tensors and page ids (default 1)",
                 std::numeric_limits<int64_t>::max());
}

bool BenchRun::wrong() const {
  return std::any_of(points.begin(), points.end(),
                     [](const BenchPoint& point) { return !point.check.ok; });
}

Status measure_all(const std::vector<BenchShape>& shapes, const BenchSettings& settings,
                   Device& device, BenchRun& run,
                   const std::function<void(const BenchPoint&)>& measured) {
  Progress progress;
  for (std::size_t i = 0; i < shapes.size() && !interrupted(); ++i) {
    const auto stage = [&](std::string_view what) {
      progress.show(progress_text(i, shapes.size(), shapes[i], what));
    };
    Result<BenchPoint> point = measure_point(shapes[i], settings, device, stage);
    progress.clear();
    if (!point.ok()) return point.status();
    if (point.value().samples.sorted_s.empty() && point.value().check.ok)
      break;  // interrupted before the first sample
    run.points.push_back(std::move(point.value()));
    measured(run.points.back());
  }
  return {};
}

}  // namespace deuce::cli
