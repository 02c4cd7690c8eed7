// SPDX-License-Identifier: Apache-2.0
// Builds an Instance: rows, lengths, page table, cache, scales, in this order.
#include "support/instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "support/content.h"

namespace deuce::testing {
namespace {

constexpr int64_t kUnusedStride = 0x1234567;  // of the request dimension under cu_q_len

struct RowShape {
  int64_t requests, rows, heads, columns;
};

/// Strides {request, row, head} and element count of a tensor of rows.
TensorView lay_out(RowOrder order, const RowShape& shape, int64_t padding) {
  const auto [requests, rows, heads, columns] = shape;
  TensorView view;
  int64_t(&stride)[3] = view.stride;
  switch (order) {
    case RowOrder::dense: stride[2] = columns, stride[1] = heads * columns; break;
    case RowOrder::padded:
      stride[2] = columns + padding, stride[1] = heads * stride[2] + padding;
      break;
    case RowOrder::head_major:
      stride[2] = std::max<int64_t>(1, rows) * columns, stride[1] = columns;
      break;
    case RowOrder::sliced: stride[2] = columns, stride[1] = 3 * heads * columns; break;
  }
  stride[0] = order == RowOrder::head_major ? heads * stride[2] : rows * stride[1];
  if (order == RowOrder::padded) stride[0] += 2 * padding;
  if (requests > 0 && rows > 0) {
    view.elements =
        (requests - 1) * stride[0] + (rows - 1) * stride[1] + (heads - 1) * stride[2] + columns;
  }
  return view;
}

struct CacheShape {
  int64_t pages, slots, heads, columns;
};

TensorView lay_out(KvOrder order, const CacheShape& shape, int64_t padding) {
  const auto [pages, slots, heads, columns] = shape;
  TensorView view;
  int64_t(&stride)[3] = view.stride;
  switch (order) {
    case KvOrder::nhd:
    case KvOrder::interleaved: stride[2] = columns, stride[1] = heads * columns; break;
    case KvOrder::hnd: stride[2] = slots * columns, stride[1] = columns; break;
    case KvOrder::padded:
      stride[2] = columns + padding, stride[1] = heads * stride[2] + padding;
      break;
  }
  stride[0] = order == KvOrder::hnd ? heads * stride[2] : slots * stride[1];
  if (order == KvOrder::padded) stride[0] += 3 * padding;
  if (order == KvOrder::interleaved) stride[0] *= 2;
  if (pages > 0 && slots > 0) {
    view.elements =
        (pages - 1) * stride[0] + (slots - 1) * stride[1] + (heads - 1) * stride[2] + columns;
  }
  return view;
}

void copy_strides(const TensorView& view, int64_t (&target)[3]) {
  std::copy(std::begin(view.stride), std::end(view.stride), std::begin(target));
}

}  // namespace

VisibleKeys visible_to_request(const Case& from, int64_t request) {
  const RequestCase& r = from.requests[request];
  VisibleKeys keys{std::numeric_limits<int64_t>::max(), 0};
  for (int64_t row = 0; row < r.q_len; ++row) {
    const int64_t pos = r.kv_len - r.q_len + row;
    int64_t first = r.kv_start, last = r.kv_len;
    if (from.causal) last = std::min(last, pos + 1);
    if (from.window_right >= 0) last = std::min(last, pos + from.window_right + 1);
    if (from.window_left >= 0) first = std::max(first, pos - from.window_left);
    if (first >= last) continue;
    keys = {std::min(keys.first, first), std::max(keys.last, last)};
  }
  return keys.last == 0 ? VisibleKeys{} : keys;
}

GuardedBuffer& Instance::add(std::size_t bytes, std::size_t alignment) {
  return buffers_.emplace_back(bytes, alignment);
}

Instance::Instance(const Case& from, const Poison& poison) : case_(from) {
  buffers_.reserve(24);
  fill_config();
  args.struct_size = sizeof args;
  args.batch = static_cast<int32_t>(case_.batch());
  args.score_scale = case_.score_scale;
  args.out_scale = case_.out_scale;
  build_rows();
  build_lengths();
  build_pages();
  build_cache(poison);
  build_scales(poison);
  for (int64_t b = 0; b < case_.batch(); ++b) write_keys(b);
  build_sink();
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (i != out_ && i != lse_) buffers_[i].freeze();
  }
}

