// SPDX-License-Identifier: Apache-2.0
// The JSON form of a benchmark run. Keys are an interface: docs/cli.md lists them, new ones may be
// added, a change of meaning raises `schema`.
#include "bench_report.h"
#include "facts_json.h"
#include "fit.h"
#include "plan/names.h"

namespace deuce::cli {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kSchema = 1;

Json shape_json(const BenchShape& shape) {
  return {{"preset", shape.preset},
          {"lengths", shape.lengths},
          {"batch", shape.kv_lens.size()},
          {"kv_lens", shape.kv_lens},
          {"q_len", shape.q_len},
          {"q_heads", shape.q_heads},
          {"kv_heads", shape.kv_heads},
          {"head_dim", shape.head_dim},
          {"dtype", name_of(shape.dtype)},
          {"page_size", shape.page_size},
          {"layout", shape.layout == Layout::hnd ? "HND" : "NHD"},
          {"window_left", shape.window_left},
          {"sinks", shape.sinks},
          {"softcap", shape.softcap}};
}

Json point_json(const BenchPoint& point) {
  Json json = shape_json(point.shape);
  json["backend"] = name_of(point.backend);
  json["kv_bytes"] = point.traffic.kv_bytes;
  json["mode"] = point.hot ? "hot" : "rotated";
  json["copies"] = point.copies;
  json["check"] = {{"ok", point.check.ok},
                   {"requests", point.check.requests},
                   {"worst_error_over_tolerance", point.check.worst_ratio},
                   {"first_failure", point.check.first_failure}};
  if (!point.explanation.empty()) json["explain"] = Json::parse(point.explanation);
  const Samples& samples = point.samples;
  json["samples"] = samples.sorted_s.size();
  if (samples.sorted_s.empty()) return json;
  const Interval interval = samples.interval_95();
  json["time_s"] = {
      {"median", samples.median()},      {"interval_95", {interval.low, interval.high}},
      {"p10", samples.quantile(0.1)},    {"p90", samples.quantile(0.9)},
      {"min", samples.sorted_s.front()}, {"noise", samples.noise()},
      {"settled", samples.settled}};
  json["bytes_per_s"] = point.bytes_per_second();
  if (point.roof > 0) {
    json["roof_bytes_per_s"] = point.roof;
    json["share_of_roof"] = point.share_of_roof();
    json["overhead_s"] = point.overhead_s();
  }
  if (point.clocks) {
    json["clocks"] = {{"sm_mhz", point.clocks->sm_mhz},
                      {"memory_mhz", point.clocks->memory_mhz},
                      {"throttle_reasons", point.clocks->throttle_reasons},
                      {"throttled_samples", samples.throttled}};
  }
  return json;
}

Json fit_json(const BandwidthFit& fit) {
  return {{"points", fit.title},
          {"kv_lens", fit.kv_lens},
          {"t0_s", fit.t0_s},
          {"bytes_per_s", fit.bytes_per_s},
          {"worst_residual", fit.worst_residual}};
}

}  // namespace

std::string bench_json(const MachineFacts& machine, const BenchSettings& settings,
                       const std::vector<BenchPoint>& points, bool interrupted) {
  Json json;
  json["schema"] = kSchema;
  json["deuce"] = DEUCE_VERSION;
  json["machine"] = machine_json(machine);
  json["build"] = build_json(machine);
  json["seed"] = settings.seed;
  json["interrupted"] = interrupted;
  json["points"] = Json::array();
  for (const BenchPoint& point : points) json["points"].push_back(point_json(point));
  json["fits"] = Json::array();
  for (const BandwidthFit& fit : fit_sweeps(points)) json["fits"].push_back(fit_json(fit));
  return json.dump(2) + "\n";
}

}  // namespace deuce::cli
