// SPDX-License-Identifier: Apache-2.0
// The kernels of the CPU backend, written once over the vector operations of simd_*-inl.h and
// compiled once per instruction set by kernels_simd.cpp and kernels_scalar.cpp. One call computes
// one tile of keys for all rows and heads of an item:
//
//   scores = Q K^T           four rows x three or four keys in registers     scores-inl.h
//   weights, row_max, row_sum                                                softmax-inl.h
//   o = o * factor + P V     four rows x a strip of vectors in registers     values-inl.h

#include "cpu/fetch-inl.h"
#include "cpu/scores-inl.h"
#include "cpu/softmax-inl.h"
#include "cpu/values-inl.h"

constexpr int step_count(int head_dim) { return (head_dim + 2 * kLanes - 1) / (2 * kLanes); }

/// Whether rows of the cache are converted to float, in padded rows, before they are used: all that
/// cannot be loaded in whole steps as they lie.
constexpr bool needs_expansion(DType type, int head_dim) {
  return is_fp8(type) || head_dim % (2 * kLanes) != 0;
}
/// The type in which rows of the cache enter the arithmetic.
constexpr DType working_type(DType type, int head_dim) {
  return needs_expansion(type, head_dim) ? DType::f32 : type;
}

/// First of four consecutive elements in block `block` of a half.
constexpr int first_element(DType working, int step, int half, int block) {
  const int base = step * 2 * kLanes;
  return working == DType::bf16 ? base + block * 2 * kGroupRows + half * kGroupRows
                                : base + half * kLanes + block * kGroupRows;
}

template <DType kType>
void convert_fp8(const uint8_t* from, int count, float* to) {
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) store(load_fp8<kType>(from + i), to + i);
  if (i == count) return;
  uint8_t rest[kMaxLanes] = {};
  float values[kMaxLanes];
  std::copy(from + i, from + count, rest);
  store(load_fp8<kType>(rest), values);
  std::copy_n(values, count - i, to + i);
}

void convert_row(DType type, const void* from, int count, float* to) {
  const auto* bytes = static_cast<const uint8_t*>(from);
  switch (type) {
    case DType::f32: std::memcpy(to, from, sizeof(float) * static_cast<std::size_t>(count)); return;
    case DType::e4m3: return convert_fp8<DType::e4m3>(bytes, count, to);
    case DType::e5m2: return convert_fp8<DType::e5m2>(bytes, count, to);
    case DType::bf16:
    case DType::f16: break;
  }
  const auto widen = [&](auto half) {
    for (int i = 0; i < count; ++i) {
      std::memcpy(&half.bits, bytes + 2 * i, sizeof half.bits);
      to[i] = to_float(half);
    }
  };
  if (type == DType::bf16) return widen(Bf16{});
  widen(Half{});
}

void exp2_of_all(const float* from, int count, float* to) {
  for (int i = 0; i < count; i += kLanes) store(exp2(load(from + i)), to + i);
}

float* query_group(const ItemShape& shape, int head, int group, float* q) {
  const int floats = kGroupRows * 2 * kLanes * step_count(shape.head_dim_qk);
  return q + ptrdiff_t{head * shape.groups() + group} * floats;
}
float* output_group(const ItemShape& shape, int head, int group, float* o) {
  const int floats = kGroupRows * 2 * kLanes * step_count(shape.head_dim_v);
  return o + ptrdiff_t{head * shape.groups() + group} * floats;
}

/// Scores and weights of a head, in one of two slots.
float* score_slot(const ItemShape& shape, const ItemState& state, int head) {
  return state.scores + head % kScoreSlots * shape.groups() * kVectorTileKeys * kGroupRows;
}

void place_query(const ItemShape& shape, int head, int row, const float* query, float* q) {
  const DType working = working_type(shape.kv_type, shape.head_dim_qk);
  const int steps = step_count(shape.head_dim_qk);
  float* group = query_group(shape, head, row / kGroupRows, q);
  for (int half = 0; half < 2; ++half) {
    for (int step = 0; step < steps; ++step) {
      float* lanes = group + ((half * steps + step) * kGroupRows + row % kGroupRows) * kLanes;
      for (int block = 0; block < kLanes / kGroupRows; ++block) {
        std::copy_n(query + first_element(working, step, half, block), kGroupRows,
                    lanes + block * kGroupRows);
      }
    }
  }
}

