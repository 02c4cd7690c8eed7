// SPDX-License-Identifier: Apache-2.0
// The tiled attention. Clarity before speed: one thread plays all workers in turn.
#include "support/tiled.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

#include "kernel/numbers.h"
#include "kernel/publish.h"
#include "plan/cache_view.h"
#include "reference/number_format.h"

namespace deuce::testing {
namespace {

constexpr int32_t kTile = 64, kRows = 32;

struct HostMath {
  static float exp2(float x) { return std::exp2(x); }
  static float log2(float x) { return std::log2(x); }
  static uint32_t add_acq_rel(uint32_t* counter, uint32_t value) {
    return std::atomic_ref<uint32_t>(*counter).fetch_add(value);
  }
};

float through_fp16(float value) { return to_float(from_float<Half>(value)); }
float through_bf16(float value) { return to_float(from_float<Bf16>(value)); }

class Tiled {
 public:
  Tiled(const Problem& problem, const Call& call, int32_t workers, Mistake mistake)
      : problem_(problem), call_(call), view_(problem, call), mistake_(mistake) {
    shape_.batch = call.batch;
    shape_.kv_heads = problem.num_kv_heads;
    shape_.group = problem.group;
    shape_.row_tile = kRows;
    shape_.kv_tile = kTile;
    shape_.workers = workers > 0 ? workers : 5;
    shape_.num_splits = problem.num_splits;
    shape_.split_tiles = problem.split_kv_len / kTile;
    shape_.mask = {problem.causal, problem.window_left, problem.window_right};
  }

  void run() {
    const auto sizes = [&](int32_t request) {
      return RequestSizes{view_.kv_start(request), view_.kv_len(request),
                          static_cast<int32_t>(view_.q_len(request))};
    };
    PartialSpace space;
    space.map = partial_map(shape_, {call_.batch, problem_.max_q_len, problem_.max_kv_len});
    space.rows = kRows;
    space.head_dim_v = problem_.head_dim_v;
    const int64_t floats = partial_floats(kRows, problem_.head_dim_v);
    std::vector<float> partials(space.map.slot_count() * floats, NAN), own(floats);
    std::vector<uint32_t> counters(space.map.counter_count(), 0);
    space.partials = partials.data();
    space.counters = counters.data();

    const int64_t total = total_tiles(shape_, sizes);
    const int32_t walked = shape_.workers - (mistake_ == Mistake::one_worker_idle ? 1 : 0);
    for (int32_t worker = 0; worker < walked; ++worker) {
      PieceWalk walk(shape_, sizes, total, worker);
      Publisher publisher(shape_, total, worker, space);
      for (Piece piece; walk.next(piece);) {
        const Partial state = partial_at(own.data(), kRows, problem_.head_dim_v);
        attend(piece, state);
        publisher.take(HostMath{}, piece, state, [&](const Item& item, const Partial& end) {
          if (mistake_ == Mistake::merge_without_max && !piece.is_whole_item())
            spoil_merge(item, end, space, total);
          for (int32_t row = 0; row < item.rows; ++row) end_row(item, row, end);
        });
      }
      if (mistake_ != Mistake::empty_rows_unwritten) write_empty_rows(sizes, worker);
    }
  }

 private:
  struct RowPlace {
    int64_t token, head;
  };
  RowPlace place_of(const Item& item, int32_t row) const {
    const int64_t packed = int64_t{item.row_tile} * kRows + row;
    return {packed / problem_.group, item.kv_head * problem_.group + packed % problem_.group};
  }

  void attend(const Piece& piece, const Partial& state) const {
    for (int32_t row = 0; row < piece.item.rows; ++row) attend_row(piece, row, state);
  }

  void attend_row(const Piece& piece, int32_t row, const Partial& state) const {
    const int32_t dim = problem_.head_dim_v;
    float* o = state.o + row * dim;
    std::fill_n(o, dim, 0.0F);
    float max = mistake_ == Mistake::max_starts_at_zero ? 0.0F : kNoKey, sum = 0;
    for (int32_t tile = piece.tiles.first; tile < piece.tiles.last; ++tile) {
      float scores[kTile];
      score_tile(piece.item, row, tile, scores);
      const float tile_max = *std::max_element(scores, scores + kTile);
      const float new_max = std::max(max, tile_max);
      if (new_max > max && max != kNoKey) rescale(std::exp2(max - new_max), o, sum);
      max = new_max;
      if (max == kNoKey) continue;
      add_tile(piece.item, tile, scores, max, o, sum);
    }
    if (mistake_ == Mistake::partials_in_bf16 && !piece.is_whole_item()) {
      for (int32_t c = 0; c < dim; ++c) o[c] = through_bf16(o[c]);
    }
    if (mistake_ == Mistake::sink_in_every_part && !piece.is_whole_item()) {
      const float sink = sink_of(place_of(piece.item, row).head);
      if (sink != kNoKey && max != kNoKey) sum += std::exp2(sink - max);
    }
    state.max[row] = max;
    state.sum[row] = sum;
  }

