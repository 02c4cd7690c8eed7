// SPDX-License-Identifier: Apache-2.0
// The epilogue role: merges the states of replicated rows, counts finished tiles of cut items and,
// in the block that completes one, merges its partial states in split order. It also writes the
// rows of requests without any visible key. Kept out of correction, which must give statistics back
// quickly.
#pragma once

#include <limits>

#include "kernel/blackwell/output.h"
#include "kernel/blackwell/split_merge.h"
#include "kernel/ring.h"

namespace deuce::blackwell {

template <Config kConfig, class Machine>
class Epilogue {
 public:
  DEUCE_DEVICE Epilogue(Machine& machine, SharedStorage<kConfig>& shared, const Params& params)
      : machine_(machine), shared_(shared), params_(params), warp_(machine.warp() % 4) {}

  DEUCE_DEVICE void run() {
    write_empty_rows();
    SplitMerge<kConfig, Machine> splits(machine_, shared_, params_);
    Pieces<kConfig, Machine> pieces(machine_, shared_);
    for (PieceRecord piece; pieces.next(piece);) {
      if (kConfig.row_replicas == 1 && piece.is_whole_item()) continue;
      if constexpr (Machine::kTraces)
        machine_.trace_begin({Event::epi_wait, staged_.slot(), staged_.phase()});
      machine_.wait(shared_.o_staged, staged_.phase());
      if constexpr (Machine::kTraces) machine_.trace_end({Event::epi_wait});
      staged_.advance();
      total_ = machine_.load_shared(shared_.total_tiles);
      if constexpr (kConfig.row_replicas > 1) merge_replicas(piece);
      if (piece.is_whole_item()) {
        // merge_replicas has written its rows
      } else if (params_.partial_map.tree) {
        take_split(splits, piece);
      } else if (completes(piece.item(), piece.blocks())) {
        merge(piece.item(), piece.first_token);
      }
      if constexpr (Machine::kTraces)
        machine_.trace_instant({Event::arrive_o_stored, 0, staged_.phase() - 1});
      machine_.arrive(shared_.o_stored);
    }
  }

 private:
  static constexpr int kColumnsPerLane = kConfig.head_dim / 32;

  DEUCE_DEVICE void take_split(SplitMerge<kConfig, Machine>& splits, const PieceRecord& piece) {
    splits.take(
        piece.item(), piece.split, piece.blocks(), total_,
        [&](const Item& item, int32_t tiles) { return completes(item, tiles); },
        [&](const Item& item, int64_t slot) { end_slot(item, slot, piece.first_token); });
  }

  /// The rows of an item whose state lies whole in one slot, written by the same threads.
  DEUCE_DEVICE void end_slot(const Item& item, int64_t slot, int32_t first_token) {
    if constexpr (Machine::kTraces)
      machine_.trace_begin({Event::epi_store, staged_.slot(), staged_.phase()});
    const Partial whole = partial_in_slot(params_, slot, kConfig.head_dim);
    DEUCE_ROLLED
    for (int32_t row = warp_; row < item.rows; row += 4) {
      const float* values = whole.o + int64_t{row} * kConfig.head_dim + machine_.lane();
      float o[kColumnsPerLane];
      DEUCE_UNROLL
      for (int c = 0; c < kColumnsPerLane; ++c) o[c] = machine_.load_global(values + 32 * c);
      end_row(place_of_row(params_, item, row, first_token), machine_.load_global(whole.max + row),
              machine_.load_global(whole.sum + row), o);
    }
    machine_.sync_warp();
    if constexpr (Machine::kTraces) machine_.trace_end({Event::epi_store});
  }

