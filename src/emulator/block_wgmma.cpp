// SPDX-License-Identifier: Apache-2.0
// wgmma of an emulated CTA; see block.h and wgmma.h. Each warp issues and waits for itself and
// reads B on its own account; an MMA begins when the last of the four warps has issued it.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/grid.h"

namespace deuce::emulator {
namespace {

constexpr uint32_t kPoison = 0x7fa5a5a5u;  // a signalling NaN
constexpr int kRows = 16, kColumns = 8;

/// Row and column in the accumulator of element e of a tile of a lane.
struct Place {
  int row, column;
};
Place place_of(int lane, int tile, int e) {
  return {lane / 4 + 8 * (e / 2), kColumns * tile + 2 * (lane % 4) + e % 2};
}

float value_of(uint32_t bits, bool bf16) {
  const auto element = static_cast<uint16_t>(bits);
  return bf16 ? to_float(Bf16{element}) : to_float(Half{element});
}

/// The 16 x 16 tile of A from the fragments of a warp.
void load_fragments(const std::array<std::array<uint32_t, 4>, 32>& a, bool bf16, Panel& panel) {
  for (std::size_t lane = 0; lane < 32; ++lane) {
    for (std::size_t i = 0; i < 4; ++i) {
      auto& row = panel.row[lane / 4 + 8 * (i % 2)];
      const std::size_t k = 2 * (lane % 4) + 8 * (i / 2);
      row[k] = value_of(a[lane][i], bf16);
      row[k + 1] = value_of(a[lane][i] >> 16, bf16);
    }
  }
}

RunningAccumulator* find(WarpMmas& mmas, const void* first_lane) {
  const auto found =
      std::find_if(mmas.accumulators.begin(), mmas.accumulators.end(),
                   [&](const RunningAccumulator& item) { return item.lanes[0] == first_lane; });
  return found == mmas.accumulators.end() ? nullptr : &*found;
}

bool is_poisoned(const RunningAccumulator& accumulator) {
  for (const float* lane : accumulator.lanes) {
    for (int i = 0; i < 4 * accumulator.tiles; ++i) {
      uint32_t bits;
      std::memcpy(&bits, lane + i, sizeof bits);
      if (bits != kPoison) return false;
    }
  }
  return true;
}

}  // namespace

// What every warp of the group must agree on, and the A registers of this one.
double Block::wgmma(Warp& warp, const Group& group) {
  const Op& call = *group.first;
  WarpMmas& mmas = warp.mmas;
  if (!mmas.fenced) {
    fault("H21", &warp, &call, "no wgmma_fence since registers of an MMA were last touched");
    return 0;
  }
  const auto quarter = static_cast<std::size_t>(warp.index % 4);
  GroupMmas& all = group_mmas_[static_cast<std::size_t>(warp.index / 4)];
  const uint32_t position = mmas.issued - all.completed;
  if (position == all.running.size()) {
    all.running.push_back({call.site, call.b_descriptor, decode_wgmma_operand(call.b_descriptor),
                           call.index, call.transposed, call.bf16, call.flag});
  }
  GroupMma& mma = all.running[position];
  if (mma.b.fault != nullptr) {
    fault("H15", &warp, &call, fmt::format("descriptor: {}", mma.b.fault));
    return 0;
  }
  if (mma.descriptor != call.b_descriptor || mma.tiles != call.index ||
      mma.accumulate != call.flag || !(mma.site == call.site)) {
    fault("H17", &warp, &call, "the warps of a warpgroup issue different MMAs");
    return 0;
  }
  ++mmas.issued;
  if (!shadow_wgmma(warp, call) || !hold_accumulator(warp, group)) return 0;
  mma.accumulator[quarter] = static_cast<float*>(call.target);
  RunningOperand held{.mma = mmas.issued, .site = call.site};
  each_lane(group.mask, [&](int l) {
    const auto lane = static_cast<std::size_t>(l);
    held.lanes[lane] = static_cast<const uint32_t*>(op(warp, l).source);
    std::memcpy(held.words[lane].data(), held.lanes[lane], sizeof held.words[lane]);
  });
  mma.a[quarter] = held.words;
  mmas.operands.push_back(held);
  mma.warps |= 1u << quarter;
  finish_lanes(warp, group.mask);
  const Timing& timing = grid_.timing();
  if (mma.warps != 15) return timing(cost::kWgmmaIssue);
  const double interval = timing(mma.tiles == 8 ? cost::kWgmmaN64 : cost::kWgmmaN128);
  pipe_free_ = std::max(pipe_free_, grid_.now()) + grid_.schedule().delay(Delay::mma, interval);
  const uint32_t id = grid_.new_async();
  AsyncOp& async = grid_.async(id);
  async.kind = AsyncOp::Kind::wgmma;
  async.by = record_of(warp, call);
  ++in_flight_;
  grid_.queue_async(index_, id, pipe_free_ + timing(cost::kWgmmaLatency));
  return timing(cost::kWgmmaIssue);
}

/// What the warp reads of B, against what is ordered before it.
bool Block::shadow_wgmma(Warp& warp, const Op& call) {
  AccessRecord note = record_of(warp, call);
  note.tensor = warp.expected;
  note.tensor_block = warp.expected_block;
  const uint32_t record = shadow_.add_record(note);
  const Accessor by{&warp.clock, loads_component(warp.index), warp.mmas.issued, record, true,
                    false};
  shadow_operand(warp, call, decode_wgmma_operand(call.b_descriptor), call.transposed,
                 kColumns * call.index, by, warp.expected, warp.expected_block);
  return !grid_.stopped();
}

/// Takes the accumulator's registers away until a wait.
bool Block::hold_accumulator(Warp& warp, const Group& group) {
  const Op& call = *group.first;
  WarpMmas& mmas = warp.mmas;
  RunningAccumulator* running = find(mmas, op(warp, 0).target);
  if (running != nullptr) {
    if (options_.values && !is_poisoned(*running)) {
      fault("H21", &warp, &call, "the accumulator has been touched while an MMA may run");
      return false;
    }
    running->last = mmas.issued;
    return true;
  }
  RunningAccumulator taken;
  taken.tiles = call.index;
  taken.last = mmas.issued;
  const auto columns = static_cast<std::size_t>(kColumns * call.index);
  taken.values.resize(kRows * columns);
  each_lane(group.mask, [&](int l) {
    float* registers = static_cast<float*>(op(warp, l).target);
    taken.lanes[static_cast<std::size_t>(l)] = registers;
    if (!options_.values) {
      // What a run without values finds here decides its branches, so it must not be garbage.
      if (!call.flag) std::fill_n(registers, 4 * call.index, 0.0F);
      return;
    }
    for (int tile = 0; tile < call.index; ++tile) {
      for (int e = 0; e < 4; ++e) {
        const Place at = place_of(l, tile, e);
        float& value = registers[4 * tile + e];
        taken.values[static_cast<std::size_t>(at.row) * columns +
                     static_cast<std::size_t>(at.column)] = value;
        std::memcpy(&value, &kPoison, sizeof value);
      }
    }
  });
  mmas.accumulators.push_back(std::move(taken));
  return true;
}

void Block::run_wgmma(int first_warp) {
  GroupMmas& all = group_mmas_[static_cast<std::size_t>(first_warp / 4)];
  const GroupMma mma = std::move(all.running.front());
  all.running.pop_front();
  ++all.completed;
  if (options_.values) {
    load_panel(shared(), mma.b, mma.transposed, mma.bf16, kColumns * mma.tiles, *panel_b_);
  }
  for (int quarter = 0; quarter < 4; ++quarter) {
    Warp& warp = warps_[static_cast<std::size_t>(first_warp + quarter)];
    if (options_.values) {
      load_fragments(mma.a[static_cast<std::size_t>(quarter)], mma.bf16, *panel_a_);
      RunningAccumulator& d = *find(warp.mmas, mma.accumulator[static_cast<std::size_t>(quarter)]);
      multiply(*panel_a_, *panel_b_, kColumns * mma.tiles, mma.accumulate,
               {d.values.data(), kRows, static_cast<std::size_t>(kColumns * mma.tiles)});
    }
    ++warp.mmas.completed;
    if (warp.mmas.awaited == 0 || warp.mmas.completed < warp.mmas.awaited) continue;
    if (!settle(warp)) return;
    finish_lanes(warp, warp.blocked);
    wake(warp, grid_.schedule().delay(Delay::wake, grid_.timing()(cost::kIssue)));
  }
}

double Block::wgmma_wait(Warp& warp, const Group& group) {
  WarpMmas& mmas = warp.mmas;
  const auto groups = static_cast<int>(mmas.group_ends.size()) - group.first->index;
  mmas.awaited = groups > 0 ? mmas.group_ends[static_cast<std::size_t>(groups - 1)] : 0;
  if (mmas.completed < mmas.awaited) {
    warp.blocked |= group.mask;
    return 0;
  }
  if (!settle(warp)) return 0;
  finish_lanes(warp, group.mask);
  return grid_.timing()(cost::kIssue);
}

/// The wait is over: registers come back, and what was read may be given away.
bool Block::settle(Warp& warp) {
  WarpMmas& mmas = warp.mmas;
  const uint32_t upto = mmas.awaited;
  mmas.awaited = 0;
  mmas.fenced = false;
  if (upto == 0) return true;
  auto& known = warp.clock.k[static_cast<std::size_t>(loads_component(warp.index))];
  known = std::max(known, upto);
  for (const RunningOperand& held : mmas.operands) {
    if (held.mma > upto || !options_.values) continue;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      if (std::memcmp(held.lanes[lane], held.words[lane].data(), sizeof held.words[lane]) == 0) {
        continue;
      }
      fault("H21", &warp, &op(warp, __builtin_ctz(warp.waiting)),
            fmt::format("A registers of the MMA at {}:{} have been touched while it may run",
                        held.site.file, held.site.line));
      return false;
    }
  }
  std::erase_if(mmas.operands, [&](const RunningOperand& held) { return held.mma <= upto; });
  for (RunningAccumulator& accumulator : mmas.accumulators) {
    if (accumulator.last <= upto && !write_back(warp, accumulator)) return false;
  }
  std::erase_if(mmas.accumulators,
                [&](const RunningAccumulator& item) { return item.last <= upto; });
  return true;
}

