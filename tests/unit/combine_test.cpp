// SPDX-License-Identifier: Apache-2.0
// Partials, arrival and merge by themselves: a toy attention with one value per key is cut by
// work.h, published in random order by interleaved workers, and compared bit by bit and with a
// sum in double.
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "kernel/publish.h"

namespace deuce {
namespace {

struct HostMachine {
  static float exp2(float x) { return std::exp2(x); }
  static float log2(float x) { return std::log2(x); }
  static uint32_t add_acq_rel(uint32_t* counter, uint32_t value) {
    return std::atomic_ref<uint32_t>(*counter).fetch_add(value);
  }
};

constexpr int32_t kHeadDim = 3;

struct Toy {
  WorkShape shape;
  std::vector<RequestSizes> requests;
  std::vector<uint64_t> names;  // of the requests: scores follow the name, not the position
  RequestSizes operator()(int32_t request) const { return requests[request]; }
};

float hashed(uint64_t a, uint64_t b, uint64_t c) {
  uint64_t x = a * 0x9E3779B97F4A7C15U ^ b * 0xC2B2AE3D27D4EB4FU ^ (c + 1) * 0x165667B19E3779F9U;
  x ^= x >> 29U;
  x *= 0xBF58476D1CE4E5B9U;
  x ^= x >> 32U;
  return static_cast<float>(x % 200001U) / 10000.0F - 10.0F;
}

float toy_score(const Toy& toy, const Item& item, int32_t row, int64_t key) {
  return hashed(toy.names[item.request], item.kv_head * 1000 + item.row_tile * 100 + row, key);
}
float toy_value(const Toy& toy, const Item& item, int64_t key, int32_t column) {
  return hashed(toy.names[item.request] + 77, item.kv_head, key * kHeadDim + column);
}

/// Keys of a tile that a packed row sees.
KeySpan row_keys(const Toy& toy, const Item& item, int32_t row, TileSpan tiles) {
  const RequestSizes& sizes = toy.requests[item.request];
  const int64_t packed = int64_t{item.row_tile} * toy.shape.row_tile + row;
  const KeySpan seen = visible_keys(toy.shape.mask, sizes, packed / toy.shape.group);
  const int64_t first = sizes.kv_start + int64_t{tiles.first} * toy.shape.kv_tile;
  const int64_t last = sizes.kv_start + int64_t{tiles.last} * toy.shape.kv_tile;
  return {max64(seen.first, first), min64(seen.last, last)};
}

/// The softmax state of a piece, one key after the other in fp32.
void attend(const Toy& toy, const Piece& piece, const Partial& state) {
  for (int32_t row = 0; row < piece.item.rows; ++row) {
    const KeySpan keys = row_keys(toy, piece.item, row, piece.tiles);
    float max = kNoKey, sum = 0, o[kHeadDim] = {};
    for (int64_t key = keys.first; key < keys.last; ++key) {
      max = std::max(max, toy_score(toy, piece.item, row, key));
    }
    for (int64_t key = keys.first; key < keys.last; ++key) {
      const float p = std::exp2(toy_score(toy, piece.item, row, key) - max);
      sum += p;
      for (int32_t c = 0; c < kHeadDim; ++c) o[c] += p * toy_value(toy, piece.item, key, c);
    }
    for (int32_t c = 0; c < kHeadDim; ++c) state.o[row * kHeadDim + c] = o[c];
    state.max[row] = max;
    state.sum[row] = sum;
  }
}

using ItemName = std::tuple<uint64_t, int32_t, int32_t>;  // request name, KV head, row tile
using Results = std::map<ItemName, std::vector<float>>;   // o, max, sum of all rows

/// Memory of a run, its counters checked to be back at zero when it ends.
class ToyRun {
 public:
  explicit ToyRun(const Toy& toy) : toy_(toy), total_(total_tiles(toy.shape, toy)) {
    WorkBounds bounds{.max_batch = toy.shape.batch};
    for (const RequestSizes& sizes : toy.requests) {
      bounds.max_q_len = std::max(bounds.max_q_len, sizes.q_len);
      bounds.max_kv_len = std::max(bounds.max_kv_len, sizes.kv_len - sizes.kv_start);
    }
    space_.map = partial_map(toy.shape, bounds);
    space_.rows = toy.shape.row_tile;
    space_.head_dim_v = kHeadDim;
    floats_.assign(space_.map.slot_count() * partial_floats(space_.rows, kHeadDim), NAN);
    counters_.assign(space_.map.counter_count(), 0);
    space_.partials = floats_.data();
    space_.counters = counters_.data();
  }