  /// Adds finished tiles to the item's counter; true in the block that completes it.
  DEUCE_DEVICE bool completes(const Item& item, int32_t count) {
    if constexpr (Machine::kTraces)
      machine_.trace_begin({Event::merge_counter, staged_.slot(), staged_.phase()});
    machine_.sync_named(kEpilogueBarrier, 128);  // all warps have written their states
    if (machine_.thread() % 128 == 0) {
      const int32_t first = owner_of(total_, params_.shape.workers, item.begin);
      uint32_t* counter = params_.counters + params_.partial_map.counter(item, first);
      const auto tiles = static_cast<uint32_t>(count);
      const uint32_t before = machine_.add_acq_rel(counter, tiles);
      const bool last = before + tiles == static_cast<uint32_t>(item.tiles.count());
      if (last) machine_.store_global(counter, 0u);  // as the next launch must find it
      machine_.store_shared(shared_.last_arriver, last ? 1u : 0u);
    }
    machine_.sync_named(kEpilogueBarrier, 128);
    const bool last = machine_.load_shared(shared_.last_arriver) != 0;
    machine_.sync_named(kEpilogueBarrier, 128);
    if constexpr (Machine::kTraces) machine_.trace_end({Event::merge_counter});
    if constexpr (Machine::kTraces) {
      if (last) machine_.trace_instant({Event::merge_last, staged_.slot(), staged_.phase()});
    }
    return last;
  }

  /// Part `i` of an item in split order.
  DEUCE_DEVICE Partial part(const Item& item, const WorkerSpan& workers, int32_t parts,
                            int32_t i) const {
    const int32_t splits = params_.shape.num_splits;
    // With fewer tiles than parts every part that exists holds one tile.
    const int32_t split = splits == 0 ? 0
                          : parts < splits
                              ? static_cast<int32_t>(((int64_t{i} + 1) * splits - 1) / parts)
                              : i;
    return partial_slot<kConfig>(params_, item, split, workers.first + i, i == 0);
  }

  /// A warp per row, a lane per columns lane, lane + 32, ...
  DEUCE_DEVICE void merge(const Item& item, int32_t first_token) {
    if constexpr (Machine::kTraces)
      machine_.trace_begin({Event::merge_combine, staged_.slot(), staged_.phase()});
    const WorkerSpan workers = workers_of(params_.shape, total_, item);
    const int32_t tiles = item.tiles.count();
    const int32_t splits = params_.shape.num_splits;
    const int32_t parts =
        splits > 0 ? (tiles < splits ? tiles : splits) : workers.last - workers.first + 1;
    for (int32_t row = warp_; row < item.rows; row += 4) {
      const RowState state =
          merge_row_states(parts, row, [&](int32_t i) { return part(item, workers, parts, i); });
      end_row(place_of_row(params_, item, row, first_token), state.max, state.sum, state.o);
    }
    machine_.sync_warp();
    if constexpr (Machine::kTraces) machine_.trace_end({Event::merge_combine});
  }

  /// The states of the replicas of each row, in their order, become the state of the piece: the
  /// rows of a whole item, or what a piece of a cut item leaves in the workspace.
  DEUCE_DEVICE void merge_replicas(const PieceRecord& piece) {
    const Item item = piece.item();
    const Partial target = partial_slot<kConfig>(params_, item, piece.split, machine_.block(),
                                                 piece.tile_first == piece.item_first);
    if constexpr (Machine::kTraces)
      machine_.trace_begin({Event::merge_combine, staged_.slot(), staged_.phase()});
    DEUCE_ROLLED
    for (int32_t row = warp_; row < item.rows; row += 4) {
      const RowState state = merge_row_states(kConfig.row_replicas, row, [&](int32_t replica) {
        return partial_in_slot(params_, staging_slot<kConfig>(params_, machine_.block(), replica),
                               kConfig.head_dim);
      });
      machine_.sync_warp();  // all lanes have read: the target may be the first replica's slot
      if (piece.is_whole_item()) {
        end_row(place_of_row(params_, item, row, piece.first_token), state.max, state.sum, state.o);
      } else {
        store_state(target, row, state);
      }
    }
    machine_.sync_warp();
    if constexpr (Machine::kTraces) machine_.trace_end({Event::merge_combine});
  }

  /// State of one row; o: columns lane, lane + 32, ... of a lane.
  struct RowState {
    float max = kNoKey, sum = 0;
    float o[kColumnsPerLane] = {};
  };

