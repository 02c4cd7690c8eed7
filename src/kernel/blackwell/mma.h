// SPDX-License-Identifier: Apache-2.0
// The mma role: one elected lane issues S = Q K^T and O += P V and the commits behind them.
// QK of block c + slots - 1 is issued before PV of block c: with two slots softmax of one block
// runs while the tensor core computes the scores of the next.
#pragma once

#include "kernel/blackwell/descriptors.h"
#include "kernel/blackwell/pieces.h"
#include "kernel/ring.h"

namespace deuce::blackwell {

template <Config kConfig, class Machine>
class Mma {
 public:
  DEUCE_DEVICE Mma(Machine& machine, SharedStorage<kConfig>& shared)
      : machine_(machine), shared_(shared) {}

  DEUCE_DEVICE void run() {
    constexpr int kAhead = kConfig.score_slots - 1;
    Pieces<kConfig, Machine> pieces(machine_, shared_);
    for (PieceRecord piece; pieces.next(piece); queries_.advance()) {
      const int blocks = piece.blocks();
      if constexpr (Machine::kTraces)
        machine_.trace_begin({Event::mma_wait_Q, queries_.slot(), queries_.phase(), first_block_});
      machine_.wait(shared_.q_arrived[queries_.slot()], queries_.phase());
      if constexpr (Machine::kTraces) machine_.trace_end({Event::mma_wait_Q});
      for (int j = 0; j < kAhead && j < blocks; ++j) scores(first_block_ + j, j + 1 == blocks);
      for (int j = 0; j < blocks; ++j) {
        if (j + kAhead < blocks) scores(first_block_ + j + kAhead, j + kAhead + 1 == blocks);
        output(first_block_ + j, j == 0);
      }
      first_block_ += blocks;
    }
  }

 private:
  using Columns = TensorColumns<kConfig>;
  using Tiles = TileDescriptors<kConfig>;

  /// S[slot] = Q K^T of block `block`, then its K tile is free, and after the last one Q.
  DEUCE_DEVICE void scores(int block, bool last_of_piece) {
    machine_.at_block(block);
    const int tile = tiles_.slot();
    if constexpr (Machine::kTraces)
      machine_.trace_begin({Event::mma_wait_K, tiles_.slot(), tiles_.phase(), block});
    machine_.wait(shared_.kv_arrived[tile], tiles_.phase());
    if constexpr (Machine::kTraces) machine_.trace_end({Event::mma_wait_K});
    if constexpr (kConfig.strict_order) {
      if (block >= kConfig.score_slots) {
        if constexpr (Machine::kTraces)
          machine_.trace_begin({Event::mma_wait_O, outputs_.slot(), outputs_.phase(), block});
        machine_.wait(shared_.o_ready[outputs_.slot()], outputs_.phase());
        if constexpr (Machine::kTraces) machine_.trace_end({Event::mma_wait_O});
        outputs_.advance();
      }
    }
    machine_.fence_after_sync();
    if constexpr (Machine::kTraces)
      machine_.trace_begin({Event::mma_issue_QK, scores_.slot(), scores_.phase(), block});
    if (machine_.elect()) {
      machine_.expect_operand('k', block);
      const uint64_t q = operand_descriptor<Tiles::kRowsByDim>(
          machine_.shared_address(&shared_.q[queries_.slot()]));
      const uint64_t k =
          operand_descriptor<Tiles::kRowsByDim>(machine_.shared_address(&shared_.kv[tile]));
      DEUCE_UNROLL
      for (int step = 0; step < Tiles::kQkSteps; ++step) {
        machine_.mma_shared(Columns::scores(scores_.slot()), q + Tiles::qk_step(step),
                            k + Tiles::qk_step(step), Tiles::kQk, step > 0);
      }
      if constexpr (Machine::kTraces)
        machine_.trace_instant({Event::commit_s_ready, scores_.slot(), scores_.phase(), block});
      machine_.commit(shared_.s_ready[scores_.slot()]);
      if constexpr (Machine::kTraces)
        machine_.trace_instant({Event::commit_kv_released, tiles_.slot(), tiles_.phase(), block});
      machine_.commit(shared_.kv_released[tile]);
      if (last_of_piece) {
        if constexpr (Machine::kTraces)
          machine_.trace_instant(
              {Event::commit_q_released, queries_.slot(), queries_.phase(), block});
        machine_.commit(shared_.q_released[queries_.slot()]);
      }
    }
    machine_.sync_warp();
    if constexpr (Machine::kTraces) machine_.trace_end({Event::mma_issue_QK});
    tiles_.advance();
    scores_.advance();
  }