void Instance::fill_config() {
  deuce_decode_config_init(&config);
  config.num_q_heads = case_.q_heads();
  config.num_kv_heads = case_.kv_heads;
  config.head_dim_qk = case_.head_dim_qk;
  config.head_dim_v = case_.head_dim_v;
  config.q_dtype = case_.q_dtype;
  config.kv_dtype = case_.kv_dtype;
  config.out_dtype = case_.out_dtype;
  config.sink_dtype = case_.sink_dtype;
  config.page_size = case_.page_size;
  config.max_batch = static_cast<int32_t>(std::max<int64_t>(1, case_.batch()));
  config.max_q_len = static_cast<int32_t>(case_.max_q_len());
  config.causal = case_.causal ? 1 : 0;
  config.max_kv_len = case_.max_live();
  config.window_left = case_.window_left;
  config.window_right = case_.window_right;
  config.softmax_scale = case_.softmax_scale;
  config.softcap = case_.softcap;
  config.lse_base = case_.lse == LseWish::base2 ? 2 : 0;
  config.num_splits = case_.num_splits;
  config.split_kv_len = case_.split_kv_len;
  config.score_slots = case_.score_slots;
  config.row_replicas = case_.row_replicas;
  config.sm_margin = case_.sm_margin;
}

void Instance::build_rows() {
  cu_q_len_.assign(1, 0);
  for (const RequestCase& r : case_.requests) cu_q_len_.push_back(cu_q_len_.back() + r.q_len);
  args.q_len = static_cast<int32_t>(case_.max_q_len());
  const int64_t requests = case_.packed_q ? 1 : case_.batch();
  const int64_t rows = case_.packed_q ? cu_q_len_.back() : args.q_len;
  const int64_t heads = case_.q_heads();

  const TensorView q =
      lay_out(case_.q_order, {requests, rows, heads, case_.head_dim_qk}, case_.padding);
  const TensorView out =
      lay_out(case_.out_order, {requests, rows, heads, case_.head_dim_v}, case_.padding);
  const TensorView lse = lay_out(case_.lse_order, {requests, rows, heads, 1}, 3);
  copy_strides(q, args.q_stride);
  copy_strides(out, args.out_stride);
  copy_strides(lse, args.lse_stride);
  if (case_.packed_q) {
    args.q_stride[0] = args.out_stride[0] = args.lse_stride[0] = kUnusedStride;
    GuardedBuffer& cu = add(cu_q_len_.size() * sizeof(int32_t), 4);
    std::copy(cu_q_len_.begin(), cu_q_len_.end(), cu.as<int32_t>());
    args.cu_q_len = cu.as<int32_t>();
  }

  const int64_t q_bytes = element_bytes(case_.q_dtype);
  GuardedBuffer& q_buffer = add(q.elements * q_bytes);
  fill_poison({.fill = Poison::Fill::nan}, case_.q_dtype, q_buffer.data(), q.elements);
  args.q = q_buffer.data();
  std::vector<float> row_values(case_.head_dim_qk);
  for_each_row([&](int64_t request, int64_t row, int64_t head) {
    draw_row(case_.seed, case_.requests[request].name, 'q', head, row, case_.q_size,
             row_values.data(), case_.head_dim_qk);
    if (case_.content) {
      case_.content('q', static_cast<int32_t>(request), head, row, row_values.data());
    }
    store_elements(case_.q_dtype,
                   q_buffer.data() + row_offset(args.q_stride, request, row, head) * q_bytes,
                   row_values.data(), case_.head_dim_qk);
  });

  out_ = buffers_.size();
  GuardedBuffer& out_buffer = add(out.elements * element_bytes(case_.out_dtype));
  fill_elements(prefill_bits(case_.out_dtype), element_bytes(case_.out_dtype), out_buffer.data(),
                out.elements);
  args.out = out_buffer.data();
  lse_ = buffers_.size();
  if (case_.lse == LseWish::none) return;
  GuardedBuffer& lse_buffer = add(lse.elements * sizeof(float), 4);
  fill_elements(prefill_bits(DEUCE_F32), 4, lse_buffer.data(), lse.elements);
  args.lse = lse_buffer.as<float>();
}

