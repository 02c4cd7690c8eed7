// SPDX-License-Identifier: Apache-2.0
// Build, check, time: in this order, so that no time is ever printed of a wrong result.
#include "bench_point.h"

#include "interrupt.h"
#include "plan.h"

namespace deuce::cli {

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

  const double before = device.read_roof();
  stage("timing");
  std::size_t copy = 0;
  const auto samples = collect(settings.limits, [&] {
    const deuce_decode_args& args = work.args(copy++);
    return device.time([&] { return plan.value().run(args); });
  });
  if (!samples.ok()) return samples.status();
  point.samples = samples.value();
  point.roof = std::max(before, device.read_roof());
  return point;
}

}  // namespace deuce::cli
