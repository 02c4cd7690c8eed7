// SPDX-License-Identifier: Apache-2.0
// States of rows while pieces end: a row is spread over 16 lanes of a warp, wherever it comes from.
// Used by merge.h and split_merge.h. Every packed row belongs to one warp, the same in all CTAs, so
// that each warp counts its own arrivals and lanes read back from memory what they wrote.
#pragma once

#include "kernel/hopper/rows.h"
#include "kernel/hopper/shared.h"
#include "kernel/hopper/stream.h"

namespace deuce::hopper {

/// Slots of partials to be merged, in order; at most States::kMaxParts.
struct Slots {
  int32_t first = 0, step = 0, count = 0;
  int32_t shift = 0;  // of the first alone
  DEUCE_DEVICE int32_t at(int32_t i) const { return first + i * step + (i == 0 ? shift : 0); }
};

template <Config kConfig, class Machine>
class States {
 public:
  static constexpr int kLanesPerRow = 16;
  static constexpr int kVectors = kConfig.head_dim / 64;  // of four dims a lane, 64 dims apart
  static constexpr int kMaxParts = kLanesPerRow;          // that one call merges
  /// Partials read together: all, where there are registers for them.
  static constexpr int kLoads = kConfig.moves_registers() ? 4 : kMaxParts / kVectors;
  /// Rows of a warp merged together, where it has several.
  static constexpr int kBatch = kConfig.engine == Engine::warpgroup ? 2 : 1;

  static constexpr int kRowsPerWarp = 32 / kLanesPerRow;
  static constexpr int kRowStep = kRowsPerWarp * kConfig.attend_warps();

  /// This lane's dims of a row.
  struct RowValues {
    float at[kVectors][4];
  };

  DEUCE_DEVICE States(Machine& machine, SharedStorage<kConfig>& shared, const Params& params,
                      int warp)
      : machine_(machine), shared_(shared), params_(params), warp_(warp) {}

  // A warp's share of `rows` rows: for (row = first_row(); has(row, rows); row += kRowStep). Lanes
  // past the last row come along, for the shuffles, as that row, but must not write.
  DEUCE_DEVICE int first_row() const {
    return warp_ * kRowsPerWarp + machine_.lane() / kLanesPerRow;
  }
  DEUCE_DEVICE bool has(int row, int rows) const {
    return row - machine_.lane() / kLanesPerRow < rows;
  }

  /// First of this lane's four dims.
  DEUCE_DEVICE int dim() const { return machine_.lane() % kLanesPerRow * 4; }

