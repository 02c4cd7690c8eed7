// SPDX-License-Identifier: Apache-2.0
// A trap met on an H200, as a kernel of twenty lines: consumers take ring stages round robin while
// stages % consumers is not 0. The wait for lap k of a stage then follows a lap that another
// consumer waited for, and parity alone cannot tell lap k from lap k - 2.
#include <gtest/gtest.h>

#include <vector>

#include "emulator/machine.h"

namespace deuce::emulator {
namespace {

constexpr int kConsumers = 4, kTiles = 40, kTileBytes = 128, kMostStages = 8;

struct Storage {
  alignas(128) unsigned char tiles[kMostStages][kTileBytes];
  Barrier arrived[kMostStages], released[kMostStages];
};

KernelSpec ring_kernel(int stages) {
  KernelSpec spec;
  spec.name = "ring";
  spec.threads = 32 * (kConsumers + 1);
  spec.shared_bytes = sizeof(Storage);
  spec.roles = {{Role::attend, 0, kConsumers, 128}, {Role::load, kConsumers, 1, 128}};
  // `waits` names the role that must see every phase; here only one warp of it takes each tile.
  spec.edges = {Edge{.name = "kv_arrived",
                     .arrives = {{{Role::load, By::bytes}}},
                     .waits_too = {{Role::attend, Role::idle, Role::idle, Role::idle, Role::idle}},
                     .slots = stages,
                     .protects = "tile",
                     .offset = offsetof(Storage, arrived)},
                Edge{.name = "kv_released",
                     .arrives = {{{Role::attend, By::one_lane}}},
                     .waits = Role::load,
                     .slots = stages,
                     .protects = "tile",
                     .offset = offsetof(Storage, released)}};
  spec.shared_ranges = {{"tile", offsetof(Storage, tiles), kTileBytes, stages}};
  return spec;
}

void load_tiles(Machine& machine, Storage& shared, const unsigned char* source, int stages) {
  for (int tile = 0; tile < kTiles; ++tile) {
    const int stage = tile % stages;
    machine.wait(shared.released[stage], tile / stages - 1);
    if (machine.elect()) {
      machine.arrive_expect(shared.arrived[stage], kTileBytes);
      machine.copy_bulk(shared.tiles[stage], source + kTileBytes * tile, kTileBytes,
                        shared.arrived[stage]);
    }
    machine.sync_warp();
  }
  for (int tile = kTiles; tile < kTiles + stages; ++tile) {
    machine.wait(shared.released[tile % stages], tile / stages - 1);
  }
}

void attend_tiles(Machine& machine, Storage& shared, int stages) {
  for (int tile = machine.warp(); tile < kTiles; tile += kConsumers) {
    const int stage = tile % stages;
    machine.at_block(tile);
    machine.wait(shared.arrived[stage], tile / stages);
    EXPECT_EQ(machine.load_shared(shared.tiles[stage][machine.lane()]), tile);
    machine.fence_async();
    machine.sync_warp();
    if (machine.elect()) machine.arrive(shared.released[stage]);
    machine.sync_warp();
  }
}

Report run_ring(int stages, Mode mode) {
  std::vector<unsigned char> memory(kTiles * kTileBytes + 16);
  auto* source = memory.data() + (16 - reinterpret_cast<uintptr_t>(memory.data()) % 16) % 16;
  for (int i = 0; i < kTiles * kTileBytes; ++i) {
    source[i] = static_cast<unsigned char>(i / kTileBytes);
  }
  const KernelSpec kernel = ring_kernel(stages);
  Launch launch;
  launch.kernel = &kernel;
  launch.memory = {{"tiles", source, kTiles * kTileBytes, false}};
  launch.entry = [&](Machine& machine) {
    auto& shared = machine.shared<Storage>();
    if (machine.thread() == 0) {
      for (int stage = 0; stage < stages; ++stage) {
        machine.init(shared.arrived[stage], 1);
        machine.init(shared.released[stage], 1);
      }
      machine.fence_barrier_init();
    }
    machine.sync_block();
    if (machine.warp() == kConsumers) {
      load_tiles(machine, shared, source, stages);
    } else {
      attend_tiles(machine, shared, stages);
    }
  };
  Options options;
  options.run = {mode, mode == Mode::adversarial ? 0 : 0, 3};
  return run(launch, options).report;
}

constexpr Mode kModes[] = {Mode::timed, Mode::eager, Mode::lazy, Mode::random, Mode::adversarial};

TEST(RingTrap, StagesThatConsumersDoNotDivideAreReportedInEveryMode) {
  for (const int stages : {3, 5, 6, 7}) {
    for (const Mode mode : kModes) {
      const Report report = run_ring(stages, mode);
      EXPECT_TRUE(report.has("H6")) << stages << " stages\n" << report.text();
      EXPECT_NE(report.text().find("kv_arrived"), std::string::npos) << report.text();
    }
  }
}

TEST(RingTrap, StagesThatConsumersDivideAreClean) {
  for (const int stages : {4, 8}) {
    for (const Mode mode : kModes) EXPECT_EQ(run_ring(stages, mode).text(), "") << stages;
  }
}

}  // namespace
}  // namespace deuce::emulator
