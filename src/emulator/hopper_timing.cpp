// SPDX-License-Identifier: Apache-2.0
// Simulated timing of the Hopper kernel; see hopper_timing.h.
#include "emulator/hopper_timing.h"

#include <fmt/format.h>

#include "emulator/decode_case.h"
#include "emulator/hopper.h"
#include "kernel/hopper/config.h"

namespace deuce::emulator {
namespace {

constexpr int kShort = 48, kLong = 144;  // KV tiles of the two lengths

/// The call with as many requests as a whole chip serves. They share queries, cache and results: of
/// the grid one CTA runs, and no value is computed.
class WholeChip {
 public:
  WholeChip(const DecodeCase& one, int requests)
      : problem_(one.problem()),
        call_(one.call()),
        kv_len_(static_cast<std::size_t>(requests), one.call().kv_len[0]),
        row_(kv_len_.size(), 0) {
    problem_.max_batch = call_.batch = requests;
    call_.kv_len = kv_len_.data();
    call_.q_stride[0] = call_.out_stride[0] = call_.lse_stride[0] = 0;
    call_.block_table_stride = 0;
    if (call_.cache_row != nullptr) call_.cache_row = row_.data();
  }
  const Problem& problem() const { return problem_; }
  const Call& call() const { return call_; }

 private:
  Problem problem_;
  Call call_;
  std::vector<int32_t> kv_len_, row_;
};

}  // namespace

Result<double> predict_hopper_cycles(const HopperTimingCase& timed, Band band,
                                     const FittedCosts* fitted, trace::Recorder* recorder) {
  constexpr int kWorkers = facts_of(Chip::h200).multiprocessors;
  const DecodeCase one({.kernel = Backend::hopper,
                        .head_dim = timed.head_dim,
                        .group = timed.rows,
                        .kv_len = {timed.tiles * hopper::kTileTokens},
                        .page_size = timed.page_size,
                        .e4m3 = timed.e4m3,
                        .score_slots = timed.score_slots,
                        .row_replicas = 0});
  const WholeChip chip(one, kWorkers * timed.requests);
  Status bad = hopper::check_problem(chip.problem());
  if (bad.ok()) bad = hopper::check_call(chip.problem(), chip.call());
  if (!bad.ok()) return bad;
  std::vector<std::byte> workspace(hopper_workspace(chip.problem(), kWorkers).bytes);
  Options options;
  options.values = false;
  options.only_block = kWorkers - 1;  // it looks for its work behind everybody else's
  options.band = band;
  options.fitted = fitted;
  options.recorder = recorder;
  const RunResult run =
      run_hopper(chip.problem(), kWorkers, chip.call(), workspace.data(), options);
  if (run.report.has_error()) return Status{DEUCE_HAZARD, "", run.report.text()};
  return run.cycles;
}

std::string HopperTimingReport::text() const {
  constexpr ChipFacts kChip = facts_of(Chip::h200);
  const double bytes =
      2.0 * hopper::kTileTokens * timed.head_dim * (timed.e4m3 ? 1 : 2);  // K and V of a tile
  const double rate = bytes / cycles_per_tile[1] * kChip.clock_hz;
  return fmt::format(
      "simulated   hopper, head dim {}, {}, {} rows, {}, one SM of an {} at {:.2f} GHz; best (low "
      "to high costs)\n"
      "cycles per KV tile of 64 keys  {:.0f} ({:.0f} to {:.0f})\n"
      "beside the tiles, cycles       {:.0f} ({:.0f} to {:.0f})\n"
      "GB/s per SM                    {:.1f}\n"
      "TB/s on {} SMs                {:.2f}\n",
      timed.head_dim, timed.e4m3 ? "e4m3 cache" : "bf16", timed.rows,
      timed.page_size == 0 ? "contiguous" : fmt::format("pages of {}", timed.page_size), kChip.name,
      kChip.clock_hz * 1e-9, cycles_per_tile[1], cycles_per_tile[0], cycles_per_tile[2],
      fixed_cycles[1], fixed_cycles[0], fixed_cycles[2], rate * 1e-9, kChip.multiprocessors,
      rate * kChip.multiprocessors * 1e-12);
}

Result<HopperTimingReport> predict_hopper_timing(const HopperTimingCase& timed) {
  HopperTimingReport report{.timed = timed};
  for (const Band band : {Band::low, Band::best, Band::high}) {
    HopperTimingCase shorter = timed, longer = timed;
    shorter.tiles = kShort;
    longer.tiles = kLong;
    const Result<double> few = predict_hopper_cycles(shorter, band);
    if (!few.ok()) return few.status();
    const Result<double> many = predict_hopper_cycles(longer, band);
    if (!many.ok()) return many.status();
    const auto index = static_cast<std::size_t>(band);
    report.cycles_per_tile[index] = (many.value() - few.value()) / (kLong - kShort);
    report.fixed_cycles[index] = few.value() - kShort * report.cycles_per_tile[index];
  }
  return report;
}

}  // namespace deuce::emulator
