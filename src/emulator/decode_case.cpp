// SPDX-License-Identifier: Apache-2.0
// Decode problems; see decode_case.h.
#include "emulator/decode_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "emulator/matrix.h"
#include "kernel/numbers.h"
#include "reference/judge.h"
#include "reference/tolerance.h"

namespace deuce::emulator {
namespace {

uint16_t encode(float value, bool bf16) {
  return bf16 ? from_float<Bf16>(value).bits : from_float<Half>(value).bits;
}
/// The nearest value; beyond the largest, 448, that.
uint8_t encode_e4m3(float value) {
  const auto magnitude_of = [](uint32_t bits) { return to_float(Half{kHalfFromE4m3[bits]}); };
  uint32_t below = 0;
  while (below < 0x7e && magnitude_of(below + 1) <= std::fabs(value)) ++below;
  const bool up = below < 0x7e && std::fabs(value) - magnitude_of(below) >
                                      magnitude_of(below + 1) - std::fabs(value);
  return static_cast<uint8_t>((below + (up ? 1 : 0)) | (std::signbit(value) ? 0x80u : 0u));
}

constexpr uint16_t kNaN = 0x7fff;  // in both 16-bit formats

}  // namespace

std::vector<int32_t> mixed_lengths(int32_t longest) {
  const auto part = [longest](int32_t tenths) {
    return static_cast<int32_t>(int64_t{longest} * tenths / 10);
  };
  const auto most = [longest](int32_t keys) { return std::min(longest, keys); };
  return {longest, most(37), part(4), 0, most(129), longest, part(9), most(1), most(128), part(5)};
}

DecodeCase::DecodeCase(const CaseSpec& spec) {
  rows_ = static_cast<int64_t>(spec.kv_len.size()) * spec.q_len;
  if (!spec.q_lens.empty()) {
    cu_q_len_.push_back(0);
    for (const int32_t rows : spec.q_lens) cu_q_len_.push_back(cu_q_len_.back() + rows);
    rows_ = cu_q_len_.back();
  }
  kv_len_ = spec.kv_len;
  kv_start_ = spec.kv_start;
  describe(spec);
  std::mt19937_64 random(spec.seed);
  std::normal_distribution<float> normal;
  fill_queries(spec, random, normal);
  fill_cache(spec);
  if (spec.sink) {
    for (int h = 0; h < problem_.num_q_heads; ++h) sink_.push_back(normal(random));
  }
  fill_call(spec);
  clear_results();
}

void DecodeCase::describe(const CaseSpec& spec) {
  const DType type = spec.bf16 ? DType::bf16 : DType::f16;
  const int64_t longest = *std::max_element(kv_len_.begin(), kv_len_.end());
  Problem& p = problem_;
  p.backend = Backend::emulator;
  p.num_q_heads = spec.group * spec.kv_heads;
  p.emulated = spec.kernel;
  p.num_kv_heads = spec.kv_heads;
  p.group = spec.group;
  p.head_dim_qk = p.head_dim_v = spec.head_dim;
  p.q_type = p.kv_type = p.out_type = type;
  if (spec.e4m3) p.kv_type = DType::e4m3;
  p.sink_type = DType::f32;
  p.page_size = spec.page_size;
  p.max_batch = static_cast<int32_t>(kv_len_.size());
  p.max_q_len = spec.q_lens.empty()
                    ? spec.q_len
                    : std::max(1, *std::max_element(spec.q_lens.begin(), spec.q_lens.end()));
  p.causal = spec.causal && p.max_q_len > 1;
  p.max_kv_len = std::max<int64_t>(longest, 1);
  p.window_left = spec.window_left;
  p.window_right = spec.window_right;
  p.softmax_scale =
      spec.scale != 0 ? spec.scale : 1.0F / std::sqrt(static_cast<float>(spec.head_dim));
  p.softcap = spec.softcap;
  p.num_splits = spec.num_splits;
  p.split_kv_len = spec.split_kv_len;
  p.score_slots = spec.score_slots;
  p.row_replicas = spec.row_replicas;
}

void DecodeCase::fill_queries(const CaseSpec& spec, std::mt19937_64& random,
                              std::normal_distribution<float>& normal) {
  q_.resize(static_cast<std::size_t>(rows_ * problem_.num_q_heads * spec.head_dim));
  for (uint16_t& value : q_) value = encode(normal(random), spec.bf16);
  if (!spec.growing) return;
  // Column 0 of every query is large, so that K's column 0 moves all scores together.
  for (std::size_t i = 0; i < q_.size(); i += static_cast<std::size_t>(spec.head_dim)) {
    q_[i] = encode(16.0F, spec.bf16);
  }
}

void DecodeCase::fill_call(const CaseSpec& spec) {
  const int q_heads = problem_.num_q_heads;
  const int64_t row_values = int64_t{q_heads} * spec.head_dim;
  out_.resize(q_.size());
  lse_.resize(static_cast<std::size_t>(rows_ * q_heads));
  Call& c = call_;
  c.struct_size = sizeof c;
  c.batch = problem_.max_batch;
  c.q_len = problem_.max_q_len;
  c.q = q_.data();
  c.out = out_.data();
  c.lse = lse_.data();
  c.q_stride[0] = c.out_stride[0] = row_values * spec.q_len;
  c.q_stride[1] = c.out_stride[1] = row_values;
  c.q_stride[2] = c.out_stride[2] = spec.head_dim;
  c.lse_stride[0] = int64_t{q_heads} * spec.q_len;
  c.lse_stride[1] = q_heads;
  c.lse_stride[2] = 1;
  c.cu_q_len = cu_q_len_.empty() ? nullptr : cu_q_len_.data();
  c.kv_len = kv_len_.data();
  c.kv_start = kv_start_.empty() ? nullptr : kv_start_.data();
  c.sink = sink_.empty() ? nullptr : sink_.data();
  c.score_scale = c.out_scale = 1;
}

// The pool is larger than needed and shuffled; slots that no request owns, and slots past a
// request's length, hold NaN in K and V.
void DecodeCase::fill_cache(const CaseSpec& spec) {
  std::mt19937_64 random(spec.seed + 1);
  std::normal_distribution<float> normal;
  const auto batch = static_cast<int64_t>(kv_len_.size());
  const int64_t longest = std::max<int64_t>(1, *std::max_element(kv_len_.begin(), kv_len_.end()));
  const int64_t page = spec.page_size == 0 ? longest + 5 : spec.page_size;
  const int64_t columns = spec.page_size == 0 ? 1 : (longest + page - 1) / page;
  const int64_t pages = batch * columns + 3;
  const int64_t slot_values = int64_t{spec.kv_heads} * spec.head_dim;
  // All ones is NaN in every format.
  const int bytes = dtype_bytes(problem_.kv_type);
  k_.assign(static_cast<std::size_t>(pages * page * slot_values * bytes), std::byte{0xff});
  v_ = k_;
  // Nobody owns page 0, where a wrong id is most likely to lead.
  for (int64_t i = 1; i < pages; ++i) table_.push_back(static_cast<int32_t>(i));
  std::shuffle(table_.begin(), table_.end(), random);
  table_.resize(static_cast<std::size_t>(batch * columns));
  for (int64_t r = 0; r < batch; ++r) {
    const int64_t start = kv_start_.empty() ? 0 : kv_start_[static_cast<std::size_t>(r)];
    for (int64_t key = start; key < kv_len_[static_cast<std::size_t>(r)]; ++key) {
      const int64_t id = table_[static_cast<std::size_t>(r * columns + key / page)];
      const int64_t at = (id * page + key % page) * slot_values;
      for (int64_t i = 0; i < slot_values; ++i) {
        float value = normal(random);
        if (spec.growing && i % spec.head_dim == 0) {
          value = 0.22F * static_cast<float>(longest - key) / 8;  // 10 in log2 units a block
        }
        if (!spec.nan_keys) put(k_, at + i, value);
        put(v_, at + i, normal(random));
      }
    }
  }
  Call& c = call_;
  c.k = k_.data();
  c.v = v_.data();
  for (auto* stride : {c.k_stride, c.v_stride}) {
    stride[0] = page * slot_values;
    stride[1] = slot_values;
    stride[2] = spec.head_dim;
  }
  c.num_pages = static_cast<int32_t>(pages);
  if (spec.page_size == 0) {
    c.cache_slots = page;
    c.cache_row = table_.data();
  } else {
    c.block_table = table_.data();
    c.block_table_stride = columns;
    c.block_table_columns = static_cast<int32_t>(columns);
  }
}

void DecodeCase::put(std::vector<std::byte>& cache, int64_t index, float value) const {
  const auto at = static_cast<std::size_t>(index);
  if (problem_.kv_type == DType::e4m3) {
    cache[at] = std::byte{encode_e4m3(value)};
    return;
  }
  const uint16_t bits = encode(value, problem_.kv_type == DType::bf16);
  std::memcpy(&cache[2 * at], &bits, sizeof bits);
}

void DecodeCase::clear_results() {
  std::fill(out_.begin(), out_.end(), kNaN);
  std::fill(lse_.begin(), lse_.end(), std::nanf(""));
}

std::string DecodeCase::difference() const {
  Problem problem = problem_;
  problem.score_slots = problem.row_replicas = 0;
  return reference::judge(problem, call_, reference::precision_of(problem_.backend, problem))
      .first_failure;
}

}  // namespace deuce::emulator
