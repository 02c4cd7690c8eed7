// SPDX-License-Identifier: Apache-2.0
// The kernels of the CPU backend, written once over the vector operations of simd_*-inl.h and
// compiled once per instruction set by kernels_simd.cpp and kernels_scalar.cpp. One call computes
// one tile of keys for all rows and heads of an item:
//
//   scores = Q K^T           four rows x three or four keys in registers     scores-inl.h
//   weights, row_max, row_sum                                                softmax-inl.h
//   o = o * factor + P V     four rows x two vectors in registers            values-inl.h

/// Fetches the lines of the next tile, K first, in small portions between the blocks of this one.
class Fetcher {
 public:
  Fetcher(const Tile& tile, int calls) : tile_(&tile), rows_(2 * tile.next_keys) {
    const int lines = tile.next_keys * (tile.k_fetch_bytes + tile.v_fetch_bytes) / kCacheLine;
    portion_ = (lines + calls - 1) / calls;
    enter_row();
  }

  HWY_INLINE void advance() {
    for (int i = 0; i < portion_; ++i) {
      if (line_ >= end_) {
        if (++row_ >= rows_) return;
        enter_row();
      }
      fetch(line_);
      line_ += kCacheLine;
    }
  }

 private:
  void enter_row() {
    if (row_ >= rows_) return;
    const bool of_keys = row_ < tile_->next_keys;
    line_ = of_keys ? tile_->next_k_rows[row_] : tile_->next_v_rows[row_ - tile_->next_keys];
    end_ = line_ + (of_keys ? tile_->k_fetch_bytes : tile_->v_fetch_bytes);
  }

  const Tile* tile_;
  int rows_, row_ = 0, portion_ = 0;
  const std::byte *line_ = nullptr, *end_ = nullptr;
};

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
  for (int i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, bytes + 2 * i, sizeof bits);
    to[i] = type == DType::bf16 ? to_float(Bf16{bits}) : to_float(Half{bits});
  }
}

float* query_group(const ItemShape& shape, int head, int group, float* q) {
  const int floats = kGroupRows * 2 * kLanes * step_count(shape.head_dim_qk);
  return q + ptrdiff_t{head * shape.groups() + group} * floats;
}
float* output_group(const ItemShape& shape, int head, int group, float* o) {
  const int floats = kGroupRows * 2 * kLanes * step_count(shape.head_dim_v);
  return o + ptrdiff_t{head * shape.groups() + group} * floats;
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
  for (int p = 0; p < pair_count(steps); ++p) {
    const Pair pair = pair_at(steps, p);
    for (int j = 0; j < 2; ++j) {
      const float* lanes = o + ((p * kGroupRows + in_group) * 2 + j) * kLanes;
      for (int block = 0; block < kLanes / kGroupRows; ++block) {
        const int element = first_element(working, pair.step[j], pair.half[j], block);
        if (element < shape.head_dim_v) {
          std::copy_n(lanes + block * kGroupRows, kGroupRows, out + element);
        }
      }
    }
  }
  float sums[kLanes];
  store(add_over_blocks(load(stats.sum)), sums);
  to.max[to_row] = stats.max[in_group];
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

ScoreGroup score_function(DType working, int steps) {
  switch (working) {
    case DType::bf16: return score_function<DType::bf16>(steps);
    case DType::f16: return score_function<DType::f16>(steps);
    default: return score_function<DType::f32>(steps);
  }
}

using AddGroup = void (*)(const float*, const std::byte* const*, ptrdiff_t, ptrdiff_t, int, int,
                          float*, Fetcher&);

AddGroup value_function(DType working) {
  switch (working) {
    case DType::bf16: return add_group<DType::bf16>;
    case DType::f16: return add_group<DType::f16>;
    default: return add_group<DType::f32>;
  }
}

/// Softmax of one group: scores become weights, o is rescaled where the maximum rose.
void softmax_group(const ItemShape& shape, const Tile& tile, int head, int group, float* scores,
                   const ItemState& state) {
  const int rows = std::min(kGroupRows, shape.rows - group * kGroupRows);
  const TileRange* seen = tile.seen == nullptr ? nullptr : tile.seen + group * kGroupRows;
  const float* k_scale = tile.k_scale == nullptr ? nullptr : tile.k_scale + head * kTileKeys;
  finish_scores(shape, tile, k_scale, seen, rows, scores);
  const int padded = round_up(tile.keys, kBlocks) * kGroupRows;
  GroupStats& stats = state.stats[head * shape.groups() + group];
  alignas(64) float factors[kLanes];
  if (raise_max(scores, padded, stats, factors)) {
    float* o = output_group(shape, head, group, state.o);
    for (int p = 0; p < pair_count(step_count(shape.head_dim_v)); ++p) {
      for (int i = 0; i < 2 * kGroupRows; ++i, o += kLanes) {
        store(mul(load(o), broadcast(factors[i / 2])), o);
      }
    }
  }
  make_weights(scores, padded, stats);
  if (tile.v_scale == nullptr) return;
  for (int i = 0; i < tile.keys * kGroupRows; ++i) {
    scores[i] *= tile.v_scale[head * kTileKeys + i / kGroupRows];
  }
}

void attend_tile(const ItemShape& shape, const Tile& tile, const ItemState& state) {
  const DType k_type = working_type(shape.kv_type, shape.head_dim_qk);
  const DType v_type = working_type(shape.kv_type, shape.head_dim_v);
  const int k_steps = step_count(shape.head_dim_qk), v_steps = step_count(shape.head_dim_v);
  const ScoreGroup score = score_function(k_type, k_steps);
  const AddGroup add = value_function(v_type);
  const int groups = shape.groups();
  Fetcher fetcher(tile, shape.heads * groups * (tile.keys / kBlockKeys + pair_count(v_steps)));
  const std::byte *k_pointers[kTileKeys], *v_pointers[kTileKeys];
  float* const expanded_v = state.expanded + kTileKeys * k_steps * 2 * kLanes;
  for (int head = 0; head < shape.heads; ++head) {
    HeadRows k{tile.k_rows, head * tile.k_head_bytes, 0};
    HeadRows v{tile.v_rows, head * tile.v_head_bytes, tile.v_row_bytes};
    if (needs_expansion(shape.kv_type, shape.head_dim_qk)) {
      k = expand_rows(shape.kv_type, shape.head_dim_qk, k, tile.keys, state.expanded, k_pointers);
    }
    if (needs_expansion(shape.kv_type, shape.head_dim_v)) {
      v = expand_rows(shape.kv_type, shape.head_dim_v, v, tile.keys, expanded_v, v_pointers);
    }
    for (int group = 0; group < groups; ++group) {
      float* scores = state.scores + group * kTileKeys * kGroupRows;
      const ScoreInput input{query_group(shape, head, group, state.q), k_steps, state.zeros};
      score(input, k.rows, k.offset, tile.keys, scores, fetcher);
      softmax_group(shape, tile, head, group, scores, state);
    }
    for (int group = 0; group < groups; ++group) {
      add(state.scores + group * kTileKeys * kGroupRows, v.rows, v.offset, v.row_bytes, tile.keys,
          v_steps, output_group(shape, head, group, state.o), fetcher);
    }
  }
}
