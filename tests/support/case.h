// SPDX-License-Identifier: Apache-2.0
// One attention problem as a small value: everything a test varies, and nothing derived from it.
// Drawn at random, shrunk when it fails, printed so that it can be repeated. The content of the
// tensors follows from `seed` and logical positions only, so that layouts can be compared bitwise.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "deuce/deuce.h"

namespace deuce::testing {

/// Order of the dimensions in memory, of K and V.
enum class KvOrder { nhd, hnd, padded, interleaved };
/// Order of the dimensions of q, out and lse.
enum class RowOrder { dense, padded, head_major, sliced };

struct RequestCase {
  int64_t kv_len = 1, kv_start = 0;
  int32_t q_len = 1;
  uint64_t name = 0;  // content follows the name, not the place in the batch
};

enum class LseWish { none, natural, base2 };

struct Case {
  uint64_t seed = 1;
  std::vector<RequestCase> requests;
  int32_t kv_heads = 1, group = 1, head_dim_qk = 64, head_dim_v = 64;
  int32_t q_dtype = DEUCE_BF16, kv_dtype = DEUCE_BF16, out_dtype = DEUCE_BF16;
  int32_t sink_dtype = DEUCE_F32;

  int32_t page_size = 0;    // 0 = contiguous
  bool indptr = false;      // the other page-table style
  bool give_kv_len = true;  // false: kv_len_all, or the lengths of last_page_len
  bool shuffled = true;     // page ids, or cache rows
  int32_t spare_columns = 0, table_padding = 0;
  KvOrder kv_order = KvOrder::nhd;
  int32_t padding = 16;  // elements, in padded orders; odd: strides that are not aligned
  RowOrder q_order = RowOrder::dense, out_order = RowOrder::dense, lse_order = RowOrder::dense;
  bool packed_q = false;  // cu_q_len

  bool causal = false;
  int32_t window_left = -1, window_right = -1;
  float softmax_scale = 0, softcap = 0, score_scale = 0, out_scale = 0;
  bool sink = false, descales = false, token_scales = false;
  LseWish lse = LseWish::natural;

  int32_t num_splits = 0, split_kv_len = 0, score_slots = 0, row_replicas = 0, sm_margin = 0;
  int32_t workers = 0;                       // forced_workers(), 0 = the backend's own
  float q_size = 1, k_size = 1, v_size = 1;  // standard deviation of the tensors

  /// Overwrites a drawn row: tensor 'q', 'k' or 'v'; head is a query head for q, else a KV head;
  /// position is the query row or the logical key. Part of a test, not of the draw.
  std::function<void(char tensor, int32_t request, int64_t head, int64_t position, float* row)>
      content;

  int64_t batch() const { return static_cast<int64_t>(requests.size()); }
  int32_t q_heads() const { return kv_heads * group; }
  int64_t max_q_len() const;
  int64_t max_live() const;
  bool fp8_cache() const { return kv_dtype == DEUCE_E4M3 || kv_dtype == DEUCE_E5M2; }
  bool fp8_q() const { return q_dtype == DEUCE_E4M3 || q_dtype == DEUCE_E5M2; }
};

using Rng = std::mt19937_64;

/// Uniform in low .. high, both included.
inline int64_t uniform(Rng& rng, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(rng);
}

/// A case with every parameter drawn independently. `effort` bounds rows * keys * head dims, so
/// that judging one case stays within about a tenth of a second at 2e7.
Case draw_case(uint64_t seed, double effort = 1e7);

/// Simpler cases that may fail in the same way, the boldest simplification first.
std::vector<Case> simpler(const Case& from);

std::string describe(const Case& from);

}  // namespace deuce::testing