  void rescale(float factor, float* o, float& sum) const {
    if (mistake_ == Mistake::rescale_forgotten) return;
    sum *= factor;
    if (mistake_ == Mistake::rescale_of_sum_only && factor > 0.00390625F) return;
    for (int32_t c = 0; c < problem_.head_dim_v; ++c) o[c] *= factor;
  }

  bool sees(const Item& item, int64_t token, int64_t key) const {
    const int64_t kv_len = view_.kv_len(item.request), q_len = view_.q_len(item.request);
    if (mistake_ != Mistake::last_tile_unmasked && key >= kv_len) return false;
    if (mistake_ == Mistake::walk_stops_at_4096 && key >= 4096 && key < kv_len - 16) return false;
    const int64_t page = problem_.page_size;
    if (mistake_ == Mistake::page_tail_dropped && page > 8 && key % page >= page - 3) return false;
    const int64_t top_left = mistake_ == Mistake::causal_top_left ? token : kv_len - q_len + token;
    const int64_t pos = kv_len - q_len + token;
    if (problem_.causal && key > top_left) return false;
    if (problem_.window_right >= 0 && key > pos + problem_.window_right) return false;
    int64_t left = pos - problem_.window_left;
    if (mistake_ == Mistake::window_by_tile) left = left / kTile * kTile;
    return problem_.window_left < 0 || key >= left;
  }

  int64_t kv_head_of(const Item& item) const {
    return mistake_ == Mistake::head_modulo
               ? (item.kv_head * problem_.group + item.kv_head) % problem_.num_kv_heads
               : item.kv_head;
  }

  /// Scores in log2 units, masked ones minus infinity.
  void score_tile(const Item& item, int32_t row, int32_t tile, float* scores) const {
    const RowPlace at = place_of(item, row);
    const int64_t first = view_.kv_start(item.request) + int64_t{tile} * kTile;
    std::vector<double> q(problem_.head_dim_qk), k(problem_.head_dim_qk);
    reference::load_row(problem_.q_type, call_.q, view_.q_offset(item.request, at.token, at.head),
                        problem_.head_dim_qk, q.data());
    const float factor = problem_.softmax_scale * call_.score_scale *
                         view_.q_descale(item.request, item.kv_head) *
                         view_.k_descale(item.request, item.kv_head);
    for (int32_t i = 0; i < kTile; ++i) {
      const bool stand_in = mistake_ == Mistake::finite_mask && problem_.window_left < 0 &&
                            readable(item.request, first + i);
      scores[i] = stand_in ? -1e4F : kNoKey;
      if (!readable(item.request, first + i) || !sees(item, at.token, first + i)) continue;
      const SlotPlace slot = view_.place(item.request, first + i);
      reference::load_row(problem_.kv_type, call_.k, view_.k_offset(slot, kv_head_of(item)),
                          problem_.head_dim_qk, k.data());
      float dot = 0;
      for (int32_t c = 0; c < problem_.head_dim_qk; ++c) {
        dot += static_cast<float>(q[c]) * static_cast<float>(k[c]);
      }
      float score = dot * factor * view_.k_token_scale(slot, item.kv_head);
      if (problem_.softcap > 0) score = problem_.softcap * std::tanh(score / problem_.softcap);
      scores[i] = score * kLog2E;
    }
  }

  /// Mistaken reads stay inside the cache: ids that no row needs may be junk.
  bool readable(int64_t request, int64_t key) const {
    const bool past_end_read =
        mistake_ == Mistake::last_tile_unmasked || mistake_ == Mistake::v_tail_not_cleared;
    if (key >= (past_end_read ? view_.capacity(request) : view_.kv_len(request))) return false;
    if (mistake_ == Mistake::none) return true;
    const int64_t page = view_.place(request, key).page;
    return page >= 0 && page < call_.num_pages;
  }