  Results interleaved(uint64_t seed) {
    std::mt19937_64 rng(seed);
    std::vector<Worker> workers;
    workers.reserve(toy_.shape.workers);
    for (int32_t i = 0; i < toy_.shape.workers; ++i) workers.emplace_back(*this, i);
    Results results;
    while (!workers.empty()) {
      const std::size_t pick = rng() % workers.size();
      if (workers[pick].step(results)) continue;
      std::swap(workers[pick], workers.back());
      workers.pop_back();
    }
    check_counters();
    return results;
  }

  Results threaded() {
    std::vector<Results> results(toy_.shape.workers);
    {
      std::vector<std::jthread> threads;
      for (int32_t i = 0; i < toy_.shape.workers; ++i) {
        threads.emplace_back([&, i] {
          Worker worker(*this, i);
          while (worker.step(results[i])) {
          }
        });
      }
    }
    check_counters();
    for (std::size_t i = 1; i < results.size(); ++i) results[0].merge(results[i]);
    return results[0];
  }

 private:
  class Worker {
   public:
    Worker(ToyRun& run, int32_t index)
        : run_(&run),
          walk_(run.toy_.shape, run.toy_, run.total_, index),
          publisher_(run.toy_.shape, run.total_, index, run.space_),
          memory_(partial_floats(run.space_.rows, kHeadDim)) {}

    bool step(Results& results) {
      Piece piece;
      if (!walk_.next(piece)) return false;
      const Partial state = partial_at(memory_.data(), run_->space_.rows, kHeadDim);
      attend(run_->toy_, piece, state);
      publisher_.take(HostMachine{}, piece, state, [&](const Item& item, const Partial& end) {
        std::vector<float> values(end.o, end.o + item.rows * kHeadDim);
        values.insert(values.end(), end.max, end.max + item.rows);
        values.insert(values.end(), end.sum, end.sum + item.rows);
        const ItemName name{run_->toy_.names[item.request], item.kv_head, item.row_tile};
        EXPECT_TRUE(results.emplace(name, values).second) << "an item ended twice";
      });
      return true;
    }

   private:
    ToyRun* run_;
    PieceWalk<Toy> walk_;
    Publisher publisher_;
    std::vector<float> memory_;
  };

  void check_counters() const {
    for (const uint32_t counter : counters_) ASSERT_EQ(counter, 0U);
  }

  const Toy& toy_;
  int64_t total_;
  PartialSpace space_;
  std::vector<float> floats_;
  std::vector<uint32_t> counters_;
};

enum class Cutting { anywhere, parts, borders };

Toy draw_toy(uint64_t seed, Cutting cutting) {
  std::mt19937_64 rng(seed);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng);
  };
  Toy toy;
  WorkShape& shape = toy.shape;
  shape.batch = static_cast<int32_t>(draw(1, 6));
  shape.kv_heads = static_cast<int32_t>(draw(1, 3));
  shape.group = static_cast<int32_t>(draw(1, 5));
  shape.row_tile = static_cast<int32_t>(draw(2, 8));
  shape.kv_tile = 16;
  shape.workers = static_cast<int32_t>(draw(1, 40));
  if (cutting == Cutting::parts) shape.num_splits = static_cast<int32_t>(draw(1, 9));
  if (cutting == Cutting::borders) shape.split_tiles = static_cast<int32_t>(draw(1, 5));
  shape.mask.causal = draw(0, 1) == 1;
  if (draw(0, 1) == 0) shape.mask.window_left = draw(0, 400);
  for (int32_t i = 0; i < shape.batch; ++i) {
    const int64_t kv_len = draw(0, 900);
    toy.requests.push_back({.kv_start = draw(0, 2) == 0 ? draw(0, kv_len) : 0,
                            .kv_len = kv_len,
                            .q_len = static_cast<int32_t>(draw(1, 4))});
    toy.names.push_back(rng());
  }
  return toy;
}

bool bitwise_equal(const Results& a, const Results& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return x.first == y.first &&
                  std::equal(x.second.begin(), x.second.end(), y.second.begin(), y.second.end(),
                             [](float p, float q) {
                               return std::bit_cast<uint32_t>(p) == std::bit_cast<uint32_t>(q);
                             });
         });
}

