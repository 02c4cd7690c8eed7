// SPDX-License-Identifier: Apache-2.0
// A small legal call on host memory, to be broken one field at a time by the tests of this folder.
// Every buffer has exactly the size that the call needs, so that a sanitizer sees one step too far.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "deuce/deuce.hpp"

namespace deuce_test {

/// Memory of exactly `size` bytes at the workspace's alignment.
class Workspace {
 public:
  explicit Workspace(std::size_t size);
  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_;
};

enum class Cache { table, indptr, contiguous };

/// Three requests of two rows, 11, 0 and 20 keys, four query heads on two KV heads, f32 or fp8.
struct Sample {
  explicit Sample(int backend, Cache cache = Cache::table, bool fp8 = false);
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  deuce_decode_config config = deuce::make_config();
  deuce_decode_args args = deuce::make_args();

  std::vector<float> q, out, lse, sink, descale, token_scale;
  std::vector<float> k, v;                 // f32 cache
  std::vector<std::uint8_t> k_fp8, v_fp8;  // fp8 cache
  std::vector<int32_t> kv_len, kv_start, cu_q_len, cache_row;
  std::vector<int32_t> block_table, page_indptr, page_indices, last_page_len;

 private:
  void set_config(int backend, Cache cache, bool fp8);
  void set_rows();
  void set_cache(Cache cache, bool fp8);
  void set_tables(Cache cache);
};

/// The backends of this library that read host memory and check it before they compute.
std::vector<int> host_backends();
/// "cpu" for DEUCE_BACKEND_CPU.
std::string backend_name(int backend);

/// Makes a plan of the sample's config and runs its args on an exactly sized workspace.
deuce_status run(Sample& sample);

/// Runs and expects a refusal with this status, field and sentence; out, lse and workspace must
/// keep every byte.
void expect_refused(Sample& sample, deuce_status status, const std::string& field,
                    const std::string& sentence);

}  // namespace deuce_test