void Instance::build_lengths() {
  const auto array_of = [&](auto value_of) {
    GuardedBuffer& buffer = add(case_.requests.size() * sizeof(int32_t), 4);
    for (std::size_t b = 0; b < case_.requests.size(); ++b) {
      buffer.as<int32_t>()[b] = static_cast<int32_t>(value_of(case_.requests[b]));
    }
    return buffer.as<int32_t>();
  };
  const bool any_start = std::any_of(case_.requests.begin(), case_.requests.end(),
                                     [](const RequestCase& r) { return r.kv_start != 0; });
  if (any_start) args.kv_start = array_of([](const RequestCase& r) { return r.kv_start; });
  if (case_.give_kv_len) {
    args.kv_len = array_of([](const RequestCase& r) { return r.kv_len; });
  } else if (!case_.indptr && !case_.requests.empty()) {
    args.kv_len_all = case_.requests[0].kv_len;
  }
}

void Instance::build_pages() {
  Rng rng(case_.seed + 17);
  const bool paged = case_.page_size > 0;
  int64_t longest = 0;
  std::vector<int64_t> wanted;
  for (const RequestCase& r : case_.requests) {
    longest = std::max(longest, r.kv_len);
    wanted.push_back(paged ? (r.kv_len + case_.page_size - 1) / case_.page_size : 1);
  }
  slots_ = paged ? case_.page_size : longest + 2;
  page_count_ = static_cast<int32_t>(std::accumulate(wanted.begin(), wanted.end(), int64_t{3}));
  std::vector<int32_t> ids(page_count_);
  std::iota(ids.begin(), ids.end(), 0);
  if (case_.shuffled) std::shuffle(ids.begin(), ids.end(), rng);
  auto next = ids.begin();
  for (const int64_t count : wanted) {
    pages_.emplace_back(next, next + count);
    next += count;
  }
  args.num_pages = page_count_;
  if (paged) return case_.indptr ? build_indptr_table() : build_block_table();
  args.cache_slots = slots_;
  if (!case_.shuffled) return;
  GuardedBuffer& rows = add(case_.requests.size() * sizeof(int32_t), 4);
  for (std::size_t b = 0; b < pages_.size(); ++b) rows.as<int32_t>()[b] = pages_[b][0];
  args.cache_row = rows.as<int32_t>();
}

/// A page id where a row needs the page, junk elsewhere: it must never be followed.
int32_t Instance::page_or_junk(int64_t request, int64_t column) {
  const VisibleKeys keys = visible_to_request(case_, request);
  const bool needed = keys.first < keys.last && column >= keys.first / case_.page_size &&
                      column <= (keys.last - 1) / case_.page_size;
  if (needed) return pages_[request][column];
  const int32_t junk[] = {-1, std::numeric_limits<int32_t>::max(), 0, page_count_};
  return junk[(request + column) % 4];
}

void Instance::build_indptr_table() {
  std::vector<int32_t> indptr{0}, indices, last;
  for (int64_t b = 0; b < case_.batch(); ++b) {
    const auto count = static_cast<int64_t>(pages_[b].size());
    const int64_t spare = case_.give_kv_len ? case_.spare_columns : 0;
    for (int64_t column = 0; column < count + spare; ++column) {
      indices.push_back(page_or_junk(b, column));
    }
    indptr.push_back(static_cast<int32_t>(indices.size()));
    const int64_t kv_len = case_.requests[b].kv_len;
    last.push_back(kv_len == 0 ? -7 : static_cast<int32_t>((kv_len - 1) % case_.page_size + 1));
  }
  const auto store = [&](const std::vector<int32_t>& values) {
    GuardedBuffer& buffer = add(values.size() * sizeof(int32_t), 4);
    std::copy(values.begin(), values.end(), buffer.as<int32_t>());
    return buffer.as<int32_t>();
  };
  args.page_indptr = store(indptr);
  args.page_indices = store(indices);
  args.last_page_len = store(last);
}

