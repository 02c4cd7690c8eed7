// SPDX-License-Identifier: Apache-2.0
// Step 5: the second role. A warp of its own issues the MMAs, so that softmax threads only wait for
// what they need: S. Two more barriers: s_ready says that QK is done, po_ready that all rows of P
// are stored and O may be added to. QK of the next tile still follows PV of this one.
#include "roles.h"

namespace deuce::ladder {
namespace {

constexpr uint32_t kS = 0, kO = 128;

struct Storage {
  Tile q, kv[kRing];
  uint32_t tensor_memory;
  Barrier q_arrived, kv_arrived[kRing], kv_released[kRing], s_ready, po_ready, o_ready;
};

const std::vector<WarpRange> kRoles{
    {Role::softmax, 0, 4, 128}, {Role::mma, 4, 1, 128}, {Role::load, 5, 1, 128}};

const std::vector<Edge> kEdges =
    common_edges<Storage>(1) +
    std::vector<Edge>{edge("po_ready", {{{Role::softmax, By::each_thread}}}, Role::mma, 1,
                           "P, and O", offsetof(Storage, po_ready)),
                      edge("o_ready", {{{Role::mma, By::commit}}}, Role::softmax, 1, "O",
                           offsetof(Storage, o_ready))};

void issue_mmas(Machine& machine, Storage& shared) {
  if (!machine.elect()) return;
  auto ring = Ring<kRing>::consumer();
  const auto take = [&]() -> const Tile& {
    machine.wait(shared.kv_arrived[ring.slot()], ring.phase());
    return shared.kv[ring.slot()];
  };
  const auto release = [&] {
    machine.commit(shared.kv_released[ring.slot()]);
    ring.advance();
  };
  machine.wait(shared.q_arrived, 0);
  for (int tile = 0; tile < kTiles; ++tile) {
    issue_scores(machine, kS, shared.q, take());
    machine.commit(shared.s_ready);
    release();
    const Tile& v = take();
    machine.wait(shared.po_ready, tile);
    machine.fence_after_sync();
    issue_output(machine, kO, kS, v, tile == 0);
    if (tile + 1 == kTiles) machine.commit(shared.o_ready);
    release();
  }
}

void softmax(Machine& machine, Storage& shared, const Inputs& in) {
  RowState state;
  for (int tile = 0; tile < kTiles; ++tile) {
    machine.wait(shared.s_ready, tile);  // QK was issued behind PV, so PV is done as well
    machine.fence_after_sync();
    const Scores scores = read_scores(machine, kS);
    const float shrink = update_max(machine, scores, state);
    write_probabilities(machine, scores, kS, shrink, state);
    if (tile > 0) scale_output(machine, kO, shrink);
    machine.fence_before_sync();
    machine.arrive(shared.po_ready);
  }
  machine.wait(shared.o_ready, 0);
  machine.fence_after_sync();
  finish_output(machine, kO, state.sum, [&](int column, float value) {
    machine.store_global(in.out + machine.thread() * kDim + column, value);
  });
}

void kernel(Machine& machine, const Inputs& in) {
  auto& shared = machine.shared<Storage>();
  init_edges(machine, &shared, kEdges, kRoles);
  begin_block(machine, shared.tensor_memory);
  switch (role_of(machine.warp(), kRoles)) {
    case Role::load: load_tiles(machine, shared, in, 0); break;
    case Role::mma: issue_mmas(machine, shared); break;
    default: softmax(machine, shared, in); break;
  }
  end_block(machine, shared.tensor_memory);
}

}  // namespace
}  // namespace deuce::ladder

int main() {
  namespace ladder = deuce::ladder;
  return ladder::run_step("05_mma_role",
                          ladder::kernel_spec<ladder::Storage>(ladder::kRoles, ladder::kEdges),
                          ladder::kernel);
}
