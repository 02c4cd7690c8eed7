// SPDX-License-Identifier: Apache-2.0
// Drawing of random problems, both runs, and the comparison with its error bound.
#include "gpu/gpu_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernel/numbers.h"
#include "reference/number_format.h"

namespace deuce::test {
namespace {

int bytes_of(int32_t dtype) { return dtype == DEUCE_F32 ? 4 : dtype == DEUCE_E4M3 ? 1 : 2; }

void ok(deuce_status status, const char* what) {
  ASSERT_EQ(status, DEUCE_OK) << what << ": " << deuce_last_error();
}

float load(const std::vector<uint8_t>& bytes, int64_t element, int32_t dtype) {
  if (dtype == DEUCE_F32) {
    float value;
    std::memcpy(&value, &bytes[element * 4], 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, &bytes[element * 2], 2);
  return dtype == DEUCE_BF16 ? to_float(Bf16{bits}) : to_float(Half{bits});
}

// Nearest e4m3 below in magnitude; good enough for random data.
uint8_t to_e4m3(float value) {
  const uint8_t sign = value < 0 ? 0x80 : 0;
  const float magnitude = std::min(std::fabs(value), 448.0F);
  if (magnitude < 0x1p-6F) return sign | static_cast<uint8_t>(magnitude * 512.0F);
  int exponent = 0;
  const float fraction = std::frexp(magnitude, &exponent);  // [0.5, 1)
  return sign | static_cast<uint8_t>((exponent + 6) << 3) |
         static_cast<uint8_t>((fraction * 2 - 1) * 8.0F);
}

// Bytes whose every element is NaN, in any of the types.
std::vector<uint8_t> garbage(std::size_t bytes) { return std::vector<uint8_t>(bytes, 0xff); }

}  // namespace

std::string CaseSpec::text() const {
  return fmt::format(
      "seed {} hd {} kv_heads {} group {} q {} kv {} out {} page {} layout {} indptr {} ragged {} "
      "causal {} starts {} sinks {} q_len {} window {},{} softcap {} scale {} descales {} splits "
      "{} "
      "split_kv_len {} batch {} lengths {}",
      seed, head_dim, kv_heads, group, q_dtype, kv_dtype, out_dtype, page_size,
      static_cast<int>(layout), indptr_style, ragged_rows, causal, starts, sinks, q_len,
      window_left, window_right, softcap, softmax_scale, descales, num_splits, split_kv_len,
      lengths.size(),
      fmt::join(lengths.begin(), lengths.begin() + std::min<std::size_t>(lengths.size(), 8), " "));
}

GpuCase::GpuCase(const CaseSpec& spec) : spec_(spec), random_(spec.seed) {
  batch_ = static_cast<int>(spec.lengths.size());
  kv_len_ = spec.lengths;
  draw_rows();
  draw_tables();
  draw_cache();
  d_q_ = DeviceBuffer(q_);
  d_k_ = DeviceBuffer(k_);
  d_v_ = DeviceBuffer(v_);
  d_kv_len_ = DeviceBuffer(kv_len_);
  d_kv_start_ = DeviceBuffer(kv_start_);
  d_cu_q_len_ = DeviceBuffer(cu_q_len_);
  d_table_ = DeviceBuffer(table_);
  d_indptr_ = DeviceBuffer(indptr_);
  d_last_page_ = DeviceBuffer(last_page_);
  d_cache_row_ = DeviceBuffer(cache_row_);
  d_sink_ = DeviceBuffer(sink_);
  d_k_descale_ = DeviceBuffer(k_descale_);
  d_v_descale_ = DeviceBuffer(v_descale_);
}

int32_t GpuCase::q_len_of(int request) const {
  return spec_.ragged_rows ? cu_q_len_[request + 1] - cu_q_len_[request] : spec_.q_len;
}

void GpuCase::store(std::vector<uint8_t>& bytes, int64_t element, int32_t dtype, float value) {
  if (dtype == DEUCE_E4M3) {
    bytes[element] = to_e4m3(value);
    return;
  }
  const uint16_t bits =
      dtype == DEUCE_BF16 ? from_float<Bf16>(value).bits : from_float<Half>(value).bits;
  std::memcpy(&bytes[element * 2], &bits, 2);
}

void GpuCase::draw_rows() {
  total_tokens_ = batch_ * spec_.q_len;
  if (spec_.ragged_rows) {
    cu_q_len_.push_back(0);
    for (int b = 0; b < batch_; ++b) {
      cu_q_len_.push_back(cu_q_len_.back() + static_cast<int>(random_() % (spec_.q_len + 1)));
    }
    total_tokens_ = std::max(cu_q_len_.back(), 1);
  }
  const int heads = spec_.kv_heads * spec_.group;
  const int64_t elements = int64_t{total_tokens_} * heads * spec_.head_dim;
  q_.resize(elements * bytes_of(spec_.q_dtype));
  for (int64_t i = 0; i < elements; ++i) store(q_, i, spec_.q_dtype, next_value());
  if (spec_.sinks) {
    for (int h = 0; h < heads; ++h) sink_.push_back(next_value());
  }
  if (spec_.descales) {
    for (int i = 0; i < batch_ * spec_.kv_heads; ++i) {
      k_descale_.push_back(0.5F + std::fabs(next_value()));
      v_descale_.push_back(0.5F + std::fabs(next_value()));
    }
  }
}

void GpuCase::draw_tables() {
  const int32_t longest = std::max(1, *std::max_element(kv_len_.begin(), kv_len_.end()));
  if (spec_.starts) {
    for (int32_t length : kv_len_) {
      kv_start_.push_back(length == 0 ? 0 : static_cast<int32_t>(random_() % (length + 1)));
    }
  }
  if (spec_.page_size == 0) {
    slots_ = longest + static_cast<int>(random_() % 40);
    pages_ = batch_ + 2;
    if (spec_.rows_by_index) {
      for (int b = 0; b < batch_; ++b) cache_row_.push_back(b);
      std::shuffle(cache_row_.begin(), cache_row_.end(), random_);
    }
    return;
  }
  slots_ = spec_.page_size;
  columns_ = (longest + spec_.page_size - 1) / spec_.page_size + 2;
  int needed = 0;
  for (int32_t length : kv_len_) needed += (length + spec_.page_size - 1) / spec_.page_size;
  pages_ = needed + 3;
  std::vector<int32_t> ids(pages_);
  std::iota(ids.begin(), ids.end(), 0);
  std::shuffle(ids.begin(), ids.end(), random_);
  table_.assign(spec_.indptr_style ? 0 : int64_t{batch_} * columns_, -1);
  if (spec_.indptr_style) indptr_.push_back(0);
  for (int b = 0, next = 0; b < batch_; ++b) {
    const int pages = (kv_len_[b] + spec_.page_size - 1) / spec_.page_size;
    for (int c = 0; c < pages; ++c, ++next) {
      if (spec_.indptr_style) {
        table_.push_back(ids[next]);
      } else {
        table_[int64_t{b} * columns_ + c] = ids[next];
      }
    }
    if (spec_.indptr_style) {
      indptr_.push_back(next);
      last_page_.push_back(pages == 0 ? 0 : kv_len_[b] - (pages - 1) * spec_.page_size);
    }
  }
  if (table_.empty()) table_.push_back(-1);
}

void GpuCase::fill_slot(int64_t row_or_page, int64_t slot) {
  for (int head = 0; head < spec_.kv_heads; ++head) {
    const int64_t start = row_or_page * k_stride_[0] + slot * k_stride_[1] + head * k_stride_[2];
    for (int d = 0; d < spec_.head_dim; ++d) {
      store(k_, start + d, spec_.kv_dtype, next_value());
      const float value = next_value();
      store(v_, v_offset_ + start + d, spec_.kv_dtype, value);
      store(magnitude_v_, v_offset_ + start + d, spec_.kv_dtype, std::fabs(value));
    }
  }
}

void GpuCase::draw_cache() {
  const int64_t dim = spec_.head_dim, heads = spec_.kv_heads;
  const int64_t page = slots_ * heads * dim;
  const bool head_major = spec_.layout == Layout::hnd;
  k_stride_[0] = spec_.layout == Layout::interleaved ? 2 * page : page;
  k_stride_[1] = head_major ? dim : heads * dim;
  k_stride_[2] = head_major ? slots_ * dim : dim;
  v_offset_ = spec_.layout == Layout::interleaved ? page : 0;
  const std::size_t bytes =
      static_cast<std::size_t>(pages_) * k_stride_[0] * bytes_of(spec_.kv_dtype);
  k_ = garbage(bytes);
  v_ = garbage(bytes);
  magnitude_v_ = garbage(bytes);
  for (int b = 0; b < batch_; ++b) {
    // Slots that no row sees stay garbage: before kv_start, before every row's window, past kv_len.
    int64_t first = spec_.starts ? kv_start_[b] : 0;
    if (spec_.window_left >= 0) {
      first = std::max<int64_t>(first, kv_len_[b] - q_len_of(b) - int64_t{spec_.window_left});
    }
    for (int64_t position = first; position < kv_len_[b]; ++position) {
      if (spec_.page_size == 0) {
        fill_slot(spec_.rows_by_index ? cache_row_[b] : b, position);
      } else {
        const int64_t column = position / spec_.page_size;
        const int64_t entry =
            spec_.indptr_style ? indptr_[b] + column : int64_t{b} * columns_ + column;
        fill_slot(table_[entry], position % spec_.page_size);
      }
    }
  }
}

deuce_decode_config GpuCase::config(int32_t backend) const {
  deuce_decode_config config;
  deuce_decode_config_init(&config);
  config.backend = backend;
  config.num_q_heads = spec_.kv_heads * spec_.group;
  config.num_kv_heads = spec_.kv_heads;
  config.head_dim_qk = config.head_dim_v = spec_.head_dim;
  config.q_dtype = spec_.q_dtype;
  config.kv_dtype = spec_.kv_dtype;
  // The judge is not rounded: its output is compared as it is.
  config.out_dtype = backend == DEUCE_BACKEND_REFERENCE ? DEUCE_F32 : spec_.out_dtype;
  config.page_size = spec_.page_size;
  config.max_batch = batch_;
  config.max_q_len = spec_.q_len;
  config.causal = spec_.causal ? 1 : 0;
  config.max_kv_len = std::max(1, *std::max_element(spec_.lengths.begin(), spec_.lengths.end()));
  config.max_kv_len = std::max<int64_t>(config.max_kv_len, spec_.max_kv_len);
  config.window_left = spec_.window_left;
  config.window_right = spec_.window_right;
  config.softcap = spec_.softcap;
  config.softmax_scale = spec_.softmax_scale;
  config.lse_base = spec_.lse_base2 ? 2 : 0;
  if (backend != DEUCE_BACKEND_REFERENCE) {
    config.num_splits = spec_.num_splits;
    config.split_kv_len = spec_.split_kv_len;
    config.sm_margin = spec_.sm_margin;
  }
  return config;
}

deuce_decode_args GpuCase::args(bool on_device) {
  const auto pick = [on_device]<class T>(const std::vector<T>& host,
                                         const DeviceBuffer<T>& device) {
    return host.empty() ? static_cast<const T*>(nullptr) : on_device ? device.data() : host.data();
  };
  const int64_t heads = int64_t{spec_.kv_heads} * spec_.group, dim = spec_.head_dim;
  deuce_decode_args args{};
  args.struct_size = sizeof args;
  args.tag = 7;
  args.batch = batch_;
  args.q_len = spec_.q_len;
  args.q = pick(q_, d_q_);
  args.k = pick(k_, d_k_);
  args.v = static_cast<const uint8_t*>(pick(v_, d_v_)) + v_offset_ * bytes_of(spec_.kv_dtype);
  args.q_stride[0] = args.out_stride[0] = spec_.q_len * heads * dim;
  args.q_stride[1] = args.out_stride[1] = heads * dim;
  args.q_stride[2] = args.out_stride[2] = dim;
  args.lse_stride[0] = spec_.q_len * heads;
  args.lse_stride[1] = heads;
  args.lse_stride[2] = 1;
  std::copy_n(k_stride_, 3, args.k_stride);
  std::copy_n(k_stride_, 3, args.v_stride);
  args.cu_q_len = pick(cu_q_len_, d_cu_q_len_);
  args.kv_start = pick(kv_start_, d_kv_start_);
  args.num_pages = pages_;
  if (spec_.indptr_style) {
    args.page_indptr = pick(indptr_, d_indptr_);
    args.page_indices = pick(table_, d_table_);
    args.last_page_len = pick(last_page_, d_last_page_);
  } else {
    args.kv_len = pick(kv_len_, d_kv_len_);
  }
  if (spec_.page_size == 0) {
    args.cache_slots = slots_;
    args.cache_row = pick(cache_row_, d_cache_row_);
  } else if (!spec_.indptr_style) {
    args.block_table = pick(table_, d_table_);
    args.block_table_columns = columns_;
    args.block_table_stride = columns_;
  }
  args.sink = pick(sink_, d_sink_);
  args.k_descale = pick(k_descale_, d_k_descale_);
  args.v_descale = pick(v_descale_, d_v_descale_);
  args.k_descale_stride[0] = args.v_descale_stride[0] = spec_.kv_heads;
  args.k_descale_stride[1] = args.v_descale_stride[1] = 1;
  return args;
}

void GpuCase::set_lengths(const std::vector<int32_t>& lengths) {
  kv_len_ = lengths;
  d_kv_len_ = DeviceBuffer(kv_len_);
}

std::vector<uint8_t> GpuCase::run_on_gpu() {
  deuce_fault fault{};
  std::vector<uint8_t> result = run_on_gpu([](deuce_decode_args&) {}, fault);
  EXPECT_EQ(fault.code, DEUCE_FAULT_NONE) << spec_.text();
  return result;
}

std::vector<uint8_t> GpuCase::run_on_gpu(const std::function<void(deuce_decode_args&)>& change,
                                         deuce_fault& fault) {
  const int32_t out_dtype = spec_.out_dtype != 0 ? spec_.out_dtype : spec_.q_dtype;
  const int64_t rows = int64_t{total_tokens_} * spec_.kv_heads * spec_.group;
  const deuce_decode_config config = this->config(DEUCE_BACKEND_HOPPER);
  out_ = garbage(rows * spec_.head_dim * bytes_of(out_dtype));
  lse_.assign(rows, std::nanf(""));
  d_out_ = DeviceBuffer(out_);
  d_lse_ = DeviceBuffer(lse_);
  deuce_decode_plan plan = nullptr;
  ok(deuce_decode_plan_create(&config, &plan), "plan_create");
  std::size_t bytes = 0;
  ok(deuce_decode_workspace_size(&config, &bytes, nullptr), "workspace_size");
  d_workspace_ = DeviceBuffer(garbage(bytes));
  deuce_decode_args args = this->args(true);
  args.out = d_out_.data();
  args.lse = spec_.lse ? d_lse_.data() : nullptr;
  change(args);
  ok(deuce_decode_run(plan, &args, d_workspace_.data(), bytes, nullptr), "run");
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << spec_.text();
  fault = {};
  fault.struct_size = sizeof fault;
  ok(deuce_decode_fault(plan, &fault), "fault");
  deuce_decode_plan_destroy(plan);
  out_ = d_out_.to_host();
  lse_ = d_lse_.to_host();
  std::vector<uint8_t> result = out_;
  result.insert(result.end(), reinterpret_cast<uint8_t*>(lse_.data()),
                reinterpret_cast<uint8_t*>(lse_.data() + lse_.size()));
  return result;
}

std::string GpuCase::disagreement() {
  run_on_gpu();
  const int64_t rows = int64_t{total_tokens_} * spec_.kv_heads * spec_.group;
  std::vector<float> expected(rows * spec_.head_dim), bound(rows * spec_.head_dim), lse(rows);
  const deuce_decode_config config = this->config(DEUCE_BACKEND_REFERENCE);
  deuce_decode_plan plan = nullptr;
  ok(deuce_decode_plan_create(&config, &plan), "plan_create");
  std::size_t bytes = 0;
  ok(deuce_decode_workspace_size(&config, &bytes, nullptr), "workspace_size");
  std::vector<std::max_align_t> workspace(bytes / sizeof(std::max_align_t) + 32);
  void* aligned = workspace.data();
  std::size_t room = workspace.size() * sizeof(std::max_align_t);
  std::align(256, bytes, aligned, room);
  deuce_decode_args args = this->args(false);
  args.out = expected.data();
  args.lse = lse.data();
  ok(deuce_decode_run(plan, &args, aligned, bytes, nullptr), "reference");
  args.out = bound.data();
  args.lse = nullptr;
  args.v = magnitude_v_.data() + v_offset_ * bytes_of(spec_.kv_dtype);
  ok(deuce_decode_run(plan, &args, aligned, bytes, nullptr), "reference of |V|");
  deuce_decode_plan_destroy(plan);
  return compare({expected.begin(), expected.end()}, {bound.begin(), bound.end()}, lse);
}

// |error| <= u_p sum(p |v|) + u_out |out|: P is rounded to the MMA's type once (u = 2^-8 bf16,
// 2^-11 half), the output once; scores, sums and exp2 together stay below 2^-13 of sum(p |v|).
std::string GpuCase::compare(const std::vector<double>& expected, const std::vector<double>& bound,
                             const std::vector<float>& expected_lse) {
  const int32_t out_dtype = spec_.out_dtype != 0 ? spec_.out_dtype : spec_.q_dtype;
  const double p_unit = (spec_.kv_dtype == DEUCE_BF16 ? 0x1p-8 : 0x1p-11) + 0x1p-13;
  const double out_unit = out_dtype == DEUCE_BF16  ? 0x1p-8
                          : out_dtype == DEUCE_F16 ? 0x1p-11
                                                   : 0x1p-22;
  // A weight below 2^-14 of the largest is subnormal in half precision: 2^-25 off, for every key.
  const double tiny_weights =
      spec_.kv_dtype == DEUCE_BF16
          ? 0.0
          : 0x1p-25 * *std::max_element(spec_.lengths.begin(), spec_.lengths.end());
  const int rows_written = spec_.ragged_rows ? cu_q_len_.back() : total_tokens_;
  const int64_t rows = int64_t{rows_written} * spec_.kv_heads * spec_.group;
  for (int64_t i = 0; i < rows * spec_.head_dim; ++i) {
    const double got = load(out_, i, out_dtype);
    const double allowed =
        p_unit * bound[i] + out_unit * std::fabs(expected[i]) + tiny_weights + 1e-7;
    if (!(std::fabs(got - expected[i]) <= allowed)) {
      return fmt::format("row {} dim {}: got {} expected {} allowed error {} [{}]",
                         i / spec_.head_dim, i % spec_.head_dim, got, expected[i], allowed,
                         spec_.text());
    }
  }
  for (int64_t i = 0; spec_.lse && i < rows; ++i) {
    const double allowed = 2e-5 * (1 + std::fabs(expected_lse[i])) + 2e-5 * spec_.softcap;
    const bool same = std::isinf(expected_lse[i]) ? lse_[i] == expected_lse[i]
                                                  : std::fabs(lse_[i] - expected_lse[i]) <= allowed;
    if (!same) {
      return fmt::format("LSE of row {}: got {} expected {} [{}]", i, lse_[i], expected_lse[i],
                         spec_.text());
    }
  }
  return "";
}

}  // namespace deuce::test
