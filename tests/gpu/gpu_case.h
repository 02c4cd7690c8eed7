// SPDX-License-Identifier: Apache-2.0
// One attention problem on the host and on the GPU, and its judgement by the reference backend.
// Unused slots, pages and table entries are garbage (NaN, -1) on purpose: a kernel that lets one of
// them reach an output fails.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "deuce/deuce.h"
#include "gpu/device_buffer.h"

namespace deuce::test {

enum class Layout { nhd, hnd, interleaved };  // interleaved: K and V in one tensor

/// What a test asks for; the rest is drawn from the seed.
struct CaseSpec {
  uint64_t seed = 0;
  int head_dim = 128, kv_heads = 2, group = 4;
  int32_t q_dtype = DEUCE_BF16, kv_dtype = DEUCE_BF16, out_dtype = 0;
  int page_size = 16;  // 0: contiguous
  Layout layout = Layout::nhd;
  bool indptr_style = false, ragged_rows = false, causal = false, starts = false;
  bool sinks = false, lse = true, descales = false, lse_base2 = false, rows_by_index = false;
  int q_len = 1;
  int32_t window_left = -1, window_right = -1;
  float softcap = 0, softmax_scale = 0;
  std::vector<int32_t> lengths{100, 1, 0, 65, 300};
  int32_t num_splits = 0, split_kv_len = 0, sm_margin = 0;
  int32_t max_kv_len = 0;  // of the plan; 0: the longest

  std::string text() const;
};

class GpuCase {
 public:
  explicit GpuCase(const CaseSpec& spec);

  /// Runs both backends; the first disagreement as a sentence, or "".
  std::string disagreement();

  // --- for tests that look closer ---
  deuce_decode_config config(int32_t backend) const;
  deuce_decode_args args(bool on_device);  // pointers into this case's buffers
  std::vector<uint8_t> run_on_gpu();       // output bytes, then LSE bytes
  /// Likewise with arguments changed last, and whatever fault the kernel reports.
  std::vector<uint8_t> run_on_gpu(const std::function<void(deuce_decode_args&)>& change,
                                  deuce_fault& fault);
  void set_lengths(const std::vector<int32_t>& lengths);  // not above the first ones; device only

 private:
  void draw_rows();
  void draw_cache();
  void draw_tables();
  void fill_slot(int64_t row_or_page, int64_t slot);
  float next_value() { return normal_(random_); }
  void store(std::vector<uint8_t>& bytes, int64_t element, int32_t dtype, float value);
  int32_t q_len_of(int request) const;
  std::string compare(const std::vector<double>& expected, const std::vector<double>& bound,
                      const std::vector<float>& expected_lse);

  CaseSpec spec_;
  std::mt19937_64 random_;
  std::normal_distribution<float> normal_;
  int batch_ = 0, pages_ = 0, columns_ = 0, total_tokens_ = 0;
  int64_t slots_ = 0;  // of a page, or of a contiguous cache row
  std::vector<uint8_t> q_, k_, v_, out_, magnitude_v_;
  std::vector<float> lse_, sink_, k_descale_, v_descale_;
  std::vector<int32_t> kv_len_, kv_start_, cu_q_len_, table_, indptr_, last_page_, cache_row_;
  int64_t k_stride_[3] = {}, v_offset_ = 0;
  DeviceBuffer<uint8_t> d_q_, d_k_, d_v_, d_out_, d_workspace_;
  DeviceBuffer<float> d_lse_, d_sink_, d_k_descale_, d_v_descale_;
  DeviceBuffer<int32_t> d_kv_len_, d_kv_start_, d_cu_q_len_, d_table_, d_indptr_, d_last_page_,
      d_cache_row_;
};

}  // namespace deuce::test