void begin(const ItemShape& shape, const ItemState& state) {
  const int groups = shape.heads * shape.groups();
  std::fill_n(state.zeros, kMaxLanes, 0.0F);
  std::fill(state.o, output_group(shape, shape.heads, 0, state.o), 0.0F);
  for (int i = 0; i < groups; ++i) {
    std::fill_n(state.stats[i].max, kMaxLanes, kNoKey);
    std::fill_n(state.stats[i].sum, kMaxLanes, 0.0F);
  }
}

void take_row(const ItemShape& shape, const ItemState& state, int head, int row, int to_row,
              const Partial& to) {
  const DType working = working_type(shape.kv_type, shape.head_dim_v);
  const int steps = step_count(shape.head_dim_v), in_group = row % kGroupRows;
  const GroupStats& stats = state.stats[head * shape.groups() + row / kGroupRows];
  const float* o = output_group(shape, head, row / kGroupRows, state.o);
  float* out = to.o + ptrdiff_t{to_row} * shape.head_dim_v;
  for (int vector = 0; vector < 2 * steps; ++vector) {
    const float* lanes = o + (vector * kGroupRows + in_group) * kLanes;
    for (int block = 0; block < kLanes / kGroupRows; ++block) {
      const int element = first_element(working, vector / 2, vector % 2, block);
      if (element < shape.head_dim_v) {
        std::copy_n(lanes + block * kGroupRows, kGroupRows, out + element);
      }
    }
  }
  float sums[kLanes];
  store(add_over_blocks(load(stats.sum)), sums);
  // Keys whose scores are all NaN leave the maximum at -inf, which stands for no key.
  to.max[to_row] = sums[in_group] != sums[in_group] ? sums[in_group] : stats.max[in_group];
  to.sum[to_row] = sums[in_group];
}

/// Rows of one head of a tile, as they lie or expanded to float.
struct HeadRows {
  const std::byte* const* rows;
  ptrdiff_t offset;
  ptrdiff_t row_bytes;  // 0 = they lie anywhere
};

/// Expands the rows of a head into `to`; `pointers` then point there.
HeadRows expand_rows(DType type, int head_dim, const HeadRows& head, int keys, float* to,
                     const std::byte** pointers) {
  const int padded = step_count(head_dim) * 2 * kLanes;
  for (int key = 0; key < keys; ++key, to += padded) {
    convert_row(type, head.rows[key] + head.offset, head_dim, to);
    std::fill(to + head_dim, to + padded, 0.0F);
    pointers[key] = reinterpret_cast<const std::byte*>(to);
  }
  return {pointers, 0, ptrdiff_t{padded} * ptrdiff_t{sizeof(float)}};
}

ScoreHead score_function(DType working, int steps) {
  switch (working) {
    case DType::bf16: return score_function<DType::bf16>(steps);
    case DType::f16: return score_function<DType::f16>(steps);
    default: return score_function<DType::f32>(steps);
  }
}

using AddHead = void (*)(const ValueInput&, const float*, int, const std::byte* const*, ptrdiff_t,
                         ptrdiff_t, int, float*, Fetcher&);

AddHead value_function(DType working) {
  switch (working) {
    case DType::bf16: return add_head<DType::bf16>;
    case DType::f16: return add_head<DType::f16>;
    default: return add_head<DType::f32>;
  }
}

void rescale_group(const ItemShape& shape, float* o, const float* factors) {
  for (int vector = 0; vector < 2 * step_count(shape.head_dim_v); ++vector) {
    for (int row = 0; row < kGroupRows; ++row, o += kLanes) {
      store(mul(load(o), broadcast(factors[row])), o);
    }
  }
}

