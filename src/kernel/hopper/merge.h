// SPDX-License-Identifier: Apache-2.0
// End of a piece: the streams of a CTA become one state, and the pieces of an item one result.
// Used by the attend warps. Every packed row belongs to one warp, the same in all CTAs, so that
// each warp counts its own arrivals and nobody waits for another warp or another CTA after the
// streams have met in shared memory. States merge in stream order, partials in split order, whoever
// arrives last: the same call gives the same bits. More than kDirectPieces partials merge in groups
// first.
#pragma once

#include "kernel/hopper/rows.h"
#include "kernel/hopper/shared.h"
#include "kernel/hopper/stream.h"

namespace deuce::hopper {

template <Config kConfig, class Machine>
class Merge {
 public:
  DEUCE_DEVICE Merge(Machine& machine, SharedStorage<kConfig>& shared, const Params& params,
                     int warp)
      : machine_(machine), shared_(shared), params_(params), warp_(warp) {}

  DEUCE_DEVICE void finish(const Piece& piece, const Schedule<kConfig, Machine>& schedule,
                           const Stream<kConfig, Machine>& stream, int stream_index, int group) {
    streams_ = min_of(piece.tiles, kConfig.streams);
    sync();  // the previous piece's states have been read
    if (stream_index < streams_) publish(stream, stream_index, group);
    sync();
    const int rows = piece.rows.last - piece.rows.first;
    if (warp_ * kRowsPerWarp >= rows) return;
    Level level{.result = !piece.cut};
    if (piece.cut) {
      place(piece, schedule);
      level.target = slot_of(order_);
    }
    DEUCE_ROLLED
    while (true) {  // streams of the CTA, then the item's partials, in one or two levels
      DEUCE_ROLLED
      for (int first = warp_ * kRowsPerWarp; first < rows; first += kRowStep) {
        // Lanes past the last row take part in shuffles, with that row's values.
        const int wanted = first + machine_.lane() / kLanesPerRow;
        const int row = min_of(wanted, rows - 1);
        RowState state;
        RowValues o;
        if (level.count == 0) {
          merge_streams(row, o, state);
        } else {
          merge_partials(level, row, o, state);
        }
        machine_.sync_warp();  // the target may be one of the slots just read by the row's lanes
        if (wanted >= rows) continue;
        if (level.result) {
          write_row(machine_, params_, piece, piece.rows.first + row, dim(), o.at, state);
        } else {
          store_partial(level.target, row, o, state);
        }
      }
      if (level.result || !rise(level)) return;
    }
  }

 private:
  static constexpr int kLanesPerRow = 16;
  static constexpr int kVectors = kConfig.head_dim / 64;  // of four dims a lane, 64 dims apart
  static constexpr int kRowsPerWarp = 32 / kLanesPerRow;
  static constexpr int kRowStep = kRowsPerWarp * kConfig.attend_warps();
  static constexpr int kDirectPieces = kLanesPerRow;
  static constexpr int kMergeBarrier = 1;

  /// This lane's dims of a row.
  struct RowValues {
    float at[kVectors][4];
  };

  /// What is merged at present: `count` partials first, first + step, ...; none: the CTA's streams.
  struct Level {
    int32_t first = 0, step = 0, count = 0;
    int32_t target = 0;   // slot of the result, if it is not the item's
    bool result = false;  // the item's result
  };

  /// First of this lane's four dims.
  DEUCE_DEVICE int dim() const { return machine_.lane() % kLanesPerRow * 4; }

  DEUCE_DEVICE void sync() { machine_.sync_named(kMergeBarrier, 32 * kConfig.attend_warps()); }

  DEUCE_DEVICE void publish(const Stream<kConfig, Machine>& stream, int index, int group) {
    const int lane = machine_.lane();
    DEUCE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int row = group * kGroupRows + lane / 4 + 8 * i;
      stream.store_row(shared_.state[index].o[row], i);
      const float sum = stream.row_sum(i);
      if (lane % 4 == 0) {
        machine_.store_shared(shared_.rows[index][row], RowState{stream.max(i), sum});
      }
    }
  }

