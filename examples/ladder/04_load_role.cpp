// SPDX-License-Identifier: Apache-2.0
// Step 4: the first role. A warp of its own loads K and V into a ring of tiles and runs ahead as
// far as the ring allows; memory is never idle while softmax computes. Two barriers a tile say that
// it has arrived and that it has been read.
#include "roles.h"

namespace deuce::ladder {
namespace {

constexpr uint32_t kS = 0, kO = 128;

struct Storage {
  Tile q, kv[kRing];
  uint32_t tensor_memory;
  Barrier q_arrived, kv_arrived[kRing], kv_released[kRing], s_ready, o_ready;
};

void load(Machine& machine, Storage& shared, const Inputs& in) {
  if (!machine.elect()) return;
  machine.arrive_expect(shared.q_arrived, sizeof(Tile));
  copy_tile(machine, shared.q, in.q_map, 0, shared.q_arrived);
  auto ring = Ring<kRing>::producer();
  for (int use = 0; use < 2 * kTiles; ++use, ring.advance()) {  // K0 V0 K1 V1 ...
    machine.wait(shared.kv_released[ring.slot()], ring.phase());
    Barrier& arrived = shared.kv_arrived[ring.slot()];
    machine.arrive_expect(arrived, sizeof(Tile));
    copy_tile(machine, shared.kv[ring.slot()], use % 2 == 0 ? in.k_map : in.v_map, use / 2,
              arrived);
  }
  for (int i = 0; i < kRing; ++i, ring.advance()) {  // stays until the last tile has been read
    machine.wait(shared.kv_released[ring.slot()], ring.phase());
  }
}

void attend(Machine& machine, Storage& shared, const Inputs& in) {
  const bool leader = machine.thread() == 0;
  RowState state;
  auto ring = Ring<kRing>::consumer();
  if (leader) machine.wait(shared.q_arrived, 0);
  for (int tile = 0; tile < kTiles; ++tile) {
    if (leader) {
      machine.wait(shared.kv_arrived[ring.slot()], ring.phase());
      issue_scores(machine, kS, shared.q, shared.kv[ring.slot()]);
      machine.commit(shared.s_ready);
      machine.commit(shared.kv_released[ring.slot()]);
    }
    ring.advance();
    machine.wait(shared.s_ready, tile);
    machine.fence_after_sync();
    const Scores scores = read_scores(machine, kS);
    const float shrink = update_max(machine, scores, state);
    write_probabilities(machine, scores, kS, shrink, state);
    if (tile > 0) scale_output(machine, kO, shrink);
    machine.fence_before_sync();
    machine.sync_named(1, kRows);
    machine.fence_after_sync();
    if (leader) {
      machine.wait(shared.kv_arrived[ring.slot()], ring.phase());
      issue_output(machine, kO, kS, shared.kv[ring.slot()], tile == 0);
      machine.commit(shared.o_ready);
      machine.commit(shared.kv_released[ring.slot()]);
    }
    ring.advance();
    machine.wait(shared.o_ready, tile);
    machine.fence_after_sync();
  }
  finish_output(machine, kO, state.sum, [&](int column, float value) {
    machine.store_global(in.out + machine.thread() * kDim + column, value);
  });
}

void kernel(Machine& machine, const Inputs& in) {
  auto& shared = machine.shared<Storage>();
  if (machine.thread() == 0) {
    for (Barrier& barrier : shared.kv_arrived) machine.init(barrier, 1);
    for (Barrier& barrier : shared.kv_released) machine.init(barrier, 1);
    for (Barrier* one : {&shared.q_arrived, &shared.s_ready, &shared.o_ready})
      machine.init(*one, 1);
  }
  begin_block(machine, shared.tensor_memory);
  if (machine.warp() == 4) load(machine, shared, in);
  if (machine.warp() < 4) attend(machine, shared, in);
  end_block(machine, shared.tensor_memory);
}

}  // namespace
}  // namespace deuce::ladder

int main() {
  using namespace deuce;
  const std::vector<WarpRange> roles{{Role::attend, 0, 4, 128}, {Role::load, 4, 1, 128}};
  return ladder::run_step("04_load_role", ladder::kernel_spec<ladder::Storage>(roles, {}),
                          ladder::kernel);
}
