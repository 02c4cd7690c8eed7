// SPDX-License-Identifier: Apache-2.0
// Simulated timing of the Blackwell kernel; see timing_report.h.
#include "emulator/timing_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/blackwell.h"
#include "emulator/decode_case.h"
#include "kernel/blackwell/config.h"
#include "trace/summary.h"

namespace deuce::emulator {
namespace {

constexpr int kShort = 16, kLong = 48;  // KV blocks of the two lengths

RunResult time_once(CaseSpec spec, int blocks, Band band, trace::Recorder* recorder = nullptr) {
  spec.kv_len = {blocks * blackwell::Config::kTileRows};
  DecodeCase decode(spec);
  const BlackwellPlan plan = plan_blackwell(decode.problem(), 1);
  std::vector<std::byte> workspace(workspace_of(plan).bytes);
  Options options;
  options.values = false;
  options.band = band;
  options.recorder = recorder;
  return run_blackwell(decode.problem(), plan, decode.call(), workspace.data(), options);
}

/// Steady cycles of a block and the rest of the shorter run; the report of a run that failed.
Status measure_band(const CaseSpec& spec, Band band, SlotTiming& timing) {
  const RunResult longer = time_once(spec, kLong, band);
  const RunResult shorter = time_once(spec, kShort, band);
  if (longer.report.has_error() || shorter.report.has_error()) {
    return Status{DEUCE_HAZARD, "", longer.report.text() + shorter.report.text()};
  }
  const auto index = static_cast<std::size_t>(band);
  timing.cycles_per_block[index] = (longer.cycles - shorter.cycles) / (kLong - kShort);
  timing.fixed_cycles[index] = shorter.cycles - kShort * timing.cycles_per_block[index];
  return {};
}

/// As `deuce trace` states it, by the same function.
Result<double> overlap_of(const CaseSpec& spec) {
  trace::Recorder recorder(trace::Level::edges, 1 << 16);
  const RunResult run = time_once(spec, kLong, Band::best, &recorder);
  if (run.report.has_error()) return Status{DEUCE_HAZARD, "", run.report.text()};
  trace::TraceFile file;
  file.facts.clock_hz = kClockHz;
  file.facts.score_slots = spec.score_slots;
  file.slices = recorder.take();
  const Result<trace::Timeline> timeline = trace::make_timeline(file);
  if (!timeline.ok()) return timeline.status();
  return trace::summarize(timeline.value()).overlap;
}

}  // namespace

double TimingReport::bytes_per_second(const SlotTiming& timing, int band) const {
  const double bytes = 2.0 * 2 * blackwell::Config::kTileRows * head_dim;
  return bytes / timing.cycles_per_block[static_cast<std::size_t>(band)] * kClockHz;
}

double TimingReport::gain_percent(const SlotTiming& timing, int band) const {
  const auto index = static_cast<std::size_t>(band);
  return 100 * (slots.front().cycles_per_block[index] / timing.cycles_per_block[index] - 1);
}

double TimingReport::gain_over_ping_pong(const SlotTiming& timing, int band) const {
  const auto index = static_cast<std::size_t>(band);
  return 100 * (slots[1].cycles_per_block[index] / timing.cycles_per_block[index] - 1);
}

std::string TimingReport::text() const {
  std::string out = fmt::format(
      "simulated   head dim {}, {} rows, one SM of a B200 at {:.3f} GHz; best (low to high costs)\n"
      "slots  replicas  cycles per KV block           GB/s per SM      TB/s on {} SMs           "
      "gain, "
      "%  QK inside softmax\n",
      head_dim, rows, kClockHz * 1e-9, kMultiprocessors);
  for (const SlotTiming& timing : slots) {
    const auto& cycles = timing.cycles_per_block;
    const auto rate = [&](int band) { return bytes_per_second(timing, band); };
    const auto chip = [&](int band) { return rate(band) * kMultiprocessors * 1e-12; };
    const auto [least, most] =
        std::minmax({gain_percent(timing, 0), gain_percent(timing, 1), gain_percent(timing, 2)});
    out += fmt::format(
        "{:>5}  {:>8}  {:>19}  {:>20}  {:>18}  {:>15}  {:>16.0f}%\n", timing.score_slots,
        timing.row_replicas,
        fmt::format("{:.0f} ({:.0f} to {:.0f})", cycles[1], cycles[0], cycles[2]),
        fmt::format("{:.1f} ({:.1f} to {:.1f})", rate(1) * 1e-9, rate(2) * 1e-9, rate(0) * 1e-9),
        fmt::format("{:.2f} ({:.2f} to {:.2f})", chip(1), chip(2), chip(0)),
        fmt::format("{:+.0f} ({:+.0f} to {:+.0f})", gain_percent(timing, 1), least, most),
        100 * timing.overlap);
  }
  return out;
}

Result<TimingReport> predict_timing(int head_dim, int rows) {
  if (blackwell_spec({.head_dim = head_dim, .score_slots = 1}) == nullptr) {
    return unsupported("head_dim", "head_dim is {}: blackwell takes 64 or 128", head_dim);
  }
  TimingReport report;
  report.head_dim = head_dim;
  report.rows = rows;
  for (int slots = 1; slots <= 3; ++slots) report.slots.push_back({.score_slots = slots});
  for (const int replicas : {2, 4}) {
    if (rows * replicas > blackwell::Config::kTileRows) continue;
    report.slots.push_back({.score_slots = 2, .row_replicas = replicas});
  }
  for (SlotTiming& timing : report.slots) {
    const CaseSpec spec{.head_dim = head_dim,
                        .group = rows,
                        .score_slots = timing.score_slots,
                        .row_replicas = timing.row_replicas};
    for (const Band band : {Band::low, Band::best, Band::high}) {
      Status bad = measure_band(spec, band, timing);
      if (!bad.ok()) return bad;
    }
    const Result<double> overlap = overlap_of(spec);
    if (!overlap.ok()) return overlap.status();
    timing.overlap = overlap.value();
  }
  return report;
}

Result<SlotTiming> predict_kernel(const TimedKernel& kernel) {
  const CaseSpec spec{.head_dim = kernel.head_dim,
                      .group = kernel.group,
                      .q_len = kernel.q_len,
                      .causal = kernel.q_len > 1,
                      .score_slots = kernel.score_slots,
                      .row_replicas = kernel.row_replicas};
  if (Status bad = check_compiled({.head_dim = spec.head_dim,
                                   .score_slots = spec.score_slots,
                                   .row_replicas = spec.row_replicas});
      !bad.ok())
    return bad;
  SlotTiming timing{.score_slots = kernel.score_slots, .row_replicas = kernel.row_replicas};
  for (const Band band : {Band::low, Band::best, Band::high}) {
    Status bad = measure_band(spec, band, timing);
    if (!bad.ok()) return bad;
  }
  return timing;
}

}  // namespace deuce::emulator
