// SPDX-License-Identifier: Apache-2.0
// Reads a capture tensor by tensor: the cache first, since the others are checked against it.
#include "capture.h"

#include <algorithm>
#include <array>

namespace deuce::cli {
namespace {

using io::TensorType;
using io::TensorView;

constexpr std::array kNumberTypes{TensorType::f32, TensorType::f16, TensorType::bf16,
                                  TensorType::e4m3, TensorType::e5m2};
constexpr std::array kSinkTypes{TensorType::f32, TensorType::f16, TensorType::bf16};
constexpr std::array kScaleTypes{TensorType::f32};
constexpr std::array kIndexTypes{TensorType::i32, TensorType::i64};

int32_t dtype_of(TensorType type) {
  switch (type) {
    case TensorType::f32: return DEUCE_F32;
    case TensorType::f16: return DEUCE_F16;
    case TensorType::bf16: return DEUCE_BF16;
    case TensorType::e4m3: return DEUCE_E4M3;
    default: return DEUCE_E5M2;
  }
}

class CaptureReader {
 public:
  CaptureReader(Capture& capture, const Meaning& meaning)
      : capture_(capture),
        config_(capture.config),
        args_(capture.args),
        meaning_(meaning),
        source_(capture.file, capture.owned) {}

  Status read();

 private:
  Status read_cache();
  Status read_page_table();
  Status read_indptr_table();
  Status read_contiguous();
  Status read_lengths();
  Status read_queries();
  Status read_sink();
  Status read_scale(const char* name, const float* deuce_decode_args::*scale, int64_t (&stride)[2]);
  Status read_token_scale(const char* name, const float* deuce_decode_args::*scale,
                          int64_t (&stride)[3]);
  void fill_config();

  /// Takes an index tensor and points the field to it.
  Status read_index(const char* name, std::span<const Axis> axes,
                    const int32_t* deuce_decode_args::*field);
  template <class T>
  void point(T deuce_decode_args::*field, const void* data, std::size_t bytes);
  bool hnd() const { return meaning_.layout == Layout::hnd; }
  /// Page or row, slot, head of a dense cache whose innermost extent is `width`.
  void cache_stride(int64_t (&stride)[3], int64_t width) const;