  /// Merges the states `source(0)` .. `source(count - 1)` of a row in this order.
  template <class Source>
  DEUCE_DEVICE RowState merge_row_states(int32_t count, int32_t row, const Source& source) {
    RowState merged;
    for (int32_t i = 0; i < count; ++i) {
      merged.max = merge_max(merged.max, machine_.load_global(source(i).max + row));
    }
    for (int32_t i = 0; i < count; ++i) {
      const Partial part = source(i);
      const float max = machine_.load_global(part.max + row);
      if (max == kNoKey) continue;  // left out rather than weighed by 0
      const float weight = merge_weight(machine_, max, merged.max);
      merged.sum = merged.sum + weight * machine_.load_global(part.sum + row);
      const float* values = part.o + int64_t{row} * kConfig.head_dim + machine_.lane();
      for (int c = 0; c < kColumnsPerLane; ++c) {
        merged.o[c] = merged.o[c] + weight * machine_.load_global(values + 32 * c);
      }
    }
    return merged;
  }

  DEUCE_DEVICE void store_state(const Partial& target, int32_t row, const RowState& state) {
    float* values = target.o + int64_t{row} * kConfig.head_dim + machine_.lane();
    for (int c = 0; c < kColumnsPerLane; ++c) {
      machine_.store_global(values + 32 * c, state.o[c]);
    }
    if (machine_.elect()) {
      machine_.store_global(target.max + row, state.max);
      machine_.store_global(target.sum + row, state.sum);
    }
  }

  /// Writes one row, spread over the lanes of a warp.
  DEUCE_DEVICE void end_row(const RowPlace& place, float max, float sum,
                            const float (&o)[kColumnsPerLane]) {
    const RowResult result =
        finish_row(machine_, max, sum, sink_log2(machine_, params_.sinks, place.q_head),
                   params_.out_factor, params_.lse_base2);
    auto* out = static_cast<uint16_t*>(params_.out) + place.out + machine_.lane();
    for (int c = 0; c < kColumnsPerLane; ++c) {
      const float value = max == kNoKey ? 0.0F : o[c] * result.scale;
      machine_.store_global(out + 32 * c, from_float<Element<kConfig>>(value).bits);
    }
    if (machine_.elect() && params_.lse != nullptr) {
      machine_.store_global(params_.lse + place.lse, result.lse);
    }
  }

  /// Requests that no piece covers are dealt to the blocks for this purpose alone.
  DEUCE_DEVICE void write_empty_rows() {
    const WorkShape& shape = params_.shape;
    const Share mine = share_of(shape.batch, shape.workers, machine_.block());
    for (int64_t r = mine.first; r < mine.last; ++r) {
      const auto request = static_cast<int32_t>(r);
      const LiveRequest live = live_request(machine_, params_, request);
      const bool faulty = live.fault != FaultCode::none;
      if (faulty && machine_.thread() % 128 == 0) {
        report_request(machine_, params_, request, live.fault);
      }
      machine_.sync_warp();
      const int32_t row_tiles = row_tile_count(shape, live.sizes.q_len);
      for (int32_t tile = 0; tile < row_tiles; ++tile) {
        if (!item_tiles(shape, live.sizes, tile).empty()) continue;
        const Share rows = row_span(shape, live.sizes.q_len, tile);
        for (int32_t head = warp_; head < shape.kv_heads; head += 4) {
          write_empty_item(Item{.request = request,
                                .kv_head = head,
                                .row_tile = tile,
                                .rows = static_cast<int32_t>(rows.last - rows.first)},
                           faulty);
        }
      }
    }
    machine_.sync_warp();
  }
  DEUCE_DEVICE void write_empty_item(const Item& item, bool faulty) {
    constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
    const float nothing[kColumnsPerLane] = {};
    const int32_t first_token = first_token_of(machine_, params_, item.request);
    for (int32_t row = 0; row < item.rows; ++row) {
      // A row with a maximum of NaN ends as NaN, output and LSE.
      end_row(place_of_row(params_, item, row, first_token), faulty ? kNaN : kNoKey, 0.0F, nothing);
    }
  }

  Machine& machine_;
  SharedStorage<kConfig>& shared_;
  const Params& params_;
  int warp_;
  int64_t total_ = 0;
  Ring<1> staged_ = Ring<1>::consumer();
};

}  // namespace deuce::blackwell
