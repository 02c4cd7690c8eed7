// SPDX-License-Identifier: Apache-2.0
// Every cycle count of the emulator, for each chip with its range and where it comes from. Nothing
// else in the code base contains one. B200: published figures, or derived from such; the source
// says where an older GPU or an estimate stands in, and none was measured by this project. H200:
// measured on one where the source says so ("H200" alone: micro-kernels on one CTA, CUDA 13.0, in
// cycles of the SM's own counter, so of no assumed clock; "H200 traces": the phases in
// bench/results/hopper-phases-h200.json, the records' own time not taken off).
#pragma once

#include <array>
#include <utility>
#include <vector>

namespace deuce::emulator {

struct Range {
  double low = 0, best = 0, high = 0;
  const char* source = "not on this chip";
};
/// One entry of the table.
struct Cost {
  Range b200{}, h200{};
};

/// Which column of the table a run uses.
enum class Band { low, best, high };

enum class Chip { b200, h200 };

/// The chip as a whole, for figures per second.
struct ChipFacts {
  const char* name;
  int multiprocessors;
  double clock_hz;
};
constexpr ChipFacts facts_of(Chip chip) {
  // B200: sustained clock, SemiAnalysis. H200: %clock64 over %globaltimer while long launches ran
  // (1.80 to 1.83 GHz; up to 1.90 in short ones). NVML said 1980 MHz all the time.
  return chip == Chip::b200 ? ChipFacts{"B200", 148, 1.845e9} : ChipFacts{"H200", 132, 1.81e9};
}

/// Of the B200, for figures of the Blackwell kernel.
inline constexpr int kMultiprocessors = facts_of(Chip::b200).multiprocessors;
inline constexpr double kClockHz = facts_of(Chip::b200).clock_hz;

/// Entries that a fit has set for itself.
using FittedCosts = std::vector<std::pair<const Cost*, double>>;

struct Timing {
  Band band = Band::best;
  Chip chip = Chip::b200;
  const FittedCosts* fitted = nullptr;
  double operator()(const Cost& cost) const {
    if (fitted != nullptr) {
      for (const auto& [entry, value] : *fitted) {
        if (entry == &cost) return value;
      }
    }
    const Range& range = chip == Chip::b200 ? cost.b200 : cost.h200;
    return band == Band::low ? range.low : band == Band::high ? range.high : range.best;
  }
};

namespace cost {

// Tensor pipe.
inline constexpr Cost kMmaN128{
    {64, 64, 64, "SemiAnalysis: M128 N128 K16 every 64 cycles, SS or TS"}};
inline constexpr Cost kMmaN64Shared{{48, 48, 48, "SemiAnalysis: N64 SS bound by shared memory"}};
inline constexpr Cost kMmaN64Tensor{{32, 32, 32, "SemiAnalysis: N64 TS"}};
// Published is the sum of fill, commit and wake-up: 104 to 250 cycles, 136 where the last MMA is SS
// and 104 where it is TS. This is what kCommitDelivery and kWake leave of it in each column, hence
// not in order.
inline constexpr Cost kMmaFillShared{
    {50, 32, 83, "SemiAnalysis: SS to waiter, less commit and wake-up"}};
inline constexpr Cost kMmaFillTensor{{50, 0, 83, "SemiAnalysis: TS, the same"}};
inline constexpr Cost kAccumulate{
    {0, 0, 10, "SemiAnalysis: none in a batch; Meta: 10 a dependent MMA"}};
inline constexpr Cost kMmaIssue{{17, 30, 45, "Meta: one MMA issued by one thread"}};
inline constexpr Cost kCommitDelivery{
    {0, 12, 44, "derived: drain + commit, sum with wake-up known"}};

// Barriers.
inline constexpr Cost kArriveIssue{{27, 30, 51, "Meta, B300 catalogue"},
                                   {8, 8, 12, "H200: one lane in a loop"}};
inline constexpr Cost kWake{
    {54, 92, 123, "Meta, B300: arrival to the waiter running, its try_wait included"},
    {46, 46, 54, "H200: arrival to the waiter running, one to one"}};
inline constexpr Cost kWaitPassed{
    {20, 30, 32, "B300: try_wait that is already true"},
    {30, 44, 44, "H200: try_wait already true, with the loop branch"}};
inline constexpr Cost kNamedBarrier{{18, 30, 54, "Meta: named barrier arrive to sync"},
                                    {16, 20, 28, "H200: bar.sync of 64 to 256 threads"}};
inline constexpr Cost kBlockBarrier{{40, 54, 70, "B300: 22 + 2 per warp"},
                                    {20, 24, 36, "derived from the row above: 12 + 2 per warp"}};
inline constexpr Cost kFenceAsync{{27, 32, 36, "B300: fence.proxy.async.shared::cta"},
                                  {9, 9, 18, "H200: idle, and behind a store"}};
inline constexpr Cost kRegisters{{50, 73, 90, "B300: setmaxnreg"},
                                 {84, 100, 133, "H200: setmaxnreg down and up"}};

// Tensor memory, per warp: latency and bytes per cycle of its quarter.
inline constexpr Cost kTensorLoadLatency{{60, 100, 180, "Meta, B300"}};
inline constexpr Cost kTensorLoadRate{
    {128, 64, 50, "Meta: 256 B/clk/SM, a quarter per sub-partition"}};
inline constexpr Cost kTensorStoreLatency{{40, 50, 60, "B300"}};
inline constexpr Cost kTensorStoreRate{{170, 128, 85, "Meta: 512 B/clk/SM"}};
inline constexpr Cost kTensorStoreWait{{10, 10, 10, "estimate: wait::st behind the last store"}};
inline constexpr Cost kTensorAlloc{{200, 253, 300, "University of Delaware"}};

// Copies.
inline constexpr Cost kCopyIssue{{30, 32, 65, "one box by one warp"},
                                 {49, 52, 54, "H200: one box after another, by one lane or 32"}};
inline constexpr Cost kCopyLatency{
    {790, 900, 1400, "DRAM with all SMs busy"},
    {650, 1000, 1400, "H200: 4 to 16 KB from an idle DRAM; B200 sources for a busy one"}};
inline constexpr Cost kCopyRate{
    {26.7, 26.7, 24.8, "7.3 to 6.8 TB/s over 148 SMs at 1.845 GHz, B/clk/SM"},
    {19.1, 19.0, 18.6, "H200: read roofs, 4.54 TB/s over 132 SMs at 1.81 GHz"}};

// Hopper's copies and warp-level matrices.
inline constexpr Cost kCopyBox{
    {}, {8, 17, 27, "H200: tile roofs, boxes of 4, 2 and 1 KB against tiles"}};
inline constexpr Cost kMmaSync{
    {}, {6.06, 6.5, 6.9, "H200: m16n8k16 of a quarter of the SM, two warps or one"}};
inline constexpr Cost kMmaLatency{
    {}, {24, 33, 40, "H200: 24.4 in a chain; to another instruction, estimate"}};
inline constexpr Cost kWgmmaN64{{}, {32, 32, 40, "m64n64k16: tensor rate; Q, P in registers"}};
inline constexpr Cost kWgmmaN128{{}, {64, 64, 72, "m64n128k16: tensor rate"}};
inline constexpr Cost kWgmmaLatency{
    {}, {64, 66, 128, "published: completion tail 64 to 66; estimate above"}};
inline constexpr Cost kWgmmaIssue{{}, {8, 17, 24, "published: issue 17"}};
inline constexpr Cost kMatrixLoad{{}, {29, 33, 40, "H200: ldmatrix.x4, 43 less three ALU steps"}};
inline constexpr Cost kMatrixPort{{}, {4, 4, 4, "H200: 128 B per clk and SM"}};
inline constexpr Cost kFromE4m3{{}, {2, 4, 8, "estimate: 64 results per clk and SM"}};
inline constexpr Cost kLoadIssue{{}, {2, 4, 8, "estimate: a load that others follow"}};
inline constexpr Cost kColdCode{
    {}, {10, 25, 40, "H200 traces: first issue of a tile 100 cycles longer, four operations"}};

// Hopper's code between operations, which its source does not charge: KernelSpec::plain_code.
inline constexpr Cost kScheduleRequests{
    {}, {380, 433, 480, "H200 traces: 740 cycles for a window of requests, less its shuffles"}};
inline constexpr Cost kScheduleStep{
    {}, {18, 24, 30, "estimate: as long as its shuffle; the phases show no step alone"}};
inline constexpr Cost kMergeStep{
    {}, {40, 60, 80, "H200 traces: merge_later, 4 rows, 1230 cycles, over the merge's shuffles"}};
inline constexpr Cost kQueryLoad{
    {}, {20, 30, 40, "H200 traces: 850 cycles between a piece and its first wait, over the loads"}};
inline constexpr Cost kTileIssue{
    {}, {50, 70, 90, "H200 trace trace-h200-hd128-rows4: 484 cycles a tile in the first lap"}};
inline constexpr Cost kBesideExp2{
    {}, {6.5, 7.5, 8.5, "H200 traces: softmax of a tile 645 cycles, over its exponentials"}};

// Generic instructions of one warp.
inline constexpr Cost kShared{{19, 24, 29, "B300: LDS latency"},
                              {23, 29, 33, "FlashGPU-Sim: LDS latency"}};
inline constexpr Cost kSharedStore{{19, 24, 29, "B300: as a load"},
                                   {2, 4, 8, "estimate: issue only"}};
inline constexpr Cost kShuffle{{24, 24, 24, "B300"}, {24, 24, 24, "H200"}};
inline constexpr Cost kGlobal{{301, 600, 889, "B300: L2 to DRAM"},
                              {288, 600, 900, "University of Delaware, GH100: L2 to DRAM"}};
inline constexpr Cost kConstantMiss{
    {301, 600, 889, "B300: L2 to DRAM"},
    {240, 288, 600, "University of Delaware, GH100: L2; right for what every CTA reads"}};
inline constexpr Cost kConstantHit{{28, 35, 45, "L1 hit of a read-only load, Volta to Hopper"},
                                   {28, 35, 45, "L1 hit of a read-only load, Volta to Hopper"}};
inline constexpr Cost kGlobalStore{{4, 8, 16, "issue only"}, {4, 8, 16, "issue only"}};
inline constexpr Cost kAtomic{{500, 700, 900, "H200 measurement: acq_rel at device scope"},
                              {500, 700, 900, "H200: acq_rel at device scope"}};
inline constexpr Cost kIssue{{1, 2, 4, "one warp instruction"}, {1, 2, 4, "one warp instruction"}};

// Register arithmetic: cycles of one sub-partition per warp instruction.
inline constexpr Cost kFma{{1, 1, 1, "128 per clk and SM, packed or not"},
                           {1, 1, 1, "H200: 128 per clk and SM"}};
inline constexpr Cost kAlu{{2, 2, 2, "64 per clk and SM"}, {2, 2, 2, "H200: 64 per clk and SM"}};
inline constexpr Cost kExp2{{8, 8, 8, "16 per clk and SM"}, {8, 8, 8, "H200: 16 per clk and SM"}};
inline constexpr Cost kConvert{{2, 2, 2, "64 pairs per clk and SM"},
                               {2, 2, 2, "64 pairs per clk and SM"}};
inline constexpr Cost kDependent{{4, 5, 6, "FMA latency 4, ALU 4 to 6"},
                                 {4, 4.3, 5, "H200: latency of FMA and ALU"}};

}  // namespace cost
}  // namespace deuce::emulator
