// SPDX-License-Identifier: Apache-2.0
// The CPU kernels on one tile of keys that stays in the second-level cache: what the arithmetic
// alone allows, without memory. `kv_bytes` is the cache read per second, `of_fma_peak` the share of
// the multiply-adds that this core does at best, measured in the same process. One thread.
//
//   cmake --preset bench && cmake --build --preset bench && build/bench/bin/cpu_micro
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cpu/kernels.h"
#include "cpu/roof.h"

namespace deuce::cpu {
namespace {

constexpr int kHeads = 8;

double fma_peak() {
  static const double peak = measure_roof(1, 0.4).multiply_adds.best;
  return peak;
}

/// A bundle of heads in NHD order and the memory its state needs.
class HotTile {
 public:
  HotTile(const Kernels& kernels, DType type, int head_dim, int rows) : kernels_(kernels) {
    shape_ = {.heads = kHeads,
              .rows = rows,
              .head_dim_qk = head_dim,
              .head_dim_v = head_dim,
              .kv_type = type,
              .dots = kernels.dots && type == DType::bf16};
    const int width = kernels.padded(head_dim), groups = kHeads * shape_.groups();
    const std::size_t row_bytes = std::size_t{kHeads} * head_dim * dtype_bytes(type);
    for (auto* floats : {&q_, &o_}) floats->assign(groups * kGroupRows * width, 0.01F);
    scores_.resize(kScoreSlots * groups * kTileKeys * kGroupRows);
    expanded_.resize(2 * kTileKeys * width);
    zeros_.resize(kMaxLanes);
    factors_.assign(kHeads, 0.01F);
    stats_.resize(groups);
    state_ = {q_.data(),        o_.data(),     stats_.data(),  scores_.data(),
              expanded_.data(), zeros_.data(), factors_.data()};
    tile_.keys = shape_.tile_keys();
    cache_.assign(2 * tile_.keys * row_bytes, std::byte{0x3c});
    for (int key = 0; key < tile_.keys; ++key) {
      k_rows_.push_back(cache_.data() + key * row_bytes);
      v_rows_.push_back(cache_.data() + (tile_.keys + key) * row_bytes);
    }
    tile_.k_rows = k_rows_.data();
    tile_.v_rows = v_rows_.data();
    tile_.k_head_bytes = tile_.v_head_bytes = ptrdiff_t{head_dim} * dtype_bytes(type);
    tile_.v_row_bytes = static_cast<ptrdiff_t>(row_bytes);
    tile_.k_fetch_bytes = tile_.v_fetch_bytes = static_cast<int>(row_bytes);
    kernels.begin(shape_, state_);
  }

  void attend() { kernels_.attend_tile(shape_, tile_, state_); }
  double bytes() const { return static_cast<double>(cache_.size()); }
  double multiply_adds() const {
    return 2.0 * kHeads * tile_.keys * shape_.rows * shape_.head_dim_qk;
  }

 private:
  const Kernels& kernels_;
  ItemShape shape_;
  std::vector<float> q_, o_, scores_, expanded_, zeros_, factors_;
  std::vector<GroupStats> stats_;
  std::vector<std::byte> cache_;
  std::vector<const std::byte*> k_rows_, v_rows_;
  ItemState state_{};
  Tile tile_;
};

void attend_hot(benchmark::State& state, const Kernels* kernels, DType type) {
  HotTile tile(*kernels, type, static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  for (auto _ : state) tile.attend();
  const auto rounds = static_cast<double>(state.iterations());
  state.counters["kv_bytes"] = {rounds * tile.bytes(), benchmark::Counter::kIsRate};
  state.counters["of_fma_peak"] = {rounds * tile.multiply_adds() / fma_peak(),
                                   benchmark::Counter::kIsRate};
}

void register_all() {
  for (const Kernels* kernels : available_kernels()) {
    for (const auto& [type, type_name] : {std::pair{DType::bf16, "bf16"},
                                          {DType::f16, "f16"},
                                          {DType::f32, "f32"},
                                          {DType::e4m3, "e4m3"}}) {
      const std::string name = std::string("attend/") + kernels->name + "/" + type_name;
      benchmark::RegisterBenchmark(name.c_str(), attend_hot, kernels, type)
          ->ArgNames({"head_dim", "rows"})
          ->ArgsProduct({{64, 128, 256}, {4, 8}});
    }
  }
}

}  // namespace
}  // namespace deuce::cpu

int main(int argc, char** argv) {
  deuce::cpu::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
