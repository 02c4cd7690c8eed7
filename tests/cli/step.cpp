// SPDX-License-Identifier: Apache-2.0
// Drawing, exact result, and the file layouts of a step.
#include "cli/step.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "reference/number_format.h"

namespace deuce::cli {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

DType dtype_of(io::TensorType type) {
  switch (type) {
    case io::TensorType::f16: return DType::f16;
    case io::TensorType::bf16: return DType::bf16;
    case io::TensorType::e4m3: return DType::e4m3;
    case io::TensorType::e5m2: return DType::e5m2;
    default: return DType::f32;
  }
}

}  // namespace

int Step::tokens() const { return std::accumulate(q_lens.begin(), q_lens.end(), 0); }

void Step::draw(unsigned seed, bool coarse) {
  std::mt19937 random(seed);
  // Multiples of 1/8 (e4m3 has three mantissa bits) or of 1/64 below 2 (bf16 has seven).
  const int steps = coarse ? 8 : 64;
  const auto numbers = [&](int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) {
      value = static_cast<float>(static_cast<int>(random() % (2U * steps)) - steps) /
              static_cast<float>(steps);
    }
    return values;
  };
  q = numbers(int64_t{tokens()} * q_heads * head_dim);
  k.clear();
  v.clear();
  k_scale.clear();
  v_scale.clear();
  for (const int length : kv_lens) {
    k.push_back(numbers(int64_t{length} * kv_heads * head_dim));
    v.push_back(numbers(int64_t{length} * kv_heads * head_dim));
    k_scale.emplace_back(static_cast<std::size_t>(length * kv_heads), 1.0F);
    v_scale.emplace_back(static_cast<std::size_t>(length * kv_heads), 1.0F);
  }
}

namespace {

/// One row and head: scores of all keys, -inf where the row does not see them.
std::vector<double> scores(const Step& step, int request, int row, const float* q, int kv_head) {
  const int length = step.kv_lens[request], position = length - step.q_lens[request] + row;
  std::vector<double> result(static_cast<std::size_t>(length));
  for (int j = 0; j < length; ++j) {
    const int key = j * step.kv_heads + kv_head;
    double dot = 0;
    for (int c = 0; c < step.head_dim; ++c)
      dot += double{q[c]} * step.k[request][key * step.head_dim + c];
    double score = dot * step.scale * step.score_scale * step.k_scale[request][key];
    if (step.softcap > 0) score = step.softcap * std::tanh(score / step.softcap);
    const bool seen = (!step.causal || j <= position) &&
                      (step.window_left < 0 || j >= position - step.window_left) &&
                      (step.window_right < 0 || j <= position + step.window_right);
    result[j] = seen ? score : -std::numeric_limits<double>::infinity();
  }
  return result;
}

}  // namespace

StepResult exact(const Step& step) {
  StepResult result;
  int token = 0;
  for (int request = 0; request < step.batch(); ++request) {
    for (int row = 0; row < step.q_lens[request]; ++row, ++token) {
      for (int head = 0; head < step.q_heads; ++head) {
        const int kv_head = head / (step.q_heads / step.kv_heads);
        const float* q = step.q.data() + (int64_t{token} * step.q_heads + head) * step.head_dim;
        const std::vector<double> score = scores(step, request, row, q, kv_head);
        double sum = step.sink.empty() ? 0 : std::exp(double{step.sink[head]});
        std::vector<double> o(static_cast<std::size_t>(step.head_dim), 0.0);
        for (std::size_t j = 0; j < score.size(); ++j) {
          const double weight = std::exp(score[j]);
          const std::size_t key = j * step.kv_heads + kv_head;
          sum += weight;
          for (int c = 0; c < step.head_dim; ++c) {
            if (weight > 0)
              o[c] +=
                  weight * step.v[request][key * step.head_dim + c] * step.v_scale[request][key];
          }
        }
        for (const double value : o)
          result.out.push_back(sum > 0 ? step.out_scale * value / sum : 0);
        result.lse.push_back(std::log(sum) / (step.lse_base2 ? std::log(2.0) : 1.0));
      }
    }
  }
  return result;
}

void StepFile::add(const std::string& name, io::TensorType type, std::vector<int64_t> shape,
                   const std::vector<float>& values) {
  const auto format = reference::number_format(dtype_of(type));
  const auto width = static_cast<std::size_t>(io::tensor_type_bytes(type));
  std::string bytes;
  for (const float value : values) {
    const uint32_t bits = reference::encode(value, format);
    bytes.append(reinterpret_cast<const char*>(&bits), width);
  }
  tensors_[name] = {{name, type, std::move(shape), nullptr, 0}, std::move(bytes)};
}

void StepFile::add_indices(const std::string& name, const std::vector<int64_t>& values,
                           std::vector<int64_t> shape, io::TensorType type) {
  std::string bytes;
  for (const int64_t value : values) {
    bytes.append(reinterpret_cast<const char*>(&value), type == io::TensorType::i64 ? 8 : 4);
  }
  if (shape.empty()) shape = {static_cast<int64_t>(values.size())};
  tensors_[name] = {{name, type, std::move(shape), nullptr, 0}, std::move(bytes)};
}

void StepFile::write(const std::string& path) const {
  std::vector<io::TensorView> views;
  for (const auto& [name, tensor] : tensors_) {
    views.push_back(tensor.view);
    views.back().data = reinterpret_cast<const std::byte*>(tensor.bytes.data());
    views.back().bytes = tensor.bytes.size();
  }
  const Status status = io::write_safetensors(path, views, metadata);
  if (!status.ok()) std::abort();
}