bool Block::write_back(const Warp& warp, RunningAccumulator& accumulator) {
  if (!options_.values) return true;
  if (!is_poisoned(accumulator)) {
    fault("H21", &warp, &op(warp, __builtin_ctz(warp.waiting)),
          "the accumulator has been touched while an MMA may run");
    return false;
  }
  const auto columns = static_cast<std::size_t>(kColumns * accumulator.tiles);
  for (int lane = 0; lane < 32; ++lane) {
    for (int tile = 0; tile < accumulator.tiles; ++tile) {
      for (int e = 0; e < 4; ++e) {
        const Place at = place_of(lane, tile, e);
        accumulator.lanes[static_cast<std::size_t>(lane)][4 * tile + e] =
            accumulator.values[static_cast<std::size_t>(at.row) * columns +
                               static_cast<std::size_t>(at.column)];
      }
    }
  }
  return true;
}

double Block::wgmma_pin(Warp& warp, const Group& group) {
  warp.mmas.fenced = false;
  if (find(warp.mmas, op(warp, 0).target) != nullptr) {
    fault("H21", &warp, group.first, "an accumulator is used while an MMA on it may run");
    return 0;
  }
  finish_lanes(warp, group.mask);
  return 0;
}

void Block::check_wgmma_exit() {
  for (const Warp& warp : warps_) {
    if (warp.mmas.operands.empty()) continue;
    fault("H21", nullptr, nullptr,
          fmt::format("{} leaves with MMAs that it has not waited for", warp_name(warp.index)));
    return;
  }
}

}  // namespace deuce::emulator
