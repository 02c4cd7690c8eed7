// SPDX-License-Identifier: Apache-2.0
// Step 3: tiles of 128 keys, brought by one tensor copy each and multiplied by the tensor core.
// S, P and O live in tensor memory; a thread sees its own row of them. Nothing overlaps yet: copy,
// QK, softmax and PV follow each other, and everybody waits for each of them.
#include "tiles.h"

namespace deuce::ladder {
namespace {

constexpr uint32_t kS = 0, kO = 128;  // columns of tensor memory

struct Storage {
  Tile q, k, v;
  uint32_t tensor_memory;
  Barrier arrived, s_ready, o_ready;
};

void attend(Machine& machine, const Inputs& in) {
  auto& shared = machine.shared<Storage>();
  const bool leader = machine.thread() == 0;
  if (leader) {
    for (Barrier* barrier : {&shared.arrived, &shared.s_ready, &shared.o_ready}) {
      machine.init(*barrier, 1);
    }
  }
  begin_block(machine, shared.tensor_memory);
  RowState state;
  for (int tile = 0; tile < kTiles; ++tile) {
    if (leader) {
      machine.arrive_expect(shared.arrived, (tile == 0 ? 3 : 2) * sizeof(Tile));
      if (tile == 0) copy_tile(machine, shared.q, in.q_map, 0, shared.arrived);
      copy_tile(machine, shared.k, in.k_map, tile, shared.arrived);
      copy_tile(machine, shared.v, in.v_map, tile, shared.arrived);
    }
    machine.wait(shared.arrived, tile);
    if (leader) {
      issue_scores(machine, kS, shared.q, shared.k);
      machine.commit(shared.s_ready);
    }
    machine.wait(shared.s_ready, tile);
    machine.fence_after_sync();
    const Scores scores = read_scores(machine, kS);
    const float shrink = update_max(machine, scores, state);
    write_probabilities(machine, scores, kS, shrink, state);
    if (tile > 0) scale_output(machine, kO, shrink);
    machine.fence_before_sync();
    machine.sync_block();  // all rows of P are there
    machine.fence_after_sync();
    if (leader) {
      issue_output(machine, kO, kS, shared.v, tile == 0);
      machine.commit(shared.o_ready);
    }
    machine.wait(shared.o_ready, tile);  // K and V may be overwritten, O may be touched
    machine.fence_after_sync();
  }
  finish_output(machine, kO, state.sum, [&](int column, float value) {
    machine.store_global(in.out + machine.thread() * kDim + column, value);
  });
  end_block(machine, shared.tensor_memory);
}

}  // namespace
}  // namespace deuce::ladder

int main() {
  deuce::emulator::KernelSpec kernel;
  kernel.threads = deuce::ladder::kRows;
  kernel.shared_bytes = sizeof(deuce::ladder::Storage);
  kernel.roles = {{deuce::Role::attend, 0, 4, 128}};
  return deuce::ladder::run_step("03_tensor_core", kernel, deuce::ladder::attend);
}
