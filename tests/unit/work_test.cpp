// SPDX-License-Identifier: Apache-2.0
// Work cutting by itself: whatever the lengths, masks and worker count, every visible KV tile is
// walked exactly once, shares differ by one tile at most, and forced borders are kept.
#include "kernel/work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <tuple>
#include <vector>

namespace deuce {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max() / 2;

struct Batch {
  WorkShape shape;
  std::vector<RequestSizes> requests;
  RequestSizes operator()(int32_t request) const { return requests[request]; }
};

using Rng = std::mt19937_64;
int64_t draw(Rng& rng, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(rng);
}

Batch draw_batch(Rng& rng) {
  Batch batch;
  WorkShape& shape = batch.shape;
  shape.batch = static_cast<int32_t>(draw(rng, 0, 12));
  shape.kv_heads = static_cast<int32_t>(draw(rng, 1, 5));
  shape.group = static_cast<int32_t>(draw(rng, 1, 20));
  shape.row_tile = static_cast<int32_t>(draw(rng, 1, 40));
  shape.kv_tile = 16 << draw(rng, 0, 3);
  constexpr int kWorkers[] = {1, 2, 3, 7, 46, 132, 1000};
  shape.workers = kWorkers[draw(rng, 0, 6)];
  const int64_t cutting = draw(rng, 0, 2);
  if (cutting == 1) shape.num_splits = static_cast<int32_t>(draw(rng, 1, 32));
  if (cutting == 2) shape.split_tiles = static_cast<int32_t>(draw(rng, 1, 9));
  shape.mask.causal = draw(rng, 0, 1) == 1;
  if (draw(rng, 0, 2) == 0) shape.mask.window_left = draw(rng, 0, 300);
  if (draw(rng, 0, 2) == 0) shape.mask.window_right = draw(rng, 0, 300);
  for (int32_t i = 0; i < shape.batch; ++i) {
    RequestSizes sizes;
    sizes.kv_len = draw(rng, 0, 3) == 0 ? draw(rng, 0, 3) : draw(rng, 0, 1500);
    sizes.kv_start = draw(rng, 0, 2) == 0 ? draw(rng, 0, sizes.kv_len) : 0;
    sizes.q_len = static_cast<int32_t>(draw(rng, 0, 9));
    batch.requests.push_back(sizes);
  }
  return batch;
}

using TileKey = std::tuple<int32_t, int32_t, int32_t, int32_t>;  // request, head, row tile, tile

bool is_visible(const MaskRule& mask, const RequestSizes& sizes, int64_t row, int64_t key) {
  const int64_t pos = sizes.kv_len - sizes.q_len + row;
  return key >= sizes.kv_start && key < sizes.kv_len && (!mask.causal || key <= pos) &&
         (mask.window_left < 0 || key >= pos - mask.window_left) &&
         (mask.window_right < 0 || key <= pos + mask.window_right);
}

/// Tiles that hold a key which a row of the item sees, found key by key.
std::map<TileKey, int> needed_tiles(const Batch& batch) {
  std::map<TileKey, int> needed;
  const WorkShape& shape = batch.shape;
  for (int32_t b = 0; b < shape.batch; ++b) {
    const RequestSizes& sizes = batch.requests[b];
    for (int32_t token = 0; token < sizes.q_len; ++token) {
      int32_t last_tile = -1;
      for (int64_t key = sizes.kv_start; key < sizes.kv_len; ++key) {
        if (!is_visible(shape.mask, sizes, token, key)) continue;
        const auto tile = static_cast<int32_t>((key - sizes.kv_start) / shape.kv_tile);
        if (tile == last_tile) continue;
        last_tile = tile;
        const int32_t first_row = token * shape.group, last_row = first_row + shape.group - 1;
        for (int32_t m = first_row / shape.row_tile; m <= last_row / shape.row_tile; ++m) {
          for (int32_t h = 0; h < shape.kv_heads; ++h) needed[{b, h, m, tile}] = 0;
        }
      }
    }
  }
  return needed;
}

TEST(Work, EveryVisibleTileIsWalkedExactlyOnceAndNoOther) {
  Rng rng(20240501);
  for (int round = 0; round < 300; ++round) {
    const Batch batch = draw_batch(rng);
    std::map<TileKey, int> tiles = needed_tiles(batch);
    const int64_t total = total_tiles(batch.shape, batch);
    ASSERT_EQ(total, static_cast<int64_t>(tiles.size())) << "round " << round;
    for (int32_t worker = 0; worker < batch.shape.workers; ++worker) {
      PieceWalk walk(batch.shape, batch, total, worker);
      for (Piece piece; walk.next(piece);) {
        ASSERT_FALSE(piece.tiles.empty()) << "round " << round;
        for (int32_t tile = piece.tiles.first; tile < piece.tiles.last; ++tile) {
          const auto found =
              tiles.find({piece.item.request, piece.item.kv_head, piece.item.row_tile, tile});
          ASSERT_NE(found, tiles.end()) << "round " << round << ": walks a tile nobody sees";
          ++found->second;
        }
      }
    }
    for (const auto& [key, count] : tiles) ASSERT_EQ(count, 1) << "round " << round;
  }
}

TEST(Work, SharesDifferByOneTileAtMost) {
  Rng rng(7);
  for (int round = 0; round < 2000; ++round) {
    const int64_t total = round % 3 == 0 ? draw(rng, 0, 40) : draw(rng, 0, kHuge);
    const auto parts = static_cast<int32_t>(draw(rng, 1, 40));
    int64_t smallest = kHuge, largest = 0, next = 0;
    for (int32_t i = 0; i < parts; ++i) {
      const Share share = share_of(total, parts, i);
      ASSERT_EQ(share.first, next);
      next = share.last;
      smallest = std::min(smallest, share.last - share.first);
      largest = std::max(largest, share.last - share.first);
    }
    ASSERT_EQ(next, total);
    ASSERT_LE(largest - smallest, 1);
  }
}

TEST(Work, TheOwnerOfAPositionIsThePartWhoseShareHoldsIt) {
  Rng rng(11);
  for (int round = 0; round < 20000; ++round) {
    const int64_t total = round % 3 == 0 ? draw(rng, 1, 300) : draw(rng, 1, kHuge);
    const auto parts = static_cast<int32_t>(
        draw(rng, 1, round % 2 == 0 ? 200 : std::numeric_limits<int32_t>::max()));
    const int64_t position = round % 5 == 0 ? total - 1 : draw(rng, 0, total - 1);
    const int32_t owner = owner_of(total, parts, position);
    const Share share = share_of(total, parts, owner);
    ASSERT_LE(share.first, position);
    ASSERT_LT(position, share.last);
  }
}

TEST(Work, LengthsAndWindowsNearTheLimitsDoNotOverflow) {
  WorkShape shape{.batch = 3, .kv_heads = 128, .kv_tile = 16, .workers = 152};
  Batch batch{shape, {}};
  batch.requests.assign(3, {.kv_start = 0, .kv_len = (int64_t{1} << 34), .q_len = 1});
  const int64_t total = total_tiles(batch.shape, batch);
  EXPECT_EQ(total, int64_t{3} * 128 << 30);
  int64_t walked = 0;
  for (int32_t worker = 0; worker < shape.workers; ++worker) {
    PieceWalk walk(batch.shape, batch, total, worker);
    for (Piece piece; walk.next(piece);) walked += piece.tiles.count();
  }
  EXPECT_EQ(walked, total);

  const MaskRule wide{.causal = true,
                      .window_left = std::numeric_limits<int32_t>::max(),
                      .window_right = std::numeric_limits<int32_t>::max()};
  const KeySpan span = visible_keys(wide, {.kv_start = 0, .kv_len = 2147483647, .q_len = 1}, 0);
  EXPECT_EQ(span.first, 0);
  EXPECT_EQ(span.last, 2147483647);
}

TEST(Work, ForcedPartsAreEqualTileRanges) {
  Batch batch{{.batch = 1, .kv_tile = 128, .workers = 5, .num_splits = 7}, {}};
  batch.requests.push_back({.kv_start = 0, .kv_len = 128 * 24, .q_len = 1});
  std::vector<int32_t> sizes(7, 0);
  for (int32_t worker = 0; worker < 5; ++worker) {
    PieceWalk walk(batch.shape, batch, 24, worker);
    for (Piece piece; walk.next(piece);) sizes[piece.split] += piece.tiles.count();
  }
  EXPECT_EQ(sizes, (std::vector<int32_t>{3, 3, 4, 3, 4, 3, 4}));
}

TEST(Work, SplitBordersAreAbsoluteWhateverTheWorkers) {
  Rng rng(5);
  for (int round = 0; round < 300; ++round) {
    Batch batch = draw_batch(rng);
    batch.shape.num_splits = 0;
    batch.shape.split_tiles = static_cast<int32_t>(draw(rng, 1, 9));
    const int64_t total = total_tiles(batch.shape, batch);
    for (int32_t worker = 0; worker < batch.shape.workers; ++worker) {
      PieceWalk walk(batch.shape, batch, total, worker);
      for (Piece piece; walk.next(piece);) {
        const int32_t split = piece.tiles.first / batch.shape.split_tiles;
        ASSERT_EQ(piece.split, split);
        ASSERT_EQ(piece.tiles.first,
                  std::max(piece.item.tiles.first, split * batch.shape.split_tiles));
        ASSERT_EQ(piece.tiles.last,
                  std::min(piece.item.tiles.last, (split + 1) * batch.shape.split_tiles));
      }
    }
  }
}

TEST(Work, AHundredThousandTinyRequestsAreDealtEvenly) {
  Batch batch{{.batch = 100000, .kv_heads = 2, .kv_tile = 64, .workers = 132}, {}};
  for (int32_t i = 0; i < batch.shape.batch; ++i) {
    batch.requests.push_back({.kv_start = 0, .kv_len = 1 + i % 3, .q_len = 1});
  }
  const int64_t total = total_tiles(batch.shape, batch);
  ASSERT_EQ(total, 200000);
  std::vector<int> seen(batch.shape.batch, 0);
  for (int32_t worker = 0; worker < batch.shape.workers; ++worker) {
    PieceWalk walk(batch.shape, batch, total, worker);
    int64_t pieces = 0;
    for (Piece piece; walk.next(piece); ++pieces) {
      ASSERT_TRUE(piece.is_whole_item());
      ++seen[piece.item.request];
    }
    ASSERT_NEAR(static_cast<double>(pieces), 200000.0 / 132, 1);
  }
  ASSERT_TRUE(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 2; }));
}

