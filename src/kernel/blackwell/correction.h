// SPDX-License-Identifier: Apache-2.0
// The correction role: thread = row of the same lanes as softmax. Rescales O when a row's maximum
// has grown a lot, hands O to the next PV, and at the end of a piece writes the row's result.
// Short paths: statistics are given back as soon as they are read, and o_ready is only waited for
// when this warp rescales; even so every phase of it is observed once and in order.
#pragma once

#include "kernel/blackwell/output.h"
#include "kernel/ring.h"

namespace deuce::blackwell {

template <Config kConfig, class Machine>
class Correction {
 public:
  DEUCE_DEVICE Correction(Machine& machine, SharedStorage<kConfig>& shared, const Params& params)
      : machine_(machine), shared_(shared), params_(params), row_(machine.thread() % 128) {}

  DEUCE_DEVICE void run() {
    Pieces<kConfig, Machine> pieces(machine_, shared_);
    hand_over();  // the first PV may write O
    int block = 0;
    for (PieceRecord piece; pieces.next(piece);) {
      const int end = block + piece.blocks();
      machine_.at_block(block);
      if constexpr (Machine::kTraces) machine_.trace_begin(stats_wait(block));
      take_stats();  // first block: nothing to rescale
      if constexpr (Machine::kTraces) machine_.trace_end({Event::correction_wait_stats});
      if constexpr (Machine::kTraces) machine_.trace_instant(stats_arrival(block));
      machine_.arrive(shared_.stats_taken);
      for (++block; block < end; ++block) {
        machine_.at_block(block);
        correct(block);
      }
      if constexpr (Machine::kTraces) machine_.trace_begin(stats_wait(end - 1));
      take_stats();
      if constexpr (Machine::kTraces) machine_.trace_end({Event::correction_wait_stats});
      const float sum = machine_.load_shared(shared_.row_scale[row_]);
      const float max = machine_.load_shared(shared_.row_max[row_]);
      if constexpr (Machine::kTraces) machine_.trace_instant(stats_arrival(end - 1));
      machine_.arrive(shared_.stats_taken);
      observe(end);
      machine_.fence_after_sync();
      if constexpr (kConfig.row_replicas > 1) {
        const int row = row_ % kConfig.rows_per_replica();
        const int replica = row_ / kConfig.rows_per_replica();
        stage(partial_in_slot(params_, staging_slot<kConfig>(params_, machine_.block(), replica),
                              kConfig.head_dim),
              row, row < piece.rows, max, sum);
      } else if (piece.is_whole_item()) {
        finish(piece, max, sum);
      } else {
        stage(partial_slot<kConfig>(params_, piece.item(), piece.split, machine_.block(),
                                    piece.tile_first == piece.item_first),
              row_, row_ < piece.rows, max, sum);
      }
    }
  }

 private:
  using Columns = TensorColumns<kConfig>;
  static constexpr int kChunk = 16;

  DEUCE_DEVICE trace::At stats_wait(int block) const {
    return {Event::correction_wait_stats, machine_.warp() % 4, 0, block};
  }
  DEUCE_DEVICE trace::At stats_arrival(int block) const {
    return {Event::arrive_stats_taken, 0, 0, block};
  }
  DEUCE_DEVICE void take_stats() {
    machine_.sync_named(kStatisticsBarrier + machine_.warp() % 4, 64);
  }

  /// O belongs to the PV of the next block, on that block's slot.
  DEUCE_DEVICE void hand_over() {
    if constexpr (Machine::kTraces) {
      const int block = next_.phase() * kConfig.score_slots + next_.slot();
      machine_.trace_instant({Event::arrive_po_ready, next_.slot(), next_.phase(), block});
    }
    machine_.arrive(shared_.po_ready[next_.slot()]);
    next_.advance();
  }

  /// Waits for the PVs of all blocks below `block`, each phase once.
  DEUCE_DEVICE void observe(int block) {
    for (; seen_ < block; ++seen_) {
      if constexpr (Machine::kTraces)
        machine_.trace_begin({Event::correction_wait_O, outputs_.slot(), outputs_.phase(), seen_});
      machine_.wait(shared_.o_ready[outputs_.slot()], outputs_.phase());
      if constexpr (Machine::kTraces) machine_.trace_end({Event::correction_wait_O});
      outputs_.advance();
    }
  }

  DEUCE_DEVICE void correct(int block) {
    if constexpr (Machine::kTraces) machine_.trace_begin(stats_wait(block));
    take_stats();
    if constexpr (Machine::kTraces) machine_.trace_end({Event::correction_wait_stats});
    const float scale = machine_.load_shared(shared_.row_scale[row_]);
    if constexpr (Machine::kTraces) machine_.trace_instant(stats_arrival(block));
    machine_.arrive(shared_.stats_taken);
    const bool any = machine_.any(scale < 1.0F);
    // Idle: s_ready of this block has said that the PV one slot round ago is done.
    observe(any ? block : block - kConfig.score_slots + 1);
    machine_.fence_after_sync();
    if (any) rescale(scale);
    machine_.fence_before_sync();
    hand_over();
  }