void Instance::build_block_table() {
  std::size_t columns = 0;
  for (const auto& pages : pages_) columns = std::max(columns, pages.size());
  columns += case_.spare_columns;
  args.block_table_columns = static_cast<int32_t>(columns);
  args.block_table_stride = static_cast<int64_t>(columns) + case_.table_padding;
  const int64_t elements =
      case_.batch() == 0 ? 0 : (case_.batch() - 1) * args.block_table_stride + columns;
  GuardedBuffer& table = add(elements * sizeof(int32_t), 4);
  std::fill_n(table.as<int32_t>(), elements, std::numeric_limits<int32_t>::min());
  for (int64_t b = 0; b < case_.batch(); ++b) {
    for (std::size_t column = 0; column < columns; ++column) {
      table.as<int32_t>()[b * args.block_table_stride + column] = page_or_junk(b, column);
    }
  }
  args.block_table = table.as<int32_t>();
}

void Instance::build_cache(const Poison& poison) {
  const int64_t bytes = element_bytes(case_.kv_dtype);
  const auto fill = [&](GuardedBuffer& buffer, int64_t elements, bool poisoned) {
    fill_poison(poisoned ? poison : Poison{}, case_.kv_dtype, buffer.data(), elements);
  };
  const CacheShape k_shape{page_count_, slots_, case_.kv_heads, case_.head_dim_qk};
  const CacheShape v_shape{page_count_, slots_, case_.kv_heads, case_.head_dim_v};
  const bool together =
      case_.kv_order == KvOrder::interleaved && case_.head_dim_qk == case_.head_dim_v;
  const KvOrder order =
      case_.kv_order == KvOrder::interleaved && !together ? KvOrder::nhd : case_.kv_order;
  const TensorView k = lay_out(order, k_shape, case_.padding),
                   v = lay_out(order, v_shape, case_.padding);
  copy_strides(k, args.k_stride);
  copy_strides(v, args.v_stride);
  const int64_t v_behind_k = slots_ * case_.kv_heads * case_.head_dim_qk;  // interleaved only
  GuardedBuffer& k_buffer = add((k.elements + (together ? v_behind_k : 0)) * bytes);
  fill(k_buffer, k.elements + (together ? v_behind_k : 0), poison.in_k);
  k_ = k_buffer.data();
  if (together) {
    v_ = k_ + v_behind_k * bytes;
  } else {
    GuardedBuffer& v_buffer = add(v.elements * bytes);
    fill(v_buffer, v.elements, poison.in_v);
    v_ = v_buffer.data();
  }
  args.k = k_;
  args.v = v_;
}

