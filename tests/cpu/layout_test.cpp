// SPDX-License-Identifier: Apache-2.0
// How the CPU backend cuts a call: what is walked together, by how many workers, in what tiles.
#include "cpu/layout.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace deuce::cpu {
namespace {

constexpr int kThreads = 2;

Problem llama() {
  Problem problem;
  problem.num_q_heads = 32;
  problem.num_kv_heads = 8;
  problem.group = 4;
  problem.head_dim_qk = problem.head_dim_v = 128;
  problem.q_type = problem.kv_type = problem.out_type = DType::bf16;
  problem.max_batch = 8;
  problem.max_q_len = 1;
  problem.max_kv_len = 1 << 20;
  return problem;
}

Call call_of(const Problem& problem, int batch, int64_t keys, bool heads_first = false) {
  Call call{};
  call.batch = batch;
  call.q_len = 1;
  call.kv_len_all = call.cache_slots = keys;
  const int64_t heads = problem.num_kv_heads, dim = problem.head_dim_qk;
  call.k_stride[0] = call.v_stride[0] = keys * heads * dim;
  call.k_stride[1] = call.v_stride[1] = heads_first ? dim : heads * dim;
  call.k_stride[2] = call.v_stride[2] = heads_first ? keys * dim : dim;
  return call;
}

Cut cut_of(const Problem& problem, const Call& call, int threads = kThreads) {
  return Layout(problem, scalar_kernels(), threads, 0).cut(call);
}

TEST(CpuLayout, AllHeadsOfAKeyAreWalkedTogetherAndAShortCallDealsThemOut) {
  const Problem problem = llama();
  const int64_t shortest = 32, limit = int64_t{kThreads} * kShortTilesPerThread * kScheduleTile;
  for (const int64_t keys : {shortest, limit}) {
    const Cut cut = cut_of(problem, call_of(problem, 1, keys));
    EXPECT_EQ(cut.bundle.heads, 4) << keys;
    EXPECT_EQ(cut.bundle.row_tile, 16) << keys;
    EXPECT_EQ(cut.shape.workers, kThreads) << keys;
    EXPECT_EQ(cut.total % kThreads, 0) << keys << ": no item is cut";
  }
  EXPECT_EQ(cut_of(problem, call_of(problem, 1, limit + 1)).bundle.heads, 8);
  EXPECT_EQ(cut_of(problem, call_of(problem, kThreads, shortest)).bundle.heads, 8)
      << "one request for each thread";
  EXPECT_EQ(cut_of(problem, call_of(problem, 1, shortest), 1).bundle.heads, 8) << "one thread";
  EXPECT_EQ(cut_of(problem, call_of(problem, 1, shortest), 8).bundle.heads, 8)
      << "pieces for eight threads would be shorter than kMinBundleBytes";
  EXPECT_EQ(cut_of(problem, call_of(problem, 1, shortest, true)).bundle.heads, 1) << "HND";
}

TEST(CpuLayout, WhereTheCallerFixesTheCutsLiveLengthsDoNotChangeThem) {
  Problem problem = llama();
  problem.split_kv_len = 128;
  EXPECT_EQ(cut_of(problem, call_of(problem, 1, 256)).bundle.heads, 8);
  problem.split_kv_len = 0;
  problem.num_splits = 2;
  EXPECT_EQ(cut_of(problem, call_of(problem, 1, 256)).bundle.heads, 8);
}

TEST(CpuLayout, TilesGrowShrinkTowardsTheEndOfAPieceAndCoverIt) {
  for (const bool dots : {false, true}) {
    const ItemShape shape{
        .heads = 8, .rows = 4, .head_dim_qk = 128, .head_dim_v = 128, .dots = dots};
    for (int64_t keys = 1; keys < 500; ++keys) {
      int tile = shape.first_tile_keys(), largest = tile;
      for (int64_t left = keys - tile; left > 0; left -= tile) {
        const int next = shape.tile_keys(tile, left);
        ASSERT_LE(next, 2 * tile);
        ASSERT_GE(next, shape.first_tile_keys());
        tile = next;
        largest = std::max(largest, tile);
      }
      EXPECT_EQ(tile, shape.first_tile_keys()) << keys << ": the last tile is a short one";
      EXPECT_LE(largest, shape.tile_keys());
      if (keys > 400) {
        EXPECT_EQ(largest, shape.tile_keys()) << keys;
      }
    }
  }
}

/// K and V of two tiles stay in half of a megabyte, and arrays of keys have room.
TEST(CpuLayout, TilesWithDotsFitTheSecondLevelCache) {
  for (const int heads : {1, 2, 8, 16}) {
    for (const int head_dim : {32, 64, 128, 256}) {
      const ItemShape shape{
          .heads = heads, .rows = 4, .head_dim_qk = head_dim, .head_dim_v = head_dim, .dots = true};
      EXPECT_LE(shape.tile_keys(), kDotTileKeys);
      EXPECT_EQ(shape.tile_keys() % shape.first_tile_keys(), 0);
      const bool smallest = shape.tile_keys() == shape.first_tile_keys();
      EXPECT_TRUE(smallest || shape.tile_keys() * heads * head_dim * 2 <= kDotTileBytes);
    }
  }
}

}  // namespace
}  // namespace deuce::cpu
