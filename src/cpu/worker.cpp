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
      cut_(layout.cut(call)) {
  space_ = {.map = layout.partial_map(cut_.shape),
            .partials = layout.partials(workspace),
            .counters = layout.counters(workspace),
            .rows = cut_.shape.row_tile,
            .head_dim_v = problem.head_dim_v};
}

void Run::work(int participant, int worker) const {
  const HostMachine machine;
  const WorkShape& shape = cut_.shape;
  const auto live_sizes = [this](int32_t request) { return sizes_of(view_, request); };
  const Scratch scratch = layout_.scratch(workspace_, participant, cut_.bundle);
  PieceAttention attention(problem_, kernels_, call_, shape, cut_.bundle, scratch);
  const RowWriter writer(problem_, call_);
  const auto end_item = [&](const Item& item, const Partial& state) {
    const ItemRows rows(shape, item, cut_.bundle, problem_.group);
    for (int32_t row = 0; row < item.rows; ++row) {
      writer.write(machine, item.request, rows.place(row), state);
    }
  };
  Publisher publisher(shape, cut_.total, worker, space_);
  PieceWalk walk(shape, live_sizes, cut_.total, worker);
  for (Piece piece; walk.next(piece);) {
    attention.attend(piece, sizes_of(view_, piece.item.request));
    publisher.take(machine, piece, scratch.partial, end_item);
  }

  const Share idle = share_of(shape.batch, shape.workers, worker);
  for (int64_t request = idle.first; request < idle.last; ++request) {
    const RequestSizes live = sizes_of(view_, request);
    for (int32_t tile = 0; tile < row_tile_count(shape, live.q_len); ++tile) {
      if (!item_tiles(shape, live, tile).empty()) continue;
      const Share rows = row_span(shape, live.q_len, tile);
      for (int64_t row = rows.first; row < rows.last; ++row) {
        for (int32_t bundle = 0; bundle < shape.kv_heads; ++bundle) {
          const int64_t head = int64_t{bundle} * shape.group + row % shape.group;
          writer.write_empty(machine, request, row / shape.group, head);
        }
      }
    }
  }
}

}  // namespace deuce::cpu
