// SPDX-License-Identifier: Apache-2.0
// Build, check, time: in this order, so that no time is ever printed of a wrong result.
#include "bench_point.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "interrupt.h"
#include "plan.h"

namespace deuce::cli {
namespace {

/// Passes of the read roof among the samples: on a shared machine it moves while they are taken.
class RoofPasses {
 public:
  explicit RoofPasses(Device& device) : device_(device) {
    device_.roof_pass();  // wakes the threads
  }

  /// Returns whether it took one.
  bool take_if_due() {
    if (!rates_.empty() && Clock::now() - last_ < kDistance) return false;
    rates_.push_back(device_.roof_pass());
    last_ = Clock::now();
    return true;
  }

  double median() {
    std::sort(rates_.begin(), rates_.end());
    return rates_.empty() ? 0 : rates_[rates_.size() / 2];
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kDistance = std::chrono::milliseconds(25);

  Device& device_;
  std::vector<double> rates_;
  Clock::time_point last_{};
};

}  // namespace

Result<BenchPoint> measure_point(const BenchShape& shape, const BenchSettings& settings,
                                 Device& device,
                                 const std::function<void(std::string_view)>& stage) {
  BenchPoint point;
  point.shape = shape;
  stage("filling");
  Result<Workload> made = Workload::create(shape, device, device.cache_bytes(), settings.seed);
  if (!made.ok()) return made.status();
  Workload& work = made.value();
  deuce_decode_config config = work.config();
  apply(settings.execution, config);
  const Result<Plan> plan = Plan::create(config, device);
  if (!plan.ok()) return plan.status();
  point.backend = plan.value().backend();
  point.copies = work.copies();

  stage("checking");
  if (Status status = plan.value().run(work.args(0)); !status.ok()) return status;
  if (Status status = plan.value().fault(); !status.ok()) return status;
  if (Status status = work.result().fetch(device); !status.ok()) return status;
  const auto check = check_requests(config, work.result().on_host(work.host_args()), point.backend);
  if (!check.ok()) return check.status();
  point.check = check.value();
  point.traffic = traffic_of(config, work.host_args());
  if (settings.explain) {
    const auto text = plan.value().explain(&work.args(0));
    if (!text.ok()) return text.status();
    point.explanation = text.value();
  }
  if (!point.check.ok || interrupted()) return point;

  stage("timing");
  std::size_t copy = 0;
  const auto timed_run = [&] {
    const deuce_decode_args& args = work.args(copy++);
    return device.time([&] { return plan.value().run(args); });
  };
  RoofPasses roof(device);
  const auto samples = collect(settings.limits, [&]() -> Result<double> {
    // The first run after a pass finds threads asleep and is not counted.
    if (roof.take_if_due()) {
      if (const auto first = timed_run(); !first.ok()) return first;
    }
    return timed_run();
  });
  if (!samples.ok()) return samples.status();
  point.samples = samples.value();
  point.roof = roof.median();
  return point;
}

}  // namespace deuce::cli
