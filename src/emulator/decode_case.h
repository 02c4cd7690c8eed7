// SPDX-License-Identifier: Apache-2.0
// A decode problem with its arrays, drawn from a seed, and its answer in double precision.
// Used by `deuce check` and the tests; unused cache slots hold NaN, so that whoever reads them
// shows it.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "plan/problem.h"

namespace deuce::emulator {

/// What varies between cases; everything else follows.
struct CaseSpec {
  Backend kernel = Backend::blackwell;  // whose source runs
  int head_dim = 64, group = 16, kv_heads = 1;
  std::vector<int32_t> kv_len{300};
  std::vector<int32_t> kv_start = {};  // empty = 0
  int q_len = 1;
  std::vector<int32_t> q_lens = {};  // ragged when not empty
  int page_size = 0;                 // 0 = contiguous
  bool causal = false;
  int64_t window_left = -1, window_right = -1;
  float softcap = 0, scale = 0;
  bool sink = false, bf16 = true;
  bool e4m3 = false;  // the cache; q and out stay bf16 or half
  int num_splits = 0, split_kv_len = 0, score_slots = 2, row_replicas = 1;
  bool growing = false;   // scores grow towards low keys: every block rescales
  bool nan_keys = false;  // K is NaN: results must be NaN
  uint64_t seed = 1;
};

/// Ten requests of `longest` keys and of less, down to none: two of them cut by four CTAs, rings of
/// tiles and pieces go round, and every role has to wait. Of 500 keys and more; else less happens.
std::vector<int32_t> mixed_lengths(int32_t longest);

/// A problem, its call and everything the call points to.
class DecodeCase {
 public:
  explicit DecodeCase(const CaseSpec& spec);
  const Problem& problem() const { return problem_; }
  const Call& call() const { return call_; }
  Problem& problem() { return problem_; }
  std::vector<uint16_t>& out() { return out_; }
  std::vector<float>& lse() { return lse_; }
  /// Empty when out() and lse() lie within the tolerance of docs/numerics.md, else the first that
  /// does not.
  std::string difference() const;
  void clear_results();

 private:
  void describe(const CaseSpec& spec);
  void fill_queries(const CaseSpec& spec, std::mt19937_64& random,
                    std::normal_distribution<float>& normal);
  void fill_cache(const CaseSpec& spec);
  void fill_call(const CaseSpec& spec);
  void put(std::vector<std::byte>& cache, int64_t index, float value) const;
  Problem problem_;
  Call call_{};
  std::vector<uint16_t> q_, out_;
  std::vector<std::byte> k_, v_;
  std::vector<float> lse_, sink_;
  std::vector<int32_t> kv_len_, kv_start_, cu_q_len_, table_;
  int64_t rows_ = 0;
};

}  // namespace deuce::emulator
