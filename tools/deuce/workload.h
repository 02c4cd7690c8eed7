// SPDX-License-Identifier: Apache-2.0
// A benchmark point made real: random tensors, a cache with shuffled pages, and so many copies of
// it that by the time one is read again the caches have forgotten it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device.h"
#include "meaning.h"
#include "presets.h"
#include "result.h"

namespace deuce::cli {

struct BenchShape {
  std::string preset, lengths;  // names in the report
  int q_heads = 0, kv_heads = 0, head_dim = 0;
  int q_len = 1;
  DType dtype = DType::bf16;  // of k and v; q is bf16 beside fp8
  int page_size = 16;         // 0 = contiguous
  Layout layout = Layout::nhd;
  int window_left = -1;
  bool sinks = false;
  float softcap = 0;
  std::vector<int32_t> kv_lens;
};

class Workload {
 public:
  /// `cache_bytes`: size of the cache to defeat; `seed` fixes every number and page id.
  static Result<Workload> create(const BenchShape& shape, Device& device, std::size_t cache_bytes,
                                 uint64_t seed);

  /// Without backend and splits, which the caller adds.
  const deuce_decode_config& config() const { return config_; }
  std::size_t copies() const { return args_.size(); }
  /// Arguments on the device, out and lse included; all copies write the same result.
  const deuce_decode_args& args(std::size_t copy) const { return args_[copy % args_.size()]; }
  const std::vector<deuce_decode_args>& all_args() const { return args_; }
  /// The first copy's arguments with every pointer on the host.
  const deuce_decode_args& host_args() const { return host_args_; }
  CallResult& result() { return *result_; }

 private:
  Workload() = default;
  Status build(const BenchShape& shape, Device& device, std::size_t cache_bytes, uint64_t seed);
  void describe(const BenchShape& shape);
  void plan_cache(const BenchShape& shape);
  /// Host memory of random numbers, and the same on the device.
  Result<std::pair<const void*, const void*>> random_tensor(Device& device, DType type,
                                                            int64_t elements, uint64_t seed);
  /// Lengths, starts and page tables of every copy, on the host.
  void make_index(const BenchShape& shape, std::size_t copies, uint64_t seed);
  Status place_index(Device& device);

  deuce_decode_config config_{};
  deuce_decode_args host_args_{};
  std::vector<deuce_decode_args> args_;
  std::optional<CallResult> result_;
  std::unique_ptr<Device> host_;
  std::vector<Memory> memory_;              // tensors on host and device
  std::vector<int32_t> kv_len_, kv_start_;  // [copies, batch]
  std::vector<int32_t> tables_;             // [copies, batch, columns]
  int64_t copy_slots_ = 0;                  // cache slots of one copy
  int64_t columns_ = 0;                     // of a page table
  bool packed_ = false;                     // contiguous and uneven: all requests in one row
};

}  // namespace deuce::cli