  /// O (+)= P V of block `block`: three quarters of the keys, then the rest once P is complete.
  DEUCE_DEVICE void output(int block, bool first_of_piece) {
    machine_.at_block(block);
    const int tile = tiles_.slot();
    const int slot = probabilities_.slot();
    constexpr int kBodySteps = Tiles::kPvSteps * 3 / 4;
    if constexpr (Machine::kTraces)
      machine_.trace_begin({Event::mma_wait_V, tiles_.slot(), tiles_.phase(), block});
    machine_.wait(shared_.kv_arrived[tile], tiles_.phase());
    if constexpr (Machine::kTraces) machine_.trace_end({Event::mma_wait_V});
    if constexpr (Machine::kTraces)
      machine_.trace_begin(
          {Event::mma_wait_PO, probabilities_.slot(), probabilities_.phase(), block});
    machine_.wait(shared_.po_ready[slot], probabilities_.phase());
    if constexpr (Machine::kTraces) machine_.trace_end({Event::mma_wait_PO});
    machine_.fence_after_sync();
    if constexpr (Machine::kTraces)
      machine_.trace_begin(
          {Event::mma_issue_PV, probabilities_.slot(), probabilities_.phase(), block});
    const uint64_t v =
        operand_descriptor<Tiles::kDimByKeys>(machine_.shared_address(&shared_.kv[tile]));
    multiply_values(slot, v, block, 0, kBodySteps, first_of_piece);
    if constexpr (Machine::kTraces)
      machine_.trace_begin(
          {Event::mma_wait_P_tail, probabilities_.slot(), probabilities_.phase(), block});
    machine_.wait(shared_.p_tail_ready[slot], probabilities_.phase());
    if constexpr (Machine::kTraces) machine_.trace_end({Event::mma_wait_P_tail});
    machine_.fence_after_sync();
    multiply_values(slot, v, block, kBodySteps, Tiles::kPvSteps, first_of_piece);
    if (machine_.elect()) {
      if constexpr (Machine::kTraces)
        machine_.trace_instant(
            {Event::commit_o_ready, probabilities_.slot(), probabilities_.phase(), block});
      machine_.commit(shared_.o_ready[slot]);
      if constexpr (Machine::kTraces)
        machine_.trace_instant({Event::commit_kv_released, tiles_.slot(), tiles_.phase(), block});
      machine_.commit(shared_.kv_released[tile]);
    }
    machine_.sync_warp();
    if constexpr (Machine::kTraces) machine_.trace_end({Event::mma_issue_PV});
    tiles_.advance();
    probabilities_.advance();
  }

  DEUCE_DEVICE void multiply_values(int slot, uint64_t v, int block, int first, int last,
                                    bool first_of_piece) {
    if (machine_.elect()) {
      machine_.expect_operand('v', block);
      DEUCE_UNROLL
      for (int step = first; step < last; ++step) {
        machine_.mma_tensor(Columns::kOutput,
                            Columns::probabilities(slot) + 8 * static_cast<uint32_t>(step),
                            v + Tiles::pv_step(step), Tiles::kPv, step > 0 || !first_of_piece);
      }
    }
    machine_.sync_warp();
  }

  Machine& machine_;
  SharedStorage<kConfig>& shared_;
  int first_block_ = 0;  // KV blocks of this block's earlier pieces; never reset
  Ring<Config::kQueryStages> queries_ = Ring<Config::kQueryStages>::consumer();
  Ring<kConfig.ring_slots()> tiles_ = Ring<kConfig.ring_slots()>::consumer();
  Ring<kConfig.score_slots> scores_ = Ring<kConfig.score_slots>::consumer();
  Ring<kConfig.score_slots> probabilities_ = Ring<kConfig.score_slots>::consumer();
  Ring<kConfig.score_slots> outputs_ = Ring<kConfig.score_slots>::consumer();
};

}  // namespace deuce::blackwell
