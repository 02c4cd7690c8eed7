// SPDX-License-Identifier: Apache-2.0
// Build, check, time, check again: so that no time is ever printed of a wrong result.
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
  explicit RoofPasses(ReadRoof* roof) : roof_(roof) {}

  /// Whether it took one, now and then.
  Result<bool> take_if_due() {
    if (roof_ == nullptr || (!rates_.empty() && Clock::now() - last_ < kDistance)) return false;
    const Result<double> rate = roof_->pass();
    if (!rate.ok()) return rate.status();
    rates_.push_back(rate.value());
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

  ReadRoof* roof_;
  std::vector<double> rates_;
  Clock::time_point last_{};
};

/// Whether the clocks are held down, asked now and then: the question costs more than a launch.
class Throttle {
 public:
  explicit Throttle(const Device& device) : device_(device) {}
  bool now() {
    if (Clock::now() - last_ < kDistance) return throttled_;
    const std::optional<GpuClocks> clocks = device_.clocks();
    throttled_ = clocks && clocks->throttled();
    last_ = Clock::now();
    return throttled_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kDistance = std::chrono::milliseconds(25);

  const Device& device_;
  bool throttled_ = false;
  Clock::time_point last_{};
};

/// Samples and roof of a point that has been checked.
Status time_point(const Workload& work, const Plan& plan, const deuce_decode_config& config,
                  const BenchSettings& settings, Device& device, BenchPoint& point) {
  const auto launches =
      device.repeat(work.copies(), [&](std::size_t copy) { return plan.run(work.args(copy)); });
  if (!launches.ok()) return launches.status();
  std::unique_ptr<ReadRoof> roof;
  if (!settings.hot) {  // what stays in a cache is not held against the memory
    auto made = device.roof(config, work.all_args(), point.traffic.kv_bytes);
    if (!made.ok()) return made.status();
    roof = std::move(made.value());
  }
  RoofPasses passes(roof.get());
  Throttle throttle(device);
  const auto samples = collect(settings.limits, [&]() -> Result<Timed> {
    const Result<bool> passed = passes.take_if_due();
    if (!passed.ok()) return passed.status();
    if (passed.value()) {
      // The first run after a pass finds threads asleep, and is not counted.
      if (auto first = launches.value()->sample(); !first.ok()) return first;
    }
    Result<Timed> timed = launches.value()->sample();
    if (timed.ok()) timed.value().throttled = throttle.now();
    return timed;
  });
  if (!samples.ok()) return samples.status();
  if (samples.value().sorted_s.empty() && samples.value().throttled > 0) {
    return Status(DEUCE_RUNTIME_ERROR, "",
                  fmt::format("all {} samples were taken while the GPU's clocks were held down",
                              samples.value().throttled));
  }
  point.samples = samples.value();
  point.roof = passes.median();
  point.clocks = device.clocks();
  return {};
}

/// The checked call again, behind the timed launches: it must give the bits that it gave before.
Status check_again(Workload& work, const Plan& plan, Device& device, BenchCheck& check) {
  const CallResult before = work.result();
  const auto again = device.time([&] { return plan.run(work.args(0)); });
  if (!again.ok()) return again.status();
  if (Status status = plan.fault(); !status.ok()) return status;
  if (Status status = work.result().fetch(device); !status.ok()) return status;
  if (before.same_bits(work.result())) return {};
  check.ok = false;
  check.first_failure = "after the timed launches the same call gives other bits";
  return {};
}

}  // namespace

Result<BenchPoint> measure_point(const BenchShape& shape, const BenchSettings& settings,
                                 Device& device,
                                 const std::function<void(std::string_view)>& stage) {
  BenchPoint point;
  point.shape = shape;
  stage("filling");
  const std::size_t cache_bytes = settings.hot ? 0 : device.cache_bytes();
  Result<Workload> made = Workload::create(shape, device, cache_bytes, settings.seed);
  if (!made.ok()) return made.status();
  Workload& work = made.value();
  deuce_decode_config config = work.config();
  apply(settings.execution, config);
  const Result<Plan> plan = Plan::create(config, device);
  if (!plan.ok()) return plan.status();
  point.backend = plan.value().backend();
  point.copies = work.copies();
  point.hot = settings.hot;

  stage("checking");
  const auto first = device.time([&] { return plan.value().run(work.args(0)); });
  if (!first.ok()) return first.status();
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
  if (Status status = time_point(work, plan.value(), config, settings, device, point); !status.ok())
    return status;
  if (Status status = check_again(work, plan.value(), device, point.check); !status.ok())
    return status;
  return point;
}

}  // namespace deuce::cli