TEST(Visible, TheIntervalEqualsThePredicateKeyByKey) {
  Rng rng(3);
  for (int round = 0; round < 3000; ++round) {
    const RequestSizes sizes{.kv_start = draw(rng, 0, 5),
                             .kv_len = draw(rng, 0, 20),
                             .q_len = static_cast<int32_t>(draw(rng, 1, 9))};
    const MaskRule mask{.causal = draw(rng, 0, 1) == 1,
                        .window_left = draw(rng, -1, 6),
                        .window_right = draw(rng, -1, 6)};
    const int64_t first_row = draw(rng, 0, sizes.q_len - 1);
    const int64_t last_row = draw(rng, first_row, sizes.q_len - 1);
    const KeySpan any = visible_keys(mask, sizes, first_row, last_row);
    const KeySpan all = common_keys(mask, sizes, first_row, last_row);
    for (int64_t key = -3; key < 25; ++key) {
      int64_t seen = 0;
      for (int64_t row = first_row; row <= last_row; ++row) {
        seen += is_visible(mask, sizes, row, key);
      }
      ASSERT_EQ(key >= any.first && key<any.last, seen> 0) << "round " << round;
      ASSERT_EQ(key >= all.first && key < all.last, seen == last_row - first_row + 1);
    }
  }
}

}  // namespace
}  // namespace deuce
