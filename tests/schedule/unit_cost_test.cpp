// SPDX-License-Identifier: Apache-2.0
// Micro-kernels behind the timing table, as their sources describe them: each must take its own
// value of the table, so that no cost is charged twice or left out where operations meet.
#include <gtest/gtest.h>

#include <functional>

#include "emulator/machine.h"
#include "kernel/blackwell/descriptors.h"

namespace deuce::emulator {
namespace {

struct Storage {
  alignas(1024) unsigned char a[32768];
  unsigned char b[32768];
  Barrier first, second;
  uint32_t tensor_memory;
};

using Body = std::function<void(Machine&, Storage&, int rounds)>;

double cycles_of(const Body& body, int rounds) {
  KernelSpec spec;
  spec.name = "unit";
  spec.threads = 64;
  spec.shared_bytes = sizeof(Storage);
  spec.roles = {{Role::mma, 0, 1, 128}, {Role::softmax, 1, 1, 128}};
  Launch launch;
  launch.kernel = &spec;
  launch.entry = [&](Machine& machine) {
    auto& shared = machine.shared<Storage>();
    if (machine.warp() == 0) machine.allocate_tensor_memory(shared.tensor_memory, 512);
    if (machine.thread() == 0) {
      machine.init(shared.first, 1);
      machine.init(shared.second, 1);
      machine.fence_barrier_init();
    }
    machine.sync_block();
    body(machine, shared, rounds);
    machine.sync_block();
    if (machine.warp() == 0) machine.free_tensor_memory(0, 512);
  };
  Options options;
  options.values = false;
  const RunResult result = run(launch, options);
  EXPECT_EQ(result.report.text(), "");
  return result.cycles;
}

/// Cycles of one round, without start and end.
double round_of(const Body& body) { return (cycles_of(body, 30) - cycles_of(body, 10)) / 20; }

TEST(UnitCosts, AnArrivalReachesItsWaiterIn92Cycles) {
  const double round = round_of([](Machine& machine, Storage& shared, int rounds) {
    if (!machine.elect()) return;
    for (Phase phase = 0; phase < rounds; ++phase) {  // there and back
      if (machine.warp() == 0) machine.arrive(shared.first);
      machine.wait(machine.warp() == 0 ? shared.second : shared.first, phase);
      if (machine.warp() == 1) machine.arrive(shared.second);
    }
  });
  EXPECT_NEAR(round / 2, 92, 2);
}

TEST(UnitCosts, AWaitThatHasNothingToWaitForTakes30Cycles) {
  const double round = round_of([](Machine& machine, Storage& shared, int rounds) {
    for (int i = 0; i < rounds; ++i) machine.wait(shared.first, -1);
  });
  EXPECT_NEAR(round, 30, 2);
}

TEST(UnitCosts, ANamedBarrierTakes30Cycles) {
  const double round = round_of([](Machine& machine, Storage&, int rounds) {
    for (int i = 0; i < rounds; ++i) machine.sync_named(1, 64);
  });
  EXPECT_NEAR(round, 30, 2);
}

/// `count` MMAs of M128 N128 K16, a commit, and the issuing thread sees it.
double batch(int count, bool from_tensor) {
  using Tiles = blackwell::TileDescriptors<blackwell::Config{.head_dim = 128}>;
  return round_of([=](Machine& machine, Storage& shared, int rounds) {
    if (machine.warp() != 0 || !machine.elect()) return;
    const auto a =
        blackwell::operand_descriptor<Tiles::kRowsByDim>(machine.shared_address(&shared.a));
    const auto k =
        blackwell::operand_descriptor<Tiles::kRowsByDim>(machine.shared_address(&shared.b));
    const auto v =
        blackwell::operand_descriptor<Tiles::kDimByKeys>(machine.shared_address(&shared.b));
    for (Phase phase = 0; phase < rounds; ++phase) {
      for (int i = 0; i < count; ++i) {
        if (from_tensor) {
          machine.mma_tensor(256, 64, v, Tiles::kPv, i > 0);
        } else {
          machine.mma_shared(0, a, k, Tiles::kQk, i > 0);
        }
      }
      machine.commit(shared.first);
      machine.wait(shared.first, phase);
    }
  });
}

TEST(UnitCosts, OneMmaIsSeenAfter200CyclesFromSharedAnd168FromTensorMemory) {
  EXPECT_NEAR(batch(1, false), 200, 2);
  EXPECT_NEAR(batch(1, true), 168, 2);
}

// Published: 12 cycles more for a batch as a whole, which the model leaves out.
TEST(UnitCosts, EachFurtherMmaOfABatchTakes64Cycles) {
  for (const int count : {2, 4, 8}) {
    EXPECT_NEAR(batch(count, false), 200 + 64 * (count - 1), 12) << count;
    EXPECT_NEAR(batch(count, true), 168 + 64 * (count - 1), 12) << count;
  }
}

}  // namespace
}  // namespace deuce::emulator