namespace {

/// The cache as slots: where each key of each request lies, and the tables that say so.
class Layout {
 public:
  Layout(const Step& step, const CacheStyle& style) : step_(step), style_(style) {
    if (style.page_size > 0) {
      for (const int length : step.kv_lens)
        pages_.push_back((length + style.kv_start + style.page_size - 1) / style.page_size);
      outer_ = std::accumulate(pages_.begin(), pages_.end(), 0) + 2;  // two pages nobody uses
      slots_ = style.page_size;
    } else {
      outer_ = step.batch();
      slots_ = *std::max_element(step.kv_lens.begin(), step.kv_lens.end()) + style.kv_start;
    }
    ids_.resize(static_cast<std::size_t>(outer_));
    std::iota(ids_.begin(), ids_.end(), 0);
    if (style.page_size > 0 || style.cache_row)
      std::shuffle(ids_.begin(), ids_.end(), std::mt19937(7));
  }

  /// Index of (slot of a request, head) in a tensor [outer, slots, heads] or [outer, heads, slots].
  int64_t place(int request, int slot, int head) const {
    int64_t outer = ids_[request], inner = slot;
    if (style_.page_size > 0) {
      outer = ids_[first_page(request) + slot / slots_];
      inner = slot % slots_;
    }
    return style_.hnd ? (outer * step_.kv_heads + head) * slots_ + inner
                      : (outer * slots_ + inner) * step_.kv_heads + head;
  }
  std::vector<int64_t> shape(bool with_dim) const {
    std::vector<int64_t> shape{outer_, slots_, step_.kv_heads};
    if (style_.hnd) std::swap(shape[1], shape[2]);
    if (with_dim) shape.push_back(step_.head_dim);
    return shape;
  }
  int first_page(int request) const {
    return std::accumulate(pages_.begin(), pages_.begin() + request, 0);
  }

  void add_tables(StepFile& file) const {
    const auto type = style_.wide_indices ? io::TensorType::i64 : io::TensorType::i32;
    std::vector<int64_t> kv_len, kv_start(step_.kv_lens.size(), style_.kv_start);
    for (const int length : step_.kv_lens) kv_len.push_back(length + style_.kv_start);
    if (!style_.indptr) file.add_indices("kv_len", kv_len, {}, type);
    if (style_.kv_start > 0) file.add_indices("kv_start", kv_start, {}, type);
    if (style_.cache_row) file.add_indices("cache_row", ids_, {}, type);
    if (style_.page_size == 0) return;
    const int columns = *std::max_element(pages_.begin(), pages_.end()) + 1;
    std::vector<int64_t> table, indptr{0}, indices, last;
    for (int request = 0; request < step_.batch(); ++request) {
      for (int page = 0; page < columns; ++page) {
        const bool used = page < pages_[request];
        table.push_back(used ? ids_[first_page(request) + page] : -1);
        if (used) indices.push_back(table.back());
      }
      indptr.push_back(static_cast<int64_t>(indices.size()));
      last.push_back(
          pages_[request] == 0 ? 0 : kv_len[request] - int64_t{pages_[request] - 1} * slots_);
    }
    if (!style_.indptr)
      return file.add_indices("block_table", table, {step_.batch(), columns}, type);
    file.add_indices("page_indptr", indptr, {}, type);
    file.add_indices("page_indices", indices, {}, type);
    file.add_indices("last_page_len", last, {}, type);
  }

 private:
  const Step& step_;
  const CacheStyle& style_;
  std::vector<int> pages_;    // of each request
  std::vector<int64_t> ids_;  // page ids in request order, or the row of each request
  int64_t outer_ = 0, slots_ = 0;
};

std::vector<float> cache_tensor(const Step& step, const CacheStyle& style, const Layout& layout,
                                const std::vector<std::vector<float>>& from, int width) {
  int64_t size = width;
  for (const int64_t extent : layout.shape(false)) size *= extent;
  std::vector<float> values(static_cast<std::size_t>(size), kNaN);
  for (int request = 0; request < step.batch(); ++request) {
    for (int j = 0; j < step.kv_lens[request]; ++j) {
      for (int head = 0; head < step.kv_heads; ++head) {
        const int64_t to = layout.place(request, j + style.kv_start, head) * width;
        const float* source = from[request].data() + (int64_t{j} * step.kv_heads + head) * width;
        std::copy_n(source, width, values.begin() + to);
      }
    }
  }
  return values;
}

}  // namespace

StepFile step_file(const Step& step, const CacheStyle& style) {
  StepFile file;
  const Layout layout(step, style);
  const bool fp8 = io::tensor_type_bytes(style.kv_type) == 1;
  file.add("q", fp8 ? io::TensorType::f32 : style.kv_type,
           {step.tokens(), step.q_heads, step.head_dim}, step.q);
  file.add("k", style.kv_type, layout.shape(true),
           cache_tensor(step, style, layout, step.k, step.head_dim));
  file.add("v", style.kv_type, layout.shape(true),
           cache_tensor(step, style, layout, step.v, step.head_dim));
  if (style.token_scales) {
    file.add("k_scale", io::TensorType::f32, layout.shape(false),
             cache_tensor(step, style, layout, step.k_scale, 1));
    file.add("v_scale", io::TensorType::f32, layout.shape(false),
             cache_tensor(step, style, layout, step.v_scale, 1));
  }
  layout.add_tables(file);
  if (style.hnd) file.metadata["kv_layout"] = "HND";
  return file;
}

}  // namespace deuce::cli
