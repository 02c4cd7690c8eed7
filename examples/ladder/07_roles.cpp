// SPDX-License-Identifier: Apache-2.0
// Step 7: five roles. Waiting for O and rescaling it leave the softmax warps: correction warps do
// both, told by one float a row. The epilogue writes the result. This is the cast of
// src/kernel/blackwell, which adds lazy rescaling, P in two parts, many requests, masks and merges.
#include "mma_role.h"

namespace deuce::ladder {
namespace {

struct Storage {
  Tile q, kv[kRing];
  float shrink[kRows];  // what O must shrink by; at the end the row's sum
  float out[kRows][kDim];
  uint32_t tensor_memory;
  Barrier q_arrived, kv_arrived[kRing], kv_released[kRing];
  Barrier s_ready[kSlots], po_ready[kSlots], o_ready[kSlots];
  Barrier stats_ready, stats_taken, o_staged;
};

const std::vector<WarpRange> kRoles{{Role::softmax, 0, 4, 128},
                                    {Role::correction, 4, 4, 128},
                                    {Role::epilogue, 8, 4, 128},
                                    {Role::mma, 12, 1, 128},
                                    {Role::load, 13, 1, 128}};

const std::vector<Edge> kEdges =
    common_edges<Storage>(kSlots) +
    std::vector<Edge>{
        edge("po_ready", {{{Role::softmax, By::each_thread}, {Role::correction, By::each_thread}}},
             Role::mma, kSlots, "P, and O", offsetof(Storage, po_ready)),
        edge("o_ready", {{{Role::mma, By::commit}}}, Role::correction, kSlots, "O",
             offsetof(Storage, o_ready)),
        edge("stats_ready", {{{Role::softmax, By::each_thread}}}, Role::correction, 1, "shrink",
             offsetof(Storage, stats_ready)),
        edge("stats_taken", {{{Role::correction, By::each_thread}}}, Role::softmax, 1, "shrink",
             offsetof(Storage, stats_taken)),
        edge("o_staged", {{{Role::correction, By::each_thread}}}, Role::epilogue, 1, "out",
             offsetof(Storage, o_staged))};

void softmax(Machine& machine, Storage& shared) {
  RowState state;
  const auto publish = [&](float value, int use) {
    machine.wait(shared.stats_taken, use - 1);
    machine.store_shared(shared.shrink[machine.thread()], value);
    machine.arrive(shared.stats_ready);
  };
  for (int tile = 0; tile < kTiles; ++tile) {
    const int slot = tile % kSlots;
    machine.wait(shared.s_ready[slot], tile / kSlots);
    machine.fence_after_sync();
    const Scores scores = read_scores(machine, s_column(slot));
    const float shrink = update_max(machine, scores, state);
    publish(shrink, tile);
    write_probabilities(machine, scores, s_column(slot), shrink, state);
    machine.fence_before_sync();
    machine.arrive(shared.po_ready[slot]);
  }
  publish(state.sum, kTiles);
  machine.wait(shared.stats_taken, kTiles);
}

void correction(Machine& machine, Storage& shared) {
  const int row = machine.thread() % kRows;
  auto outputs = Ring<kSlots>::consumer();
  const auto take_stats = [&](int use) {
    machine.wait(shared.stats_ready, use);
    const float value = machine.load_shared(shared.shrink[row]);
    machine.arrive(shared.stats_taken);
    return value;
  };
  const auto wait_output = [&] {
    machine.wait(shared.o_ready[outputs.slot()], outputs.phase());
    machine.fence_after_sync();
    outputs.advance();
  };
  for (int tile = 0; tile < kTiles; ++tile) {
    const float shrink = take_stats(tile);
    if (tile > 0) wait_output();
    if (tile > 0) scale_output(machine, kO, shrink);
    machine.fence_before_sync();
    machine.arrive(shared.po_ready[tile % kSlots]);
  }
  const float sum = take_stats(kTiles);
  wait_output();
  finish_output(machine, kO, sum, [&](int column, float value) {
    machine.store_shared(shared.out[row][column], value);
  });
  machine.arrive(shared.o_staged);
}

void epilogue(Machine& machine, Storage& shared, const Inputs& in) {
  machine.wait(shared.o_staged, 0);
  for (int i = machine.thread() % kRows; i < kRows * kDim; i += kRows) {  // neighbours together
    machine.store_global(in.out + i, machine.load_shared(shared.out[i / kDim][i % kDim]));
  }
}

void kernel(Machine& machine, const Inputs& in) {
  auto& shared = machine.shared<Storage>();
  init_edges(machine, &shared, kEdges, kRoles);
  begin_block(machine, shared.tensor_memory);
  switch (role_of(machine.warp(), kRoles)) {
    case Role::load: load_tiles(machine, shared, in, kSlots - 1); break;
    case Role::mma: issue_mmas(machine, shared); break;
    case Role::softmax: softmax(machine, shared); break;
    case Role::correction: correction(machine, shared); break;
    default: epilogue(machine, shared, in); break;
  }
  end_block(machine, shared.tensor_memory);
}

}  // namespace
}  // namespace deuce::ladder

int main() {
  namespace ladder = deuce::ladder;
  return ladder::run_step("07_roles",
                          ladder::kernel_spec<ladder::Storage>(ladder::kRoles, ladder::kEdges),
                          ladder::kernel);
}