  Capture& capture_;
  deuce_decode_config& config_;
  deuce_decode_args& args_;
  const Meaning& meaning_;
  TensorSource source_;
  int64_t slots_ = 0, kv_heads_ = 0;  // of the cache
  int64_t batch_ = 0, capacity_ = 0;  // requests; most keys that a request could have
};

template <class T>
void CaptureReader::point(T deuce_decode_args::*field, const void* data, std::size_t bytes) {
  args_.*field = static_cast<T>(data);
  const auto offset =
      reinterpret_cast<const char*>(&(args_.*field)) - reinterpret_cast<const char*>(&args_);
  capture_.inputs.push_back({static_cast<std::size_t>(offset), data, bytes});
}

Status CaptureReader::read_index(const char* name, std::span<const Axis> axes,
                                 const int32_t* deuce_decode_args::*field) {
  const auto tensor = source_.take(name, kIndexTypes, axes);
  if (!tensor.ok()) return tensor.status();
  const auto data = source_.int32_data(*tensor.value());
  if (!data.ok()) return data.status();
  std::size_t count = 1;
  for (const int64_t extent : tensor.value()->shape) count *= static_cast<std::size_t>(extent);
  point(field, data.value(), count * sizeof(int32_t));
  return {};
}

void CaptureReader::cache_stride(int64_t (&stride)[3], int64_t width) const {
  stride[0] = slots_ * kv_heads_ * width;
  stride[1] = hnd() ? width : kv_heads_ * width;
  stride[2] = hnd() ? slots_ * width : width;
}

Status CaptureReader::read_cache() {
  const bool paged = source_.has("block_table") || source_.has("page_indptr");
  const char* outer = paged ? "pages" : "batch";
  const char* slot = paged ? "slot" : "tokens";
  const char* second = hnd() ? "kv heads" : slot;
  const char* third = hnd() ? slot : "kv heads";
  const std::array k_axes{Axis{outer}, Axis{second}, Axis{third}, Axis{"d"}};
  const auto k = source_.take("k", kNumberTypes, k_axes);
  if (!k.ok()) return k.status();
  const std::vector<int64_t>& shape = k.value()->shape;
  const std::array v_axes{Axis{outer, shape[0]}, Axis{second, shape[1]}, Axis{third, shape[2]},
                          Axis{"d"}};
  const auto v = source_.take("v", std::array{k.value()->type}, v_axes);
  if (!v.ok()) return v.status();
  slots_ = shape[hnd() ? 2 : 1];
  kv_heads_ = shape[hnd() ? 1 : 2];
  args_.num_pages = static_cast<int32_t>(shape[0]);
  config_.num_kv_heads = static_cast<int32_t>(kv_heads_);
  config_.kv_dtype = dtype_of(k.value()->type);
  config_.head_dim_qk = static_cast<int32_t>(shape[3]);
  config_.head_dim_v = static_cast<int32_t>(v.value()->shape[3]);
  cache_stride(args_.k_stride, config_.head_dim_qk);
  cache_stride(args_.v_stride, config_.head_dim_v);
  point(&deuce_decode_args::k, source_.data(*k.value()), k.value()->bytes);
  point(&deuce_decode_args::v, source_.data(*v.value()), v.value()->bytes);
  if (source_.has("block_table")) return read_page_table();
  return paged ? read_indptr_table() : read_contiguous();
}

Status CaptureReader::read_page_table() {
  config_.page_size = static_cast<int32_t>(slots_);
  const std::array axes{Axis{"batch"}, Axis{"pages"}};
  if (Status status = read_index("block_table", axes, &deuce_decode_args::block_table);
      !status.ok())
    return status;
  const TensorView& table = *capture_.file.find("block_table");
  batch_ = table.shape[0];
  args_.block_table_columns = static_cast<int32_t>(table.shape[1]);
  args_.block_table_stride = table.shape[1];
  capacity_ = table.shape[1] * slots_;
  return {};
}

Status CaptureReader::read_indptr_table() {
  config_.page_size = static_cast<int32_t>(slots_);
  const std::array indptr_axes{Axis{"batch + 1"}};
  if (Status status = read_index("page_indptr", indptr_axes, &deuce_decode_args::page_indptr);
      !status.ok())
    return status;
  const int64_t entries = capture_.file.find("page_indptr")->shape[0];
  if (entries == 0) return source_.refuse("page_indptr", "is empty: it has batch + 1 elements");
  batch_ = entries - 1;
  const std::array indices_axes{Axis{"pages of all requests"}};
  if (Status status = read_index("page_indices", indices_axes, &deuce_decode_args::page_indices);
      !status.ok())
    return status;
  // The library trusts page_indices to be as long as page_indptr says, since it is given no length.
  const int64_t listed = capture_.file.find("page_indices")->shape[0];
  for (int64_t i = 0; i < entries; ++i) {
    const int64_t first = args_.page_indptr[i];
    const int64_t lowest = i == 0 ? 0 : args_.page_indptr[i - 1];
    if (first < lowest || first > listed) {
      return source_.refuse("page_indptr", "has {} as its element {}: it must be {} .. {}", first,
                            i, lowest, listed);
    }
    capacity_ = std::max(capacity_, (first - lowest) * slots_);
  }
  const std::array last_axes{Axis{"batch", batch_}};
  return read_index("last_page_len", last_axes, &deuce_decode_args::last_page_len);
}

Status CaptureReader::read_contiguous() {
  args_.cache_slots = slots_;
  capacity_ = slots_;
  args_.kv_len_all = source_.has("kv_len") ? 0 : slots_;
  batch_ = args_.num_pages;
  if (const TensorView* lengths = capture_.file.find("kv_len");
      lengths != nullptr && lengths->shape.size() == 1) {
    batch_ = lengths->shape[0];
  }
  if (!source_.has("cache_row")) return {};
  const std::array axes{Axis{"batch", batch_}};
  return read_index("cache_row", axes, &deuce_decode_args::cache_row);
}

Status CaptureReader::read_lengths() {
  const std::array per_request{Axis{"batch", batch_}};
  if (source_.has("kv_len") || source_.has("block_table")) {
    if (Status status = read_index("kv_len", per_request, &deuce_decode_args::kv_len); !status.ok())
      return status;
  }
  if (source_.has("kv_start")) {
    if (Status status = read_index("kv_start", per_request, &deuce_decode_args::kv_start);
        !status.ok())
      return status;
  }
  args_.batch = static_cast<int32_t>(batch_);
  return {};
}

Status CaptureReader::read_queries() {
  const std::array axes{Axis{"tokens"}, Axis{"q heads"}, Axis{"d", config_.head_dim_qk}};
  const auto q = source_.take("q", kNumberTypes, axes);
  if (!q.ok()) return q.status();
  const int64_t tokens = q.value()->shape[0], heads = q.value()->shape[1];
  capture_.tokens = tokens;
  config_.num_q_heads = static_cast<int32_t>(heads);
  config_.q_dtype = dtype_of(q.value()->type);
  point(&deuce_decode_args::q, source_.data(*q.value()), q.value()->bytes);

  int64_t q_len = 1;
  if (source_.has("cu_q_len")) {
    const std::array cu_axes{Axis{"batch + 1", batch_ + 1}};
    if (Status status = read_index("cu_q_len", cu_axes, &deuce_decode_args::cu_q_len); !status.ok())
      return status;
    // q, out and lse have as many rows as q has, so the last entry is checked here.
    if (args_.cu_q_len[0] != 0 || args_.cu_q_len[batch_] != tokens) {
      return source_.refuse("cu_q_len",
                            "runs from {} to {}: it must run from 0 to the {} tokens of q",
                            args_.cu_q_len[0], args_.cu_q_len[batch_], tokens);
    }
    for (int64_t i = 0; i < batch_; ++i)
      q_len = std::max<int64_t>(q_len, int64_t{args_.cu_q_len[i + 1]} - args_.cu_q_len[i]);
  } else if (batch_ == 0 ? tokens != 0 : tokens == 0 || tokens % batch_ != 0) {
    return source_.refuse(
        "q", "has {} tokens for {} requests: they must be a multiple, or cu_q_len must be there",
        tokens, batch_);
  } else if (batch_ > 0) {
    q_len = tokens / batch_;
  }
  args_.q_len = static_cast<int32_t>(q_len);
  const auto rows = [q_len, heads](int64_t(&stride)[3], int64_t width) {
    stride[0] = q_len * heads * width;
    stride[1] = heads * width;
    stride[2] = width;
  };
  rows(args_.q_stride, config_.head_dim_qk);
  rows(args_.out_stride, config_.head_dim_v);
  rows(args_.lse_stride, 1);
  return {};
}

Status CaptureReader::read_sink() {
  if (!source_.has("sink")) return {};
  const std::array axes{Axis{"q heads", config_.num_q_heads}};
  const auto sink = source_.take("sink", kSinkTypes, axes);
  if (!sink.ok()) return sink.status();
  config_.sink_dtype = dtype_of(sink.value()->type);
  point(&deuce_decode_args::sink, source_.data(*sink.value()), sink.value()->bytes);
  return {};
}

Status CaptureReader::read_scale(const char* name, const float* deuce_decode_args::*scale,
                                 int64_t (&stride)[2]) {
  const TensorView* found = capture_.file.find(name);
  if (found == nullptr) return {};
  std::vector<Axis> axes;  // [], [1], [kv heads] or [batch, kv heads]
  if (found->shape.size() == 1)
    axes = {found->shape[0] == 1 ? Axis{"1", 1} : Axis{"1 or kv heads", kv_heads_}};
  if (found->shape.size() > 1) axes = {Axis{"batch", batch_}, Axis{"kv heads", kv_heads_}};
  const auto tensor = source_.take(name, kScaleTypes, axes);
  if (!tensor.ok()) return tensor.status();
  stride[0] = axes.size() == 2 ? kv_heads_ : 0;
  stride[1] = axes.size() == 2 || (axes.size() == 1 && found->shape[0] == kv_heads_) ? 1 : 0;
  point(scale, source_.data(*tensor.value()), tensor.value()->bytes);
  return {};
}

Status CaptureReader::read_token_scale(const char* name, const float* deuce_decode_args::*scale,
                                       int64_t (&stride)[3]) {
  const std::array axes{Axis{"as k", args_.num_pages}, Axis{"as k", hnd() ? kv_heads_ : slots_},
                        Axis{"as k", hnd() ? slots_ : kv_heads_}};
  const auto tensor = source_.take(name, kScaleTypes, axes);
  if (!tensor.ok()) return tensor.status();
  cache_stride(stride, 1);
  point(scale, source_.data(*tensor.value()), tensor.value()->bytes);
  return {};
}

void CaptureReader::fill_config() {
  config_.out_dtype = meaning_.out_dtype;
  config_.max_batch = static_cast<int32_t>(std::max<int64_t>(batch_, 1));
  config_.max_q_len = args_.q_len;
  config_.max_kv_len = std::max<int64_t>(capacity_, 1);
  config_.causal = meaning_.causal ? 1 : 0;
  config_.window_left = meaning_.window_left;
  config_.window_right = meaning_.window_right;
  config_.softcap = meaning_.softcap;
  config_.softmax_scale = meaning_.softmax_scale;
  config_.lse_base = meaning_.lse_base;
  args_.score_scale = meaning_.score_scale;
  args_.out_scale = meaning_.out_scale;
}

Status CaptureReader::read() {
  deuce_decode_config_init(&config_);
  args_ = {};
  args_.struct_size = static_cast<uint32_t>(sizeof args_);
  if (Status status = read_cache(); !status.ok()) return status;
  if (Status status = read_lengths(); !status.ok()) return status;
  if (Status status = read_queries(); !status.ok()) return status;
  if (Status status = read_sink(); !status.ok()) return status;
  const auto by_token = [this](const char* name) {
    const TensorView* tensor = capture_.file.find(name);
    return tensor != nullptr && tensor->shape.size() == 3;
  };
  using Args = deuce_decode_args;
  if (Status status = read_scale("q_scale", &Args::q_descale, args_.q_descale_stride); !status.ok())
    return status;
  Status k = by_token("k_scale")
                 ? read_token_scale("k_scale", &Args::k_token_scale, args_.k_token_scale_stride)
                 : read_scale("k_scale", &Args::k_descale, args_.k_descale_stride);
  if (!k.ok()) return k;
  Status v = by_token("v_scale")
                 ? read_token_scale("v_scale", &Args::v_token_scale, args_.v_token_scale_stride)
                 : read_scale("v_scale", &Args::v_descale, args_.v_descale_stride);
  if (!v.ok()) return v;
  fill_config();
  return source_.refuse_unknown();
}

}  // namespace

Result<Capture> read_capture(io::SafetensorsFile file, const ScalarTexts& flags) {
  const Result<Meaning> meaning = read_meaning(file.file(), file.metadata(), flags);
  if (!meaning.ok()) return meaning.status();
  Capture capture(std::move(file));
  if (Status status = CaptureReader(capture, meaning.value()).read(); !status.ok()) return status;
  return capture;
}

}  // namespace deuce::cli
