// SPDX-License-Identifier: Apache-2.0
// Step 6: ping-pong. Two slots of S and P: QK of the next tile is issued before PV of this one and
// runs while softmax computes (mma_role.h). The load warp brings tiles in that order, K K V K V.
// The price: "S is ready" no longer says that the PV before it is done, so O needs a barrier for
// every tile.
#include "mma_role.h"

namespace deuce::ladder {
namespace {

struct Storage {
  Tile q, kv[kRing];
  uint32_t tensor_memory;
  Barrier q_arrived, kv_arrived[kRing], kv_released[kRing];
  Barrier s_ready[kSlots], po_ready[kSlots], o_ready[kSlots];
};

const std::vector<WarpRange> kRoles{
    {Role::softmax, 0, 4, 128}, {Role::mma, 4, 1, 128}, {Role::load, 5, 1, 128}};

const std::vector<Edge> kEdges =
    common_edges<Storage>(kSlots) +
    std::vector<Edge>{edge("po_ready", {{{Role::softmax, By::each_thread}}}, Role::mma, kSlots,
                           "P, and O", offsetof(Storage, po_ready)),
                      edge("o_ready", {{{Role::mma, By::commit}}}, Role::softmax, kSlots, "O",
                           offsetof(Storage, o_ready))};

void softmax(Machine& machine, Storage& shared, const Inputs& in) {
  RowState state;
  auto outputs = Ring<kSlots>::consumer();
  const auto wait_output = [&] {  // the PV of the tile before is done
    machine.wait(shared.o_ready[outputs.slot()], outputs.phase());
    machine.fence_after_sync();
    outputs.advance();
  };
  for (int tile = 0; tile < kTiles; ++tile) {
    const int slot = tile % kSlots;
    machine.wait(shared.s_ready[slot], tile / kSlots);
    machine.fence_after_sync();
    const Scores scores = read_scores(machine, s_column(slot));
    const float shrink = update_max(machine, scores, state);
    write_probabilities(machine, scores, s_column(slot), shrink, state);
    if (tile > 0) wait_output();
    if (tile > 0) scale_output(machine, kO, shrink);
    machine.fence_before_sync();
    machine.arrive(shared.po_ready[slot]);
  }
  wait_output();
  finish_output(machine, kO, state.sum, [&](int column, float value) {
    machine.store_global(in.out + machine.thread() * kDim + column, value);
  });
}

void kernel(Machine& machine, const Inputs& in) {
  auto& shared = machine.shared<Storage>();
  init_edges(machine, &shared, kEdges, kRoles);
  begin_block(machine, shared.tensor_memory);
  switch (role_of(machine.warp(), kRoles)) {
    case Role::load: load_tiles(machine, shared, in, kSlots - 1); break;
    case Role::mma: issue_mmas(machine, shared); break;
    default: softmax(machine, shared, in); break;
  }
  end_block(machine, shared.tensor_memory);
}

}  // namespace
}  // namespace deuce::ladder

int main() {
  namespace ladder = deuce::ladder;
  return ladder::run_step("06_ping_pong",
                          ladder::kernel_spec<ladder::Storage>(ladder::kRoles, ladder::kEdges),
                          ladder::kernel);
}