  /// The state of a row from those of the streams.
  DEUCE_DEVICE void merge_streams(int streams, int row, RowValues& o, RowState& state) {
    if constexpr (kConfig.states() == 1) {
      state = machine_.load_shared(shared_.rows[0][row]);
      DEUCE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const float& place = shared_.state[0].o[row][dim() + 64 * v];
        floats_of(machine_.load_shared(reinterpret_cast<const Word4&>(place)), o.at[v]);
      }
      return;
    }
    const int mine = machine_.lane() % kLanesPerRow;
    RowState part{kNoKey, 0};
    if (mine < streams) part = machine_.load_shared(shared_.rows[mine][row]);
    Word4 values[kConfig.states()][kVectors];
    DEUCE_UNROLL
    for (int s = 0; s < kConfig.states(); ++s) {
      DEUCE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        values[s][v] = Word4{};
        if (s >= streams) continue;
        const float& place = shared_.state[s].o[row][dim() + 64 * v];
        values[s][v] = machine_.load_shared(reinterpret_cast<const Word4&>(place));
      }
    }
    o = {};
    add_weighed(weigh(part, state), 0, values, o);
  }

  /// Merges partials of kBatch rows, kRowStep apart from `row` on. Many loads are on the way before
  /// the first is used: latency, not bandwidth, is the cost, and most of all while others read KV.
  DEUCE_DEVICE void merge_partials(const Slots& slots, int row, int rows, RowValues (&o)[kBatch],
                                   RowState (&state)[kBatch]) {
    const int mine = machine_.lane() % kLanesPerRow;
    RowState part[kBatch];
    DEUCE_UNROLL
    for (int b = 0; b < kBatch; ++b) {
      part[b] = {kNoKey, 0};
      if (mine < slots.count) {
        part[b] = machine_.load_global(partial_row(slots.at(mine), batch_row(row, b, rows)));
      }
      o[b] = {};
    }
    float weight[kBatch] = {};
    DEUCE_ROLLED
    for (int first = 0; first < slots.count; first += kLoads) {
      Word4 values[kBatch][kLoads][kVectors];
      DEUCE_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        DEUCE_UNROLL
        for (int i = 0; i < kLoads; ++i) {
          const Word4* place = partial(slots.at(first + i), batch_row(row, b, rows));
          DEUCE_UNROLL
          for (int v = 0; v < kVectors; ++v) {
            values[b][i][v] = Word4{};
            if (first + i < slots.count) values[b][i][v] = machine_.load_global(place + 16 * v);
          }
        }
      }
      DEUCE_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        if (first == 0) weight[b] = weigh(part[b], state[b]);
        add_weighed(weight[b], first, values[b], o[b]);
      }
    }
  }
  /// Row b of a batch; past the last row, one that this warp has too: nobody else's is ordered.
  DEUCE_DEVICE static int batch_row(int row, int b, int rows) {
    const int wanted = row + b * kRowStep;
    if (wanted < rows) return wanted;
    return row < rows ? row : rows - 1;
  }

  /// o and state become the merge of slot `left`, which comes first, and themselves.
  DEUCE_DEVICE void merge_left(int32_t left, int row, RowValues& o, RowState& state) {
    RowValues before;
    RowState its;
    load_partial(left, row, before, its);
    const float max = fmaxf(its.max, state.max);
    const float weight = weight_of(machine_, its, max), own = weight_of(machine_, state, max);
    state = {max, machine_.fma(its.sum, weight, state.sum * own)};
    DEUCE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      DEUCE_UNROLL
      for (int e = 0; e < 4; ++e) {
        o.at[v][e] = machine_.fma(before.at[v][e], weight, o.at[v][e] * own);
      }
    }
  }

  DEUCE_DEVICE void load_partial(int32_t slot, int row, RowValues& o, RowState& state) {
    state = machine_.load_global(partial_row(slot, row));
    DEUCE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      floats_of(machine_.load_global(partial(slot, row) + 16 * v), o.at[v]);
    }
  }
  DEUCE_DEVICE void store_partial(int32_t slot, int row, const RowValues& o,
                                  const RowState& state) {
    DEUCE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      machine_.store_global(partial(slot, row) + 16 * v, words_of(o.at[v]));
    }
    if (machine_.lane() % kLanesPerRow == 0) machine_.store_global(partial_row(slot, row), state);
  }
  DEUCE_DEVICE void store_result(const Piece& piece, int row, const RowValues& o,
                                 const RowState& state) {
    write_row(machine_, params_, piece, piece.rows.first + row, dim(), o.at, state);
  }

  /// Adds to a counter of this warp. True for whoever brings it to `expected`, which sets it back.
  DEUCE_DEVICE bool last_to_arrive(int32_t index, int32_t amount, int32_t expected) {
    machine_.sync_warp();
    uint32_t before = 0;
    if (machine_.elect()) {
      uint32_t* counter =
          params_.arrivals + static_cast<int64_t>(index) * kConfig.attend_warps() + warp_;
      before = machine_.add_acq_rel(counter, static_cast<uint32_t>(amount));
      if (before + amount == static_cast<uint32_t>(expected)) machine_.store_global(counter, 0u);
    }
    before = machine_.shuffle(before, 0);
    machine_.sync_warp();
    return before + amount == static_cast<uint32_t>(expected);
  }

 private:
  DEUCE_DEVICE Word4* partial(int32_t slot, int row) const {
    return reinterpret_cast<Word4*>(
        params_.partials + (static_cast<int64_t>(slot) * kConfig.rows() + row) * kConfig.head_dim +
        dim());
  }
  DEUCE_DEVICE RowState* partial_row(int32_t slot, int row) const {
    return reinterpret_cast<RowState*>(params_.partial_rows) +
           static_cast<int64_t>(slot) * kConfig.rows() + row;
  }

  /// The maximum and sum of all states of a row, of which each of its lanes holds one; returns this
  /// lane's weight. In lane order, so the bits do not depend on who arrived when.
  DEUCE_DEVICE float weigh(const RowState& part, RowState& state) {
    state.max = part.max;
    DEUCE_UNROLL
    for (int mask = kLanesPerRow / 2; mask > 0; mask /= 2) {
      state.max = fmaxf(state.max, machine_.shuffle_xor(state.max, mask));
    }
    const float weight = weight_of(machine_, part, state.max);
    state.sum = part.sum * weight;
    DEUCE_UNROLL
    for (int mask = kLanesPerRow / 2; mask > 0; mask /= 2) {
      state.sum += machine_.shuffle_xor(state.sum, mask);
    }
    return weight;
  }

  /// Adds the values of states first .. first + kCount - 1, by the weights of those lanes.
  template <int kCount>
  DEUCE_DEVICE void add_weighed(float weight, int first, const Word4 (&values)[kCount][kVectors],
                                RowValues& o) {
    DEUCE_UNROLL
    for (int i = 0; i < kCount; ++i) {
      const float w =
          machine_.shuffle(weight, machine_.lane() / kLanesPerRow * kLanesPerRow + first + i);
      DEUCE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        float value[4];
        floats_of(values[i][v], value);
        DEUCE_UNROLL
        for (int e = 0; e < 4; ++e) o.at[v][e] = machine_.fma(value[e], w, o.at[v][e]);
      }
    }
  }

  Machine& machine_;
  SharedStorage<kConfig>& shared_;
  const Params& params_;
  const int warp_;  // of the role
};

}  // namespace deuce::hopper
