// SPDX-License-Identifier: Apache-2.0
// The walk of a worker and the end of items; see worker.h.
#include "cpu/worker.h"

#include <atomic>
#include <cmath>

#include "cpu/output.h"
#include "cpu/piece.h"

namespace deuce::cpu {
namespace {

/// What the merge asks of a machine, on a CPU thread.
struct HostMachine {
  float exp2(float x) const { return std::exp2(x); }
  float log2(float x) const { return std::log2(x); }
  uint32_t add_acq_rel(uint32_t* counter, uint32_t value) const {
    return std::atomic_ref<uint32_t>(*counter).fetch_add(value, std::memory_order_acq_rel);
  }
};

}  // namespace

Run::Run(const Problem& problem, const Kernels& kernels, const Layout& layout, const Call& call,
         std::byte* workspace)
    : problem_(problem),
      kernels_(kernels),
      layout_(layout),
      call_(call),
      workspace_(workspace),
      view_(problem, call),
      bundle_(bundle_for(problem, call)),
      shape_(work_shape(problem, bundle_, 1)) {
  shape_.batch = call.batch;
  total_ = total_tiles(shape_, [this](int32_t request) { return sizes(request); });
  shape_.workers = layout.workers_for(total_);
  space_ = {.map = layout.partial_map(shape_),
            .partials = layout.partials(workspace),
            .counters = layout.counters(workspace),
            .rows = shape_.row_tile,
            .head_dim_v = problem.head_dim_v};
}

RequestSizes Run::sizes(int32_t request) const {
  return {.kv_start = view_.kv_start(request),
          .kv_len = view_.kv_len(request),
          .q_len = static_cast<int32_t>(view_.q_len(request))};
}

void Run::work(int participant, int worker) const {
  const HostMachine machine;
  const auto live_sizes = [this](int32_t request) { return sizes(request); };
  const Scratch scratch = layout_.scratch(workspace_, participant, bundle_);
  PieceAttention attention(problem_, kernels_, call_, shape_, bundle_, scratch);
  const RowWriter writer(problem_, call_);
  const auto end_item = [&](const Item& item, const Partial& state) {
    const ItemRows rows(shape_, item, bundle_, problem_.group);
    for (int32_t row = 0; row < item.rows; ++row) {
      writer.write(machine, item.request, rows.place(row), state);
    }
  };
  Publisher publisher(shape_, total_, worker, space_);
  PieceWalk walk(shape_, live_sizes, total_, worker);
  for (Piece piece; walk.next(piece);) {
    attention.attend(piece, sizes(piece.item.request));
    publisher.take(machine, piece, scratch.partial, end_item);
  }

  const Share idle = share_of(shape_.batch, shape_.workers, worker);
  for (int64_t request = idle.first; request < idle.last; ++request) {
    const RequestSizes live = sizes(static_cast<int32_t>(request));
    for (int32_t tile = 0; tile < row_tile_count(shape_, live.q_len); ++tile) {
      if (!item_tiles(shape_, live, tile).empty()) continue;
      const Share rows = row_span(shape_, live.q_len, tile);
      for (int64_t row = rows.first; row < rows.last; ++row) {
        for (int32_t bundle = 0; bundle < shape_.kv_heads; ++bundle) {
          const int64_t head = int64_t{bundle} * shape_.group + row % shape_.group;
          writer.write_empty(machine, request, row / shape_.group, head);
        }
      }
    }
  }
}

}  // namespace deuce::cpu