void Instance::build_scales(const Poison& poison) {
  if (case_.descales) {
    const auto descale = [&](uint64_t tensor, const float*& pointer, int64_t(&stride)[2]) {
      const bool broadcast = (case_.seed + tensor) % 3 == 0;
      stride[0] = broadcast ? 0 : case_.kv_heads + 1;
      stride[1] = broadcast ? 0 : 1;
      const int64_t rows = std::max<int64_t>(1, case_.batch());
      GuardedBuffer& buffer =
          add(((rows - 1) * stride[0] + (case_.kv_heads - 1) * stride[1] + 1) * sizeof(float), 4);
      for (int64_t b = 0; b < case_.batch(); ++b) {
        for (int64_t h = 0; h < case_.kv_heads; ++h) {
          buffer.as<float>()[b * stride[0] + h * stride[1]] = draw_scale(
              case_.seed, broadcast ? 0 : case_.requests[b].name, tensor, broadcast ? 0 : h, 0);
        }
      }
      pointer = buffer.as<float>();
    };
    if (case_.fp8_q()) descale(1, args.q_descale, args.q_descale_stride);
    if (case_.fp8_cache()) {
      descale(2, args.k_descale, args.k_descale_stride);
      descale(3, args.v_descale, args.v_descale_stride);
    }
  }
  if (!case_.token_scales) return;
  const auto token_scale = [&](float*& target, const float*& pointer, int64_t(&stride)[3]) {
    const TensorView view =
        lay_out(case_.kv_order == KvOrder::interleaved ? KvOrder::nhd : case_.kv_order,
                CacheShape{page_count_, slots_, case_.kv_heads, 1}, 5);
    copy_strides(view, stride);
    GuardedBuffer& buffer = add(view.elements * sizeof(float), 4);
    fill_poison(poison, DEUCE_F32, buffer.data(), view.elements);
    pointer = target = buffer.as<float>();
  };
  token_scale(k_scale_, args.k_token_scale, args.k_token_scale_stride);
  token_scale(v_scale_, args.v_token_scale, args.v_token_scale_stride);
}

void Instance::write_keys(int64_t request) {
  const VisibleKeys keys = visible_to_request(case_, request);
  for (int64_t position = keys.first; position < keys.last; ++position) {
    write_key(request, position);
  }
}

void Instance::write_key(int64_t request, int64_t position) {
  const int64_t column = case_.page_size > 0 ? position / case_.page_size : 0;
  const int64_t slot = case_.page_size > 0 ? position % case_.page_size : position;
  const int64_t page = pages_[request][column];
  const uint64_t name = case_.requests[request].name;
  const int64_t bytes = element_bytes(case_.kv_dtype);
  float row[4096];
  const auto write = [&](char tensor, std::byte* base, const int64_t(&stride)[3], int64_t head,
                         int64_t columns, float deviation) {
    draw_row(case_.seed, name, tensor, head, position, deviation, row, columns);
    if (case_.content) {
      case_.content(tensor, static_cast<int32_t>(request), head, position, row);
    }
    const int64_t offset = page * stride[0] + slot * stride[1] + head * stride[2];
    store_elements(case_.kv_dtype, base + offset * bytes, row, columns);
  };
  for (int64_t head = 0; head < case_.kv_heads; ++head) {
    write('k', k_, args.k_stride, head, case_.head_dim_qk, case_.k_size);
    write('v', v_, args.v_stride, head, case_.head_dim_v, case_.v_size);
    if (k_scale_ == nullptr) continue;
    const auto place = [&](const int64_t(&stride)[3]) {
      return page * stride[0] + slot * stride[1] + head * stride[2];
    };
    k_scale_[place(args.k_token_scale_stride)] = draw_scale(case_.seed, name, 4, head, position);
    v_scale_[place(args.v_token_scale_stride)] = draw_scale(case_.seed, name, 5, head, position);
  }
}

void Instance::build_sink() {
  if (!case_.sink) return;
  std::vector<float> logits(case_.q_heads());
  draw_row(case_.seed, 0, 's', 0, 0, 2, logits.data(), case_.q_heads());
  GuardedBuffer& buffer = add(logits.size() * element_bytes(case_.sink_dtype), 4);
  store_elements(case_.sink_dtype, buffer.data(), logits.data(), case_.q_heads());
  args.sink = buffer.data();
}

int64_t Instance::row_offset(const int64_t (&stride)[3], int64_t request, int64_t row,
                             int64_t head) const {
  if (!case_.packed_q) return request * stride[0] + row * stride[1] + head * stride[2];
  return (cu_q_len_[request] + row) * stride[1] + head * stride[2];
}

std::byte* Instance::make_workspace(std::size_t bytes, uint8_t fill) {
  GuardedBuffer& buffer = add(bytes, 256);
  std::memset(buffer.data(), fill, bytes);
  return buffer.data();
}

}  // namespace deuce::testing