  void add_tile(const Item& item, int32_t tile, const float* scores, float max, float* o,
                float& sum) const {
    const int64_t first = view_.kv_start(item.request) + int64_t{tile} * kTile;
    std::vector<double> v(problem_.head_dim_v);
    for (int32_t i = 0; i < kTile; ++i) {
      const bool reads_anyway = mistake_ == Mistake::v_tail_not_cleared;
      if (scores[i] == kNoKey && !reads_anyway) continue;
      const float p = std::exp2(scores[i] - max);
      sum += p;
      if (!readable(item.request, first + i)) continue;
      const SlotPlace slot = view_.place(item.request, first + i);
      reference::load_row(problem_.kv_type, call_.v, view_.v_offset(slot, kv_head_of(item)),
                          problem_.head_dim_v, v.data());
      const float weight = p * view_.v_token_scale(slot, item.kv_head);
      for (int32_t c = 0; c < problem_.head_dim_v; ++c) {
        o[c] += weight * static_cast<float>(v[c]);
        if (mistake_ == Mistake::accumulate_in_fp16) o[c] = through_fp16(o[c]);
      }
    }
  }

  /// Replaces a right merge by a wrong one; the parts after the first are still in their slots.
  void spoil_merge(const Item& item, const Partial& end, const PartialSpace& space,
                   int64_t total) const {
    if (shape_.num_splits > 0 || shape_.split_tiles > 0) return;
    const WorkerSpan workers = workers_of(shape_, total, item);
    for (int32_t row = 0; row < item.rows; ++row) {
      for (int32_t w = workers.first + 1; w <= workers.last; ++w) {
        const Partial part = space.slot(space.map.stream_slot(w, false));
        if (part.max[row] == kNoKey) continue;
        end.sum[row] += (1 - std::exp2(part.max[row] - end.max[row])) * part.sum[row];
      }
    }
  }

  float sink_of(int64_t head) const {
    if (call_.sink == nullptr) return kNoKey;
    double sink = 0;
    reference::load_row(problem_.sink_type, call_.sink, head, 1, &sink);
    return static_cast<float>(sink) * kLog2E;
  }

  void end_row(const Item& item, int32_t row, const Partial& end) const {
    const RowPlace at = place_of(item, row);
    const bool base2 = problem_.lse_base2 || mistake_ == Mistake::lse_base_2;
    const float factor = call_.out_scale * view_.v_descale(item.request, item.kv_head);
    const RowResult result =
        finish_row(HostMath{}, end.max[row], end.sum[row], sink_of(at.head), factor, base2);
    std::vector<double> values(problem_.head_dim_v, 0.0);
    for (int32_t c = 0; c < problem_.head_dim_v && end.max[row] != kNoKey; ++c) {
      values[c] = end.o[row * problem_.head_dim_v + c] * result.scale;
    }
    reference::store_row(problem_.out_type, call_.out,
                         view_.out_offset(item.request, at.token, at.head), problem_.head_dim_v,
                         values.data());
    if (call_.lse != nullptr) {
      call_.lse[view_.lse_offset(item.request, at.token, at.head)] = result.lse;
    }
  }

  template <class Sizes>
  void write_empty_rows(const Sizes& sizes, int32_t worker) const {
    std::vector<float> nothing(partial_floats(kRows, problem_.head_dim_v), 0.0F);
    const Partial state = partial_at(nothing.data(), kRows, problem_.head_dim_v);
    std::fill_n(state.max, kRows, kNoKey);
    const Share mine = share_of(shape_.batch, shape_.workers, worker);
    for (auto request = static_cast<int32_t>(mine.first); request < mine.last; ++request) {
      const RequestSizes live = sizes(request);
      for (int32_t m = 0; m < row_tile_count(shape_, live.q_len); ++m) {
        if (!item_tiles(shape_, live, m).empty()) continue;
        const Share rows = row_span(shape_, live.q_len, m);
        for (int32_t h = 0; h < shape_.kv_heads; ++h) {
          const Item item{request, h, m, static_cast<int32_t>(rows.last - rows.first)};
          for (int32_t row = 0; row < item.rows; ++row) end_row(item, row, state);
        }
      }
    }
  }

  const Problem& problem_;
  const Call& call_;
  CacheView view_;
  Mistake mistake_;
  WorkShape shape_;
};

}  // namespace

Subject tiled(Mistake mistake) {
  return {.name = "tiled",
          .direct = [mistake](const Problem& problem, const Call& call, int32_t workers) {
            Tiled(problem, call, workers, mistake).run();
          }};
}

}  // namespace deuce::testing