  /// Merges the states of a row, one for each of its first lanes, with the output values of all of
  /// them in every lane. In lane order, so the bits do not depend on who arrived when.
  template <int kCount>
  DEUCE_DEVICE void combine(const RowState& part, const Word4 (&values)[kCount][kVectors],
                            RowValues& o, RowState& state) {
    state.max = part.max;
    DEUCE_UNROLL
    for (int mask = kLanesPerRow / 2; mask > 0; mask /= 2) {
      state.max = fmaxf(state.max, machine_.shuffle_xor(state.max, mask));
    }
    const float weight = part.max == kMinusInfinity ? 0.0f : machine_.exp2(part.max - state.max);
    state.sum = part.sum * weight;
    DEUCE_UNROLL
    for (int mask = kLanesPerRow / 2; mask > 0; mask /= 2) {
      state.sum += machine_.shuffle_xor(state.sum, mask);
    }
    DEUCE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      DEUCE_UNROLL
      for (int e = 0; e < 4; ++e) o.at[v][e] = 0;
    }
    DEUCE_UNROLL
    for (int i = 0; i < kCount; ++i) {
      const int lane = machine_.lane() / kLanesPerRow * kLanesPerRow + i;
      const float w = machine_.shuffle(weight, lane);
      DEUCE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const Word4& value = values[i][v];
        o.at[v][0] = machine_.fma(std::bit_cast<float>(value.x), w, o.at[v][0]);
        o.at[v][1] = machine_.fma(std::bit_cast<float>(value.y), w, o.at[v][1]);
        o.at[v][2] = machine_.fma(std::bit_cast<float>(value.z), w, o.at[v][2]);
        o.at[v][3] = machine_.fma(std::bit_cast<float>(value.w), w, o.at[v][3]);
      }
    }
  }

  DEUCE_DEVICE void merge_streams(int row, RowValues& o, RowState& state) {
    const int mine = machine_.lane() % kLanesPerRow;
    RowState part{kMinusInfinity, 0};
    if (mine < streams_) part = machine_.load_shared(shared_.rows[mine][row]);
    Word4 values[kConfig.streams][kVectors];
    DEUCE_UNROLL
    for (int s = 0; s < kConfig.streams; ++s) {
      DEUCE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        values[s][v] = Word4{};
        if (s >= streams_) continue;
        const float& place = shared_.state[s].o[row][dim() + 64 * v];
        values[s][v] = machine_.load_shared(reinterpret_cast<const Word4&>(place));
      }
    }
    combine(part, values, o, state);
  }

  // --- partials in global memory ---

  /// Slot 2g of a worker g holds a piece that continues an item, slot 2g + 1 one that begins it.
  DEUCE_DEVICE int32_t slot_of(int32_t order) const {
    return 2 * (first_worker_ + order) + (order == 0 ? 1 : 0);
  }
  DEUCE_DEVICE Word4* partial(int32_t slot, int row) const {
    return reinterpret_cast<Word4*>(
        params_.partials + (static_cast<int64_t>(slot) * kConfig.rows() + row) * kConfig.head_dim +
        dim());
  }
  DEUCE_DEVICE RowState* partial_row(int32_t slot, int row) const {
    return reinterpret_cast<RowState*>(params_.partial_rows) +
           static_cast<int64_t>(slot) * kConfig.rows() + row;
  }

  DEUCE_DEVICE void store_partial(int32_t slot, int row, const RowValues& o,
                                  const RowState& state) {
    DEUCE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      machine_.store_global(partial(slot, row) + 16 * v, words_of(o.at[v]));
    }
    if (machine_.lane() % kLanesPerRow == 0) machine_.store_global(partial_row(slot, row), state);
  }

  /// Which workers hold the item's pieces, and how they are grouped.
  DEUCE_DEVICE void place(const Piece& piece, const Schedule<kConfig, Machine>& schedule) {
    first_worker_ = schedule.worker_of(piece.item_begin);
    order_ = machine_.block() - first_worker_;
    pieces_ = schedule.worker_of(piece.item_begin + piece.shape.tiles() - 1) - first_worker_ + 1;
    group_size_ = kDirectPieces;
    if (pieces_ <= kDirectPieces) return;
    DEUCE_ROLLED  // two levels of about the same height
        while (group_size_ * group_size_ > 2 * pieces_)-- group_size_;
  }

  /// This warp has stored a partial of a level. True for the last of its group, which goes on with
  /// the next level. Counters 0 .. 2G - 1 belong to groups of pieces, by the slot of the group's
  /// first piece; 2G .. 3G - 1 to items, by the worker of the item's first piece.
  DEUCE_DEVICE bool rise(Level& level) {
    int32_t counter;
    if (level.count == 0) {
      level.first = order_ - order_ % group_size_;
      level.step = 1;
      level.count = min_of(group_size_, pieces_ - level.first);
      level.target = counter = slot_of(level.first);
      level.result = level.count == pieces_;
    } else {
      level = {.first = 0,
               .step = group_size_,
               .count = (pieces_ + group_size_ - 1) / group_size_,
               .result = true};
      counter = 2 * machine_.grid_blocks() + first_worker_;
    }
    return last_to_arrive(counter, level.count);
  }

  /// Counts this warp's arrival at a counter that resets itself.
  DEUCE_DEVICE bool last_to_arrive(int32_t index, int32_t expected) {
    machine_.sync_warp();
    uint32_t before = 0;
    if (machine_.elect()) {
      uint32_t* counter = params_.arrivals + index * kConfig.attend_warps() + warp_;
      before = machine_.add_acq_rel(counter, 1);
      if (before + 1 == static_cast<uint32_t>(expected)) machine_.store_global(counter, 0u);
    }
    before = machine_.shuffle(before, 0);
    machine_.sync_warp();
    return before + 1 == static_cast<uint32_t>(expected);
  }

  /// Up to 16 partials of a row. All loads are on the way before the first is used: latency, not
  /// bandwidth, is the cost.
  DEUCE_DEVICE void merge_partials(const Level& level, int row, RowValues& o, RowState& state) {
    const int mine = machine_.lane() % kLanesPerRow;
    RowState part{kMinusInfinity, 0};
    if (mine < level.count) {
      part = machine_.load_global(partial_row(slot_of(level.first + mine * level.step), row));
    }
    Word4 values[kDirectPieces][kVectors];
    DEUCE_UNROLL
    for (int i = 0; i < kDirectPieces; ++i) {
      const Word4* place = partial(slot_of(level.first + i * level.step), row);
      DEUCE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        values[i][v] = Word4{};
        if (i < level.count) values[i][v] = machine_.load_global(place + 16 * v);
      }
    }
    combine(part, values, o, state);
  }

  Machine& machine_;
  SharedStorage<kConfig>& shared_;
  const Params& params_;
  const int warp_;
  int streams_ = 0;                                                     // of the piece
  int32_t first_worker_ = 0, order_ = 0, pieces_ = 1, group_size_ = 1;  // of a cut piece
};

}  // namespace deuce::hopper
