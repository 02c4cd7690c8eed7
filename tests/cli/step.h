// SPDX-License-Identifier: Apache-2.0
// A small decode step by its meaning, the exact result of it, and the ways to write it to a file.
// Used by run_test.cpp: every way must give the same result.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/safetensors.h"

namespace deuce::cli {

struct Step {
  std::vector<int> q_lens{1, 1, 1}, kv_lens{5, 0, 19};
  int q_heads = 4, kv_heads = 2, head_dim = 16;
  bool causal = false;
  int window_left = -1, window_right = -1;
  double softcap = 0, scale = 0.25, score_scale = 1, out_scale = 1;
  bool lse_base2 = false;
  std::vector<float> sink;                           // [q heads] or empty
  std::vector<float> q;                              // [tokens, q heads, d]
  std::vector<std::vector<float>> k, v;              // per request [kv_len, kv heads, d]
  std::vector<std::vector<float>> k_scale, v_scale;  // per request [kv_len, kv heads]

  int batch() const { return static_cast<int>(kv_lens.size()); }
  int tokens() const;
  /// Random numbers for every tensor, scales 1; values are exact in bf16, and in e4m3 if `coarse`.
  void draw(unsigned seed, bool coarse = false);
};

struct StepResult {
  std::vector<double> out, lse;  // [tokens, q heads, d], [tokens, q heads]
};
/// Three loops in double precision, sharing nothing with the library.
StepResult exact(const Step& step);

/// Tensors in the making; bytes are owned.
class StepFile {
 public:
  void add(const std::string& name, io::TensorType type, std::vector<int64_t> shape,
           const std::vector<float>& values);
  void add_indices(const std::string& name, const std::vector<int64_t>& values,
                   std::vector<int64_t> shape = {}, io::TensorType type = io::TensorType::i32);
  void remove(const std::string& name) { tensors_.erase(name); }
  void write(const std::string& path) const;

  io::Metadata metadata;

 private:
  struct Tensor {
    io::TensorView view;
    std::string bytes;
  };
  std::map<std::string, Tensor> tensors_;
};

/// How the cache of a step is laid out.
struct CacheStyle {
  int page_size = 4;  // 0 = contiguous
  bool hnd = false;
  bool indptr = false;        // page_indptr, page_indices, last_page_len instead of a block_table
  bool wide_indices = false;  // I64
  bool cache_row = false;     // contiguous: rows in another order
  int kv_start = 0;           // dead slots before the first key
  io::TensorType kv_type = io::TensorType::f32;
  bool token_scales = false;  // k_scale, v_scale per token and head
};

/// q, k, v, lengths and tables; NaN in every slot that holds no key.
StepFile step_file(const Step& step, const CacheStyle& style);

}  // namespace deuce::cli
