// SPDX-License-Identifier: Apache-2.0
// Every cycle count of the emulator, with its range and where it comes from. Nothing else in the
// code base contains one. Most are published for B200 or B300, or derived from such figures; the
// source says where an older GPU or an estimate stands in. None was measured by this project on a
// Blackwell.
#pragma once

#include <array>

namespace deuce::emulator {

struct Cost {
  double low, best, high;
  const char* source;
};

/// Which column of the table a run uses.
enum class Band { low, best, high };

struct Timing {
  Band band = Band::best;
  double operator()(const Cost& cost) const {
    return band == Band::low ? cost.low : band == Band::high ? cost.high : cost.best;
  }
};

/// The chip as a whole, for figures per second.
inline constexpr int kMultiprocessors = 148;
inline constexpr double kClockHz = 1.845e9;  // sustained, SemiAnalysis

namespace cost {

// Tensor pipe.
inline constexpr Cost kMmaN128{64, 64, 64, "SemiAnalysis: M128 N128 K16 every 64 cycles, SS or TS"};
inline constexpr Cost kMmaN64Shared{48, 48, 48, "SemiAnalysis: N64 SS bound by shared memory"};
inline constexpr Cost kMmaN64Tensor{32, 32, 32, "SemiAnalysis: N64 TS"};
// Published is the sum of fill, commit and wake-up: 104 to 250 cycles, 136 where the last MMA is SS
// and 104 where it is TS. This is what kCommitDelivery and kWake leave of it in each column, hence
// not in order.
inline constexpr Cost kMmaFillShared{50, 32, 83,
                                     "SemiAnalysis: SS to waiter, less commit and wake-up"};
inline constexpr Cost kMmaFillTensor{50, 0, 83, "SemiAnalysis: TS, the same"};
inline constexpr Cost kAccumulate{0, 0, 10,
                                  "SemiAnalysis: none in a batch; Meta: 10 a dependent MMA"};
inline constexpr Cost kMmaIssue{17, 30, 45, "Meta: one MMA issued by one thread"};
inline constexpr Cost kCommitDelivery{0, 12, 44, "derived: drain + commit, sum with wake-up known"};

// Barriers.
inline constexpr Cost kArriveIssue{27, 30, 51, "Meta, B300 catalogue"};
inline constexpr Cost kWake{54, 92, 123,
                            "Meta, B300: arrival to the waiter running, its try_wait included"};
inline constexpr Cost kWaitPassed{20, 30, 32, "B300: try_wait that is already true"};
inline constexpr Cost kNamedBarrier{18, 30, 54, "Meta: named barrier arrive to sync"};
inline constexpr Cost kBlockBarrier{40, 54, 70, "B300: 22 + 2 per warp"};
inline constexpr Cost kFenceAsync{27, 32, 36, "B300: fence.proxy.async.shared::cta"};
inline constexpr Cost kRegisters{50, 73, 90, "B300: setmaxnreg"};

// Tensor memory, per warp: latency and bytes per cycle of its quarter.
inline constexpr Cost kTensorLoadLatency{60, 100, 180, "Meta, B300"};
inline constexpr Cost kTensorLoadRate{128, 64, 50,
                                      "Meta: 256 B/clk/SM, a quarter per sub-partition"};
inline constexpr Cost kTensorStoreLatency{40, 50, 60, "B300"};
inline constexpr Cost kTensorStoreRate{170, 128, 85, "Meta: 512 B/clk/SM"};
inline constexpr Cost kTensorStoreWait{10, 10, 10, "estimate: wait::st behind the last store"};
inline constexpr Cost kTensorAlloc{200, 253, 300, "University of Delaware"};

// Copies.
inline constexpr Cost kCopyIssue{30, 32, 65, "one box by one warp"};
inline constexpr Cost kCopyLatency{790, 900, 1400, "DRAM with all SMs busy"};
inline constexpr Cost kCopyRate{26.7, 26.7, 24.8,
                                "7.3 to 6.8 TB/s over 148 SMs at 1.845 GHz, B/clk/SM"};

// Generic instructions of one warp.
inline constexpr Cost kShared{19, 24, 29, "B300: LDS latency"};
inline constexpr Cost kShuffle{24, 24, 24, "B300"};
inline constexpr Cost kGlobal{301, 600, 889, "B300: L2 to DRAM"};
inline constexpr Cost kConstantHit{28, 35, 45, "L1 hit of a read-only load, Volta to Hopper"};
inline constexpr Cost kGlobalStore{4, 8, 16, "issue only"};
inline constexpr Cost kAtomic{500, 700, 900, "H200 measurement: acq_rel at device scope"};
inline constexpr Cost kIssue{1, 2, 4, "one warp instruction"};

// Register arithmetic: cycles of one sub-partition per warp instruction.
inline constexpr Cost kFma{1, 1, 1, "128 per clk and SM, packed or not"};
inline constexpr Cost kAlu{2, 2, 2, "64 per clk and SM"};
inline constexpr Cost kExp2{8, 8, 8, "16 per clk and SM"};
inline constexpr Cost kConvert{2, 2, 2, "64 pairs per clk and SM"};
inline constexpr Cost kDependent{4, 5, 6, "FMA latency 4, ALU 4 to 6"};

}  // namespace cost
}  // namespace deuce::emulator
