// SPDX-License-Identifier: Apache-2.0
// Workspace arithmetic of layout.h: one walk over the parts gives both their places and the size.
#include "cpu/layout.h"

#include <algorithm>

#include "plan/limits.h"

namespace deuce::cpu {
namespace {

/// Hands out parts of a block of memory, each on a cache line of its own; with a null base it only
/// counts.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}

  template <class T>
  T* take(int64_t count) {
    const std::size_t begin = used_;
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    used_ += (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
    return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + begin);
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

Scratch carve(const Problem& problem, const Kernels& kernels, const Bundle& bundle,
              Carver& carver) {
  const int groups = (bundle.rows_per_head() + kGroupRows - 1) / kGroupRows;
  const int64_t all_groups = int64_t{bundle.heads} * groups;
  const int k_width = kernels.padded(problem.head_dim_qk);
  const int v_width = kernels.padded(problem.head_dim_v);
  Scratch scratch{};
  scratch.item.q = carver.take<float>(all_groups * kGroupRows * k_width);
  scratch.item.o = carver.take<float>(all_groups * kGroupRows * v_width);
  scratch.item.stats = carver.take<GroupStats>(all_groups);
  scratch.item.scores = carver.take<float>(int64_t{score_slots(kernels, bundle.heads)} * groups *
                                           kTileKeys * kGroupRows);
  scratch.item.expanded = carver.take<float>(int64_t{kVectorTileKeys} * (k_width + v_width));
  scratch.item.zeros = carver.take<float>(kMaxLanes);
  scratch.item.factors = carver.take<float>(bundle.heads);
  float* partial = carver.take<float>(partial_floats(bundle.row_tile, problem.head_dim_v));
  if (partial != nullptr) {
    scratch.partial = partial_at(partial, bundle.row_tile, problem.head_dim_v);
  }
  scratch.query = carver.take<float>(k_width);
  scratch.seen = carver.take<TileRange>(bundle.rows_per_head());
  for (int i = 0; i < 2; ++i) {
    scratch.k_scale[i] = carver.take<float>(int64_t{bundle.heads} * kTileKeys);
    scratch.v_scale[i] = carver.take<float>(int64_t{bundle.heads} * kTileKeys);
    scratch.k_rows[i] = carver.take<const std::byte*>(kTileKeys);
    scratch.v_rows[i] = carver.take<const std::byte*>(kTileKeys);
  }
  return scratch;
}

}  // namespace

Layout::Layout(const Problem& problem, const Kernels& kernels, int threads, int forced_workers)
    : problem_(problem), kernels_(&kernels), threads_(threads), forced_(forced_workers > 0) {
  // Under split_kv_len every worker has room for a stack of tree nodes: one worker a thread.
  const int per_thread = threads == 1 || problem.split_kv_len > 0 ? 1 : kWorkersPerThread;
  max_workers_ = forced_ ? forced_workers : threads * per_thread;
  std::size_t counter_bytes = 0, partial_bytes = 0;
  for (const Bundle& bundle :
       {single_head(problem), widest_bundle(problem), shared_bundle(problem, threads)}) {
    const WorkShape shape = work_shape(problem, bundle, max_workers_);
    const PartialMap map = partial_map(shape);
    counter_bytes = std::max(counter_bytes, map.counter_count() * sizeof(uint32_t));
    partial_bytes =
        std::max(partial_bytes,
                 map.slot_count() * sizeof(float) *
                     static_cast<std::size_t>(partial_floats(shape.row_tile, problem.head_dim_v)));
    Carver carver(nullptr);
    carve(problem, kernels, bundle, carver);
    scratch_bytes_ = std::max(scratch_bytes_, workspace_aligned(carver.used()));
  }
  partials_begin_ = workspace_aligned(counter_bytes);
  scratch_begin_ = partials_begin_ + workspace_aligned(partial_bytes);
}

/// Where cuts follow live values anyway, a short call of few requests is not cut at all: its heads
/// are dealt out instead.
Cut Layout::cut(const Call& call) const {
  const bool bundles = takes_bundles(problem_, call);
  const Cut usual = cut(call, bundles ? widest_bundle(problem_) : single_head(problem_));
  const bool cuts_are_free = problem_.split_kv_len == 0 && problem_.num_splits == 0 && !forced_;
  const bool leaves_threads = int64_t{call.batch} * usual.shape.kv_heads < threads_;
  const bool is_short = usual.total <= int64_t{threads_} * kShortTilesPerThread;
  if (!bundles || !cuts_are_free || !leaves_threads || !is_short) return usual;
  return cut(call, shared_bundle(problem_, threads_));
}

Cut Layout::cut(const Call& call, const Bundle& bundle) const {
  const CacheView view(problem_, call);
  Cut cut{.bundle = bundle, .shape = work_shape(problem_, bundle, 1)};
  cut.shape.batch = call.batch;
  cut.total = total_tiles(cut.shape, [&](int32_t request) { return sizes_of(view, request); });
  cut.shape.workers = workers_for(cut.total);
  return cut;
}

int Layout::workers_for(int64_t total) const {
  if (forced_ || threads_ == 1) return max_workers_;
  const int64_t wanted = std::max<int64_t>(threads_, total / kTilesPerWorker);
  return static_cast<int>(std::min<int64_t>(max_workers_, wanted));
}

Scratch Layout::scratch(std::byte* workspace, int participant, const Bundle& bundle) const {
  Carver carver(workspace + scratch_begin_ + participant * scratch_bytes_);
  return carve(problem_, *kernels_, bundle, carver);
}

PartialMap Layout::partial_map(const WorkShape& shape) const {
  return deuce::partial_map(shape, {.max_batch = problem_.max_batch,
                                    .max_q_len = problem_.max_q_len,
                                    .max_kv_len = problem_.max_kv_len});
}

}  // namespace deuce::cpu