  DEUCE_DEVICE void rescale(float scale) {
    if constexpr (Machine::kTraces)
      machine_.trace_begin({Event::correction_rescale, next_.slot(), next_.phase(), seen_});
    for (uint32_t column = 0; column < kConfig.head_dim; column += kChunk) {
      float o[kChunk];
      machine_.load_tensor(o, Columns::kOutput + column);
      machine_.wait_tensor_loads();
      DEUCE_UNROLL
      for (float& value : o) value *= scale;
      machine_.charge(Work::fma, kChunk);
      machine_.store_tensor(Columns::kOutput + column, o);
    }
    machine_.wait_tensor_stores();
    if constexpr (Machine::kTraces) machine_.trace_end({Event::correction_rescale});
  }

  /// Reads O in chunks, gives it away after the last one, and passes each chunk to `use`.
  template <class Use>
  DEUCE_DEVICE void read_output(const Use& use) {
    for (uint32_t column = 0; column < kConfig.head_dim; column += kChunk) {
      float o[kChunk];
      machine_.load_tensor(o, Columns::kOutput + column);
      machine_.wait_tensor_loads();
      if (column + kChunk == kConfig.head_dim) {
        machine_.fence_before_sync();
        hand_over();
      }
      use(column, o);
    }
  }

  /// A whole item: normalised, to the caller's output.
  DEUCE_DEVICE void finish(const PieceRecord& piece, float max, float sum) {
    if constexpr (Machine::kTraces) machine_.trace_begin({Event::epi_store, 0, 0, seen_ - 1});
    const bool real = row_ < piece.rows;
    const RowPlace place = place_of_row(params_, piece.item(), real ? row_ : 0, piece.first_token);
    const RowResult result =
        finish_row(machine_, max, sum, sink_log2(machine_, params_.sinks, place.q_head),
                   params_.out_factor, params_.lse_base2);
    // A row that sees no key of its item has no use for what P left in O.
    const bool empty = max == kNoKey;
    read_output([&](uint32_t column, float(&o)[kChunk]) {
      DEUCE_UNROLL
      for (float& value : o) value = empty ? 0.0F : value;
      machine_.charge(Work::fma, kChunk);
      if (real) store_values<kConfig>(machine_, params_, place.out + column, o, result.scale);
    });
    if (real && params_.lse != nullptr) {
      machine_.store_global(params_.lse + place.lse, result.lse);
    }
    machine_.sync_warp();
    if constexpr (Machine::kTraces) machine_.trace_end({Event::epi_store});
  }

  /// A cut item, or one replica of the rows: the state as it is, to a slot of the workspace.
  DEUCE_DEVICE void stage(const Partial& slot, int row, bool real, float max, float sum) {
    if constexpr (Machine::kTraces)
      machine_.trace_begin({Event::correction_wait_stored, 0, stored_.phase()});
    machine_.wait(shared_.o_stored, stored_.phase());
    if constexpr (Machine::kTraces) machine_.trace_end({Event::correction_wait_stored});
    stored_.advance();
    if constexpr (Machine::kTraces)
      machine_.trace_begin({Event::merge_write_partial, 0, 0, seen_ - 1});
    float* target = slot.o + int64_t{row} * kConfig.head_dim;
    read_output([&](uint32_t column, float(&o)[kChunk]) {
      if (!real) return;
      DEUCE_UNROLL
      for (int i = 0; i < kChunk; i += 4) {
        const Word4 words{std::bit_cast<uint32_t>(o[i]), std::bit_cast<uint32_t>(o[i + 1]),
                          std::bit_cast<uint32_t>(o[i + 2]), std::bit_cast<uint32_t>(o[i + 3])};
        machine_.store_global(reinterpret_cast<Word4*>(target + column + i), words);
      }
    });
    if (real) {
      machine_.store_global(slot.max + row, max);
      machine_.store_global(slot.sum + row, sum);
    }
    machine_.sync_warp();
    if constexpr (Machine::kTraces) machine_.trace_end({Event::merge_write_partial});
    if constexpr (Machine::kTraces)
      machine_.trace_instant({Event::arrive_o_staged, 0, stored_.phase(), seen_ - 1});
    machine_.arrive(shared_.o_staged);
  }

  Machine& machine_;
  SharedStorage<kConfig>& shared_;
  const Params& params_;
  int row_;
  int seen_ = 0;  // blocks whose PV this warp has seen complete
  Ring<kConfig.score_slots> next_ = Ring<kConfig.score_slots>::consumer();
  Ring<kConfig.score_slots> outputs_ = Ring<kConfig.score_slots>::consumer();
  Ring<1> stored_ = Ring<1>::producer();
};

}  // namespace deuce::blackwell