class Cuttings : public testing::TestWithParam<Cutting> {};

TEST_P(Cuttings, ResultsEqualASumInDouble) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const Toy toy = draw_toy(seed, GetParam());
    const Results results = ToyRun(toy).interleaved(seed);
    std::size_t items = 0;
    for (int32_t b = 0; b < toy.shape.batch; ++b) {
      for (int32_t h = 0; h < toy.shape.kv_heads; ++h) {
        for (int32_t m = 0; m < row_tile_count(toy.shape, toy.requests[b].q_len); ++m) {
          const TileSpan tiles = item_tiles(toy.shape, toy.requests[b], m);
          const auto found = results.find({toy.names[b], h, m});
          ASSERT_EQ(found == results.end(), tiles.empty()) << "seed " << seed;
          if (tiles.empty()) continue;
          ++items;
          const Share rows = row_span(toy.shape, toy.requests[b].q_len, m);
          const auto row_count = static_cast<int32_t>(rows.last - rows.first);
          const Item item{b, h, m, row_count, tiles, 0};
          for (int32_t row = 0; row < row_count; ++row) {
            const KeySpan keys = row_keys(toy, item, row, tiles);
            const std::vector<float>& values = found->second;
            const float max = values[row_count * kHeadDim + row];
            const float sum = values[row_count * (kHeadDim + 1) + row];
            double true_sum = 0, true_o = 0;
            for (int64_t key = keys.first; key < keys.last; ++key) {
              const double p = std::exp2(double{toy_score(toy, item, row, key)});
              true_sum += p;
              true_o += p * toy_value(toy, item, key, 1);
            }
            const RowResult end = finish_row(HostMachine{}, max, sum, kNoKey, 1.0F, true);
            if (keys.empty()) {
              ASSERT_EQ(end.scale, 0.0F);
              ASSERT_EQ(end.lse, kNoKey);
            } else {
              ASSERT_NEAR(end.lse, std::log2(true_sum), 1e-5) << "seed " << seed;
              ASSERT_NEAR(values[row * kHeadDim + 1] * end.scale, true_o / true_sum, 3e-5);
            }
          }
        }
      }
    }
    ASSERT_EQ(items, results.size());
  }
}

TEST_P(Cuttings, BitsDoNotDependOnWhoArrivesLast) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Toy toy = draw_toy(seed, GetParam());
    const Results first = ToyRun(toy).interleaved(1);
    for (uint64_t order = 2; order < 8; ++order) {
      ASSERT_TRUE(bitwise_equal(first, ToyRun(toy).interleaved(order))) << "seed " << seed;
    }
  }
}

TEST_P(Cuttings, ThreadsGiveTheBitsOfAnInterleavedRun) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Toy toy = draw_toy(seed, GetParam());
    toy.shape.workers = 1 + static_cast<int32_t>(seed % 7);
    ASSERT_TRUE(bitwise_equal(ToyRun(toy).interleaved(seed), ToyRun(toy).threaded()))
        << "seed " << seed;
  }
}

std::string cutting_name(const testing::TestParamInfo<Cutting>& param) {
  constexpr const char* kNames[] = {"anywhere", "num_splits", "split_kv_len"};
  return kNames[static_cast<int>(param.param)];
}
INSTANTIATE_TEST_SUITE_P(Combine, Cuttings,
                         testing::Values(Cutting::anywhere, Cutting::parts, Cutting::borders),
                         cutting_name);

TEST(SplitTree, BitsDoNotDependOnTheWorkerCount) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Toy toy = draw_toy(seed, Cutting::borders);
    toy.shape.workers = 1;
    const Results alone = ToyRun(toy).interleaved(1);
    for (const int32_t workers : {2, 3, 5, 8, 13, 46, 132}) {
      toy.shape.workers = workers;
      ASSERT_TRUE(bitwise_equal(alone, ToyRun(toy).interleaved(seed)))
          << "seed " << seed << ", workers " << workers;
    }
  }
}

TEST(SplitTree, BitsDoNotDependOnTheRestOfTheBatch) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Toy toy = draw_toy(seed, Cutting::borders);
    const Results together = ToyRun(toy).interleaved(1);
    Results alone;
    for (int32_t b = 0; b < toy.shape.batch; ++b) {
      Toy single = toy;
      single.shape.batch = 1;
      single.requests = {toy.requests[b]};
      single.names = {toy.names[b]};
      alone.merge(ToyRun(single).interleaved(seed));
    }
    ASSERT_TRUE(bitwise_equal(together, alone)) << "seed " << seed;
  }
}