/// Softmax of one group: scores become weights, o is rescaled where the maximum rose.
void softmax_group(const ItemShape& shape, const Tile& tile, int head, int group, float* scores,
                   const ItemState& state) {
  const int rows = std::min(kGroupRows, shape.rows - group * kGroupRows);
  const TileRange* seen = tile.seen == nullptr ? nullptr : tile.seen + group * kGroupRows;
  const float* k_scale = tile.k_scale == nullptr ? nullptr : tile.k_scale + head * kTileKeys;
  finish_scores(shape, tile, state.factors[head], k_scale, seen, rows, scores);
  const int padded = round_up(tile.keys, kBlocks) * kGroupRows;
  GroupStats& stats = state.stats[head * shape.groups() + group];
  alignas(64) float factors[kLanes];
  if (raise_max(scores, padded, stats, factors)) {
    rescale_group(shape, output_group(shape, head, group, state.o), factors);
  }
  make_weights(scores, padded, stats);
  if (tile.v_scale == nullptr) return;
  for (int i = 0; i < tile.keys * kGroupRows; ++i) {
    scores[i] *= tile.v_scale[head * kTileKeys + i / kGroupRows];
  }
}

/// The steps of one tile, head by head.
class TileAttention {
 public:
  TileAttention(const ItemShape& shape, const Tile& tile, const ItemState& state)
      : shape_(shape),
        tile_(tile),
        state_(state),
        k_fetcher_({tile.next_k_rows, tile.next_keys, tile.k_fetch_bytes},
                   shape.heads * groups_ * std::max(1, tile.keys / kBlockKeys),
                   2 * k_steps_ * fetches_per_step(k_type_), state.zeros),
        v_fetcher_({tile.next_v_rows, tile.next_keys, tile.v_fetch_bytes},
                   shape.heads * groups_ * strip_count(2 * v_steps_),
                   tile.keys * fetches_per_key(v_type_), state.zeros) {}

  void score(int head) {
    HeadRows k{tile_.k_rows, head * tile_.k_head_bytes, 0};
    const std::byte* pointers[kVectorTileKeys];
    if (needs_expansion(shape_.kv_type, shape_.head_dim_qk)) {
      k = expand_rows(shape_.kv_type, shape_.head_dim_qk, k, tile_.keys, state_.expanded, pointers);
    }
    const ScoreInput input{query_group(shape_, head, 0, state_.q), k_steps_, state_.zeros};
    score_(input, groups_, k.rows, k.offset, tile_.keys, slot(head), k_fetcher_);
  }

  void soften(int head) {
    for (int group = 0; group < groups_; ++group) {
      softmax_group(shape_, tile_, head, group, slot(head) + group * kVectorTileKeys * kGroupRows,
                    state_);
    }
  }

  void add_values(int head) {
    HeadRows v{tile_.v_rows, head * tile_.v_head_bytes, tile_.v_row_bytes};
    const std::byte* pointers[kVectorTileKeys];
    if (needs_expansion(shape_.kv_type, shape_.head_dim_v)) {
      float* const to = state_.expanded + kVectorTileKeys * k_steps_ * 2 * kLanes;
      v = expand_rows(shape_.kv_type, shape_.head_dim_v, v, tile_.keys, to, pointers);
    }
    add_({state_.zeros, tile_.keys}, slot(head), groups_, v.rows, v.offset, v.row_bytes, v_steps_,
         output_group(shape_, head, 0, state_.o), v_fetcher_);
  }

 private:
  float* slot(int head) const { return score_slot(shape_, state_, head); }

  const ItemShape& shape_;
  const Tile& tile_;
  const ItemState& state_;
  int groups_ = shape_.groups();
  int k_steps_ = step_count(shape_.head_dim_qk), v_steps_ = step_count(shape_.head_dim_v);
  DType k_type_ = working_type(shape_.kv_type, shape_.head_dim_qk);
  DType v_type_ = working_type(shape_.kv_type, shape_.head_dim_v);
  ScoreHead score_ = score_function(k_type_, k_steps_);
  AddHead add_ = value_function(v_type_);
  Fetcher k_fetcher_, v_fetcher_;
};

/// The S/P ping-pong on a CPU: scores of the next head before the values of this one. What softmax
/// reads was stored long ago, and what it writes is not needed soon, so the multiply-adds around it
/// hide its latency.
template <class Attention>
HWY_INLINE void ping_pong(int heads, Attention attention) {
  attention.score(0);
  attention.soften(0);
  for (int head = 0; head < heads; ++head) {
    if (head + 1 < heads) attention.score(head + 1);
    attention.add_values(head);
    if (head + 1 < heads) attention.soften(head + 1);
  }
}

void attend_tile(const ItemShape& shape, const Tile& tile, const ItemState& state) {
  ping_pong(shape.heads, TileAttention(shape, tile, state));
}
