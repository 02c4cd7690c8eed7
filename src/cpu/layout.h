// SPDX-License-Identifier: Apache-2.0
// How a plan of the CPU backend cuts its work and what memory that takes: pure functions of the
// problem, the kernels and the number of threads. Used by cpu_backend.cpp and worker.cpp. Live
// values choose among what is planned here and never ask for more.
//
// Heads of a cache in NHD order are walked in bundles: read one by one they are pieces of 128 or
// 256 bytes every few kilobytes, which reaches about half the speed of a stream (docs/cpu.md). To
// the work cutting a bundle is one KV head with a group as large as all its query heads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/kernels.h"
#include "kernel/partials.h"
#include "kernel/work.h"
#include "plan/cache_view.h"
#include "plan/problem.h"

namespace deuce::cpu {

inline constexpr int kScheduleTile = 32;  // keys of a tile of the work cutting
inline constexpr int kMaxItemRows = 128;
/// More rows make partials large, and q and o fall out of the second-level cache.
inline constexpr int kMaxBundleRows = 64;
inline constexpr int kMaxHeadRows = 64;       // more rows a head than this pay for nothing
inline constexpr int kMaxBundleBytes = 4096;  // of K a key; a page of memory
/// A call of fewer tiles a thread than this spends more on merging than narrower bundles cost.
inline constexpr int kShortTilesPerThread = 4;
inline constexpr int kMinBundleBytes = 1024;  // of K a key, when a bundle is made narrower for that
/// Ranges a thread claims when there is enough work: a thread that loses its CPU holds up one.
inline constexpr int kWorkersPerThread = 4;
inline constexpr int kTilesPerWorker = 8;

/// KV heads that are walked together and the packed rows of an item.
struct Bundle {
  int heads = 1;
  int row_tile = 1;
  int rows_per_head() const { return row_tile / heads; }
};

constexpr int query_tokens(const Problem& problem) {
  const int tokens = kMaxHeadRows / problem.group;
  return tokens < 1 ? 1 : tokens < problem.max_q_len ? tokens : problem.max_q_len;
}

constexpr Bundle single_head(const Problem& problem) {
  const int rows = query_tokens(problem) * problem.group;
  return {.heads = 1, .row_tile = rows < kMaxItemRows ? rows : kMaxItemRows};
}

/// The largest bundle that divides the KV heads evenly.
constexpr Bundle widest_bundle(const Problem& problem) {
  Bundle widest = single_head(problem);
  const int64_t head_rows = int64_t{query_tokens(problem)} * problem.group;
  const int64_t head_bytes = int64_t{problem.head_dim_qk} * dtype_bytes(problem.kv_type);
  for (int heads = 2; heads <= problem.num_kv_heads; ++heads) {
    if (heads * head_rows > kMaxBundleRows || heads * head_bytes > kMaxBundleBytes) break;
    if (problem.num_kv_heads % heads != 0) continue;
    widest = {.heads = heads, .row_tile = static_cast<int>(heads * head_rows)};
  }
  return widest;
}

/// The largest part of the widest bundle of which a request has one for each thread, if that still
/// reads long enough pieces; else the widest bundle.
constexpr Bundle shared_bundle(const Problem& problem, int threads) {
  const Bundle widest = widest_bundle(problem);
  if (problem.num_kv_heads / widest.heads >= threads) return widest;
  for (int heads = widest.heads - 1; heads >= 1; --heads) {
    const bool enough = problem.num_kv_heads / heads >= threads;
    if (widest.heads % heads != 0 || !enough) continue;
    const int64_t bytes = int64_t{heads} * problem.head_dim_qk * dtype_bytes(problem.kv_type);
    if (bytes < kMinBundleBytes) break;
    return {.heads = heads, .row_tile = widest.rows_per_head() * heads};
  }
  return widest;
}

/// Bundles help where the heads of a key lie side by side.
inline bool takes_bundles(const Problem& problem, const Call& call) {
  const bool k_dense = call.k_stride[2] == problem.head_dim_qk;
  const bool v_dense = call.v_stride[2] == problem.head_dim_v;
  return k_dense && v_dense && call.k_stride[2] < call.k_stride[1];
}

constexpr WorkShape work_shape(const Problem& problem, const Bundle& bundle, int workers) {
  return {.kv_heads = problem.num_kv_heads / bundle.heads,
          .group = problem.group * bundle.heads,
          .row_tile = bundle.row_tile,
          .kv_tile = kScheduleTile,
          .workers = workers,
          .num_splits = problem.num_splits,
          .split_tiles = problem.split_kv_len / kScheduleTile,
          .mask = {.causal = problem.causal,
                   .window_left = problem.window_left,
                   .window_right = problem.window_right}};
}

inline RequestSizes sizes_of(const CacheView& view, int64_t request) {
  return {.kv_start = view.kv_start(request),
          .kv_len = view.kv_len(request),
          .q_len = static_cast<int32_t>(view.q_len(request))};
}

/// How the work of one call is cut.
struct Cut {
  Bundle bundle;
  WorkShape shape;
  int64_t total = 0;  // tiles
};

/// Pointers into a worker's scratch.
struct Scratch {
  ItemState item;
  Partial partial;                 // [row_tile]
  float* query;                    // [padded head_dim_qk]
  float *k_scale[2], *v_scale[2];  // [heads, kTileKeys]; this tile's and the next one's
  TileRange* seen;                 // [rows_per_head]
  const std::byte** k_rows[2];     // [kTileKeys]
  const std::byte** v_rows[2];
};

/// Sizes and places of everything in the workspace: counters, partials, scratch of each thread.
class Layout {
 public:
  Layout(const Problem& problem, const Kernels& kernels, int threads, int forced_workers);

  std::size_t bytes() const { return scratch_begin_ + threads_ * scratch_bytes_; }
  std::size_t control_bytes() const { return partials_begin_; }
  int threads() const { return threads_; }
  int max_workers() const { return max_workers_; }
  Cut cut(const Call& call) const;

  uint32_t* counters(std::byte* workspace) const { return reinterpret_cast<uint32_t*>(workspace); }
  float* partials(std::byte* workspace) const {
    return reinterpret_cast<float*>(workspace + partials_begin_);
  }
  Scratch scratch(std::byte* workspace, int participant, const Bundle& bundle) const;
  PartialMap partial_map(const WorkShape& shape) const;

 private:
  Cut cut(const Call& call, const Bundle& bundle) const;
  /// Few for little work, several a thread for much.
  int workers_for(int64_t total) const;

  Problem problem_;
  const Kernels* kernels_;
  int threads_, max_workers_;
  bool forced_;
  std::size_t partials_begin_ = 0, scratch_begin_ = 0, scratch_bytes_ = 0;
};

}  // namespace deuce::cpu