TEST(SplitTree, CutAnywhereDoesDependOnTheWorkerCount) {  // the tests above are able to fail
  Toy toy = draw_toy(3, Cutting::anywhere);
  toy.requests[0] = {.kv_start = 0, .kv_len = 900, .q_len = 1};
  toy.shape.workers = 1;
  const Results one = ToyRun(toy).interleaved(1);
  toy.shape.workers = 7;
  EXPECT_FALSE(bitwise_equal(one, ToyRun(toy).interleaved(1)));
}

TEST(SplitTree, ARunLeavesWhatItsStackHolds) {
  for (int32_t item_first = 0; item_first < 9; ++item_first) {
    for (int32_t first = item_first; first < 40; ++first) {
      int32_t depth = 0;
      for (int32_t split = first; split < 40; ++split) {
        depth += 1 - merges_with({split, 0}, first == item_first ? 0 : first, item_first);
        RunNodes nodes(first, split + 1, item_first);
        int32_t count = 0;
        for (TreeNode node; nodes.next(node); ++count) ASSERT_EQ(node.first % (1 << node.level), 0);
        ASSERT_EQ(count, depth) << first << ".." << split << " of an item from " << item_first;
        ASSERT_LE(depth, first == item_first ? tree_levels(40) : 2 * tree_levels(40));
      }
    }
  }
}

TEST(FinishRow, SinksAndEmptyRows) {
  const HostMachine math;
  const RowResult empty = finish_row(math, kNoKey, 0, kNoKey, 1, false);
  EXPECT_EQ(empty.scale, 0.0F);
  EXPECT_EQ(empty.lse, kNoKey);
  const RowResult sink_only = finish_row(math, kNoKey, 0, 2 * kLog2E, 1, false);
  EXPECT_EQ(sink_only.scale, 0.0F);
  EXPECT_FLOAT_EQ(sink_only.lse, 2.0F);
  for (int n = 1; n <= 300; ++n) {  // n keys with score 0 and V = 1: n / (n + exp(sink))
    const auto count = static_cast<float>(n);
    const RowResult row = finish_row(math, 0, count, 1.7F * kLog2E, 1, false);
    EXPECT_NEAR(count * row.scale, n / (n + std::exp(1.7)), 1e-6);
    EXPECT_NEAR(row.lse, std::log(n + std::exp(1.7)), 1e-6);
  }
  const RowResult far_sink = finish_row(math, -1e6F, 1, 0, 1, true);
  EXPECT_EQ(far_sink.scale, 0.0F);
  EXPECT_EQ(far_sink.lse, 0.0F);
  const RowResult low = finish_row(math, -1e30F, 1, kNoKey, 1, true);
  EXPECT_EQ(low.scale, 1.0F);
  EXPECT_EQ(low.lse, -1e30F);
}

TEST(MergeRow, StatesWithoutAKeyAreNeutralWhateverTheirOutputHolds) {
  float left[5] = {1, 2, 3, -4, 1}, right[5] = {NAN, INFINITY, -NAN, kNoKey, 0};
  const Partial a = partial_at(left, 1, 3), b = partial_at(right, 1, 3);
  merge_row(
      HostMachine{}, [&](int32_t i) { return i == 0 ? a : b; }, 2, 0, 3);
  EXPECT_EQ(std::vector<float>(left, left + 5), (std::vector<float>{1, 2, 3, -4, 1}));
  merge_row(
      HostMachine{}, [&](int32_t i) { return i == 0 ? b : a; }, 2, 0, 3);
  EXPECT_EQ(std::vector<float>(right, right + 5), (std::vector<float>{1, 2, 3, -4, 1}));
  float empty[5] = {NAN, 0, 0, kNoKey, 0}, other[5] = {NAN, 0, 0, kNoKey, 0};
  const Partial c = partial_at(empty, 1, 3), d = partial_at(other, 1, 3);
  merge_row(
      HostMachine{}, [&](int32_t i) { return i == 0 ? c : d; }, 2, 0, 3);
  EXPECT_EQ(std::vector<float>(empty, empty + 5), (std::vector<float>{0, 0, 0, kNoKey, 0}));
}

}  // namespace
}  // namespace deuce
