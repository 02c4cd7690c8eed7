// SPDX-License-Identifier: Apache-2.0
// Sizes first, then tensors, then the tables that make each copy read other bytes.
#include "workload.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "random_fill.h"
#include "traffic.h"

namespace deuce::cli {
namespace {

/// A copy is read again only after this many times the cache has been read in between.
constexpr std::size_t kCacheMultiple = 4;

int64_t pages_of(int32_t kv_len, int page_size) {
  return (int64_t{kv_len} + page_size - 1) / page_size;
}

}  // namespace

Result<Workload> Workload::create(const BenchShape& shape, Device& device, std::size_t cache_bytes,
                                  uint64_t seed) {
  Workload workload;
  if (Status status = workload.build(shape, device, cache_bytes, seed); !status.ok()) return status;
  return workload;
}

void Workload::describe(const BenchShape& shape) {
  deuce_decode_config_init(&config_);
  config_.num_q_heads = shape.q_heads;
  config_.num_kv_heads = shape.kv_heads;
  config_.head_dim_qk = config_.head_dim_v = shape.head_dim;
  config_.kv_dtype = static_cast<int32_t>(shape.dtype);
  config_.q_dtype = is_fp8(shape.dtype) ? DEUCE_BF16 : config_.kv_dtype;
  config_.page_size = shape.page_size;
  config_.max_batch = static_cast<int32_t>(shape.kv_lens.size());
  config_.max_q_len = shape.q_len;
  config_.max_kv_len = *std::max_element(shape.kv_lens.begin(), shape.kv_lens.end());
  config_.causal = 1;
  config_.window_left = shape.window_left;
  config_.softcap = shape.softcap;
  host_args_.struct_size = static_cast<uint32_t>(sizeof host_args_);
  host_args_.batch = config_.max_batch;
  host_args_.q_len = shape.q_len;
  const int64_t heads = shape.q_heads, width = shape.head_dim;
  for (auto* stride : {&host_args_.q_stride, &host_args_.out_stride}) {
    (*stride)[0] = shape.q_len * heads * width;
    (*stride)[1] = heads * width;
    (*stride)[2] = width;
  }
  host_args_.lse_stride[0] = shape.q_len * heads;
  host_args_.lse_stride[1] = heads;
  host_args_.lse_stride[2] = 1;
}

void Workload::plan_cache(const BenchShape& shape) {
  const auto [shortest, longest] = std::minmax_element(shape.kv_lens.begin(), shape.kv_lens.end());
  if (shape.page_size > 0) {
    columns_ = pages_of(*longest, shape.page_size);
    for (const int32_t length : shape.kv_lens)
      copy_slots_ += pages_of(length, shape.page_size) * shape.page_size;
  } else {
    // Rows of the longest request would waste most of the memory of an uneven batch, so that one
    // is packed into a single row, each request at its own kv_start.
    packed_ = *shortest != *longest;
    copy_slots_ = std::accumulate(shape.kv_lens.begin(), shape.kv_lens.end(), int64_t{0});
  }
  const int64_t row_slots = shape.page_size > 0 ? shape.page_size
                            : packed_           ? copy_slots_
                                                : *longest;
  const int64_t heads = shape.kv_heads, width = shape.head_dim;
  const bool hnd = shape.layout == Layout::hnd;
  for (auto* stride : {&host_args_.k_stride, &host_args_.v_stride}) {
    (*stride)[0] = packed_ ? 0 : row_slots * heads * width;
    (*stride)[1] = hnd ? width : heads * width;
    (*stride)[2] = hnd ? row_slots * width : width;
  }
  host_args_.cache_slots = shape.page_size > 0 ? 0 : row_slots;
  host_args_.block_table_columns = static_cast<int32_t>(columns_);
  host_args_.block_table_stride = columns_;
}

Result<std::pair<const void*, const void*>> Workload::random_tensor(Device& device, DType type,
                                                                    int64_t elements,
                                                                    uint64_t seed) {
  const std::size_t bytes =
      static_cast<std::size_t>(elements) * static_cast<std::size_t>(dtype_bytes(type));
  Result<Memory> host = host_->allocate(bytes);
  if (!host.ok()) return host.status();
  fill_random(type, {host.value().get(), bytes}, seed);
  Result<Memory> placed = device.place(host.value().get(), bytes);
  if (!placed.ok()) return placed.status();
  memory_.push_back(host.value());
  memory_.push_back(placed.value());
  return std::pair<const void*, const void*>{host.value().get(), placed.value().get()};
}

void Workload::make_index(const BenchShape& shape, std::size_t copies, uint64_t seed) {
  std::vector<int32_t> ids(shape.page_size > 0 ? static_cast<std::size_t>(host_args_.num_pages)
                                               : 0);
  std::iota(ids.begin(), ids.end(), 0);
  std::shuffle(ids.begin(), ids.end(), std::mt19937_64(seed));
  auto next_id = ids.begin();
  for (std::size_t copy = 0; copy < copies; ++copy) {
    int32_t start = 0;
    for (const int32_t length : shape.kv_lens) {
      kv_start_.push_back(start);
      kv_len_.push_back(start + length);
      start += packed_ ? length : 0;
      if (shape.page_size == 0) continue;
      const int64_t used = pages_of(length, shape.page_size);
      tables_.insert(tables_.end(), next_id, next_id + used);
      tables_.insert(tables_.end(), static_cast<std::size_t>(columns_ - used), -1);
      next_id += used;
    }
  }
}

Status Workload::place_index(Device& device) {
  const auto place = [&](const std::vector<int32_t>& from, const int32_t*& to) -> Status {
    Result<Memory> placed = device.place(from.data(), from.size() * sizeof(int32_t));
    if (!placed.ok()) return placed.status();
    to = reinterpret_cast<const int32_t*>(placed.value().get());
    memory_.push_back(std::move(placed.value()));
    return {};
  };
  const int32_t *kv_len = nullptr, *kv_start = nullptr, *tables = nullptr;
  if (Status status = place(kv_len_, kv_len); !status.ok()) return status;
  if (Status status = place(kv_start_, kv_start); !status.ok()) return status;
  if (Status status = place(tables_, tables); !status.ok()) return status;
  const int64_t batch = host_args_.batch;
  const auto point = [&](deuce_decode_args& args, const int32_t* len, const int32_t* start,
                         const int32_t* table, std::size_t copy) {
    const int64_t first = static_cast<int64_t>(copy) * batch;
    args.kv_len = len + first;
    args.kv_start = packed_ ? start + first : nullptr;
    args.block_table = tables_.empty() ? nullptr : table + first * columns_;
  };
  for (std::size_t copy = 0; copy < args_.size(); ++copy)
    point(args_[copy], kv_len, kv_start, tables, copy);
  point(host_args_, kv_len_.data(), kv_start_.data(), tables_.data(), 0);
  return {};
}

Status Workload::build(const BenchShape& shape, Device& device, std::size_t cache_bytes,
                       uint64_t seed) {
  Result<std::unique_ptr<Device>> host = open_device(Backend::cpu);
  if (!host.ok()) return host.status();
  host_ = std::move(host.value());
  describe(shape);
  plan_cache(shape);

  const int64_t slot_elements = int64_t{shape.kv_heads} * shape.head_dim;
  const int64_t copy_elements = copy_slots_ * slot_elements;
  const auto read_bytes = static_cast<std::size_t>(2 * copy_elements * dtype_bytes(shape.dtype));
  const std::size_t copies =
      1 + (kCacheMultiple * cache_bytes) / std::max<std::size_t>(read_bytes, 1);
  const int64_t pool_elements = copy_elements * static_cast<int64_t>(copies);
  const auto q_type = static_cast<DType>(config_.q_dtype);
  const int64_t rows = int64_t{host_args_.batch} * shape.q_len;
  const auto k = random_tensor(device, shape.dtype, pool_elements, seed);
  const auto v = random_tensor(device, shape.dtype, pool_elements, seed + 1);
  const auto q = random_tensor(device, q_type, rows * shape.q_heads * shape.head_dim, seed + 2);
  const auto sink = random_tensor(device, DType::f32, shape.q_heads, seed + 3);
  for (const auto* made : {&k, &v, &q, &sink}) {
    if (!made->ok()) return made->status();
  }
  // Paged: one pool for all copies, told apart by their tables. Contiguous: one stretch per copy.
  const int64_t row_slots = shape.page_size > 0 ? shape.page_size : host_args_.cache_slots;
  const int64_t pool_slots =
      shape.page_size > 0 ? copy_slots_ * static_cast<int64_t>(copies) : copy_slots_;
  host_args_.num_pages = static_cast<int32_t>(pool_slots / row_slots);
  args_.assign(copies, host_args_);
  const auto point = [&](deuce_decode_args& args, bool on_host, std::size_t copy) {
    const auto pick = [on_host](const auto& made) {
      return on_host ? made.value().first : made.value().second;
    };
    const int64_t skipped = shape.page_size > 0 ? 0 : copy_elements * static_cast<int64_t>(copy);
    args.q = pick(q);
    args.k = static_cast<const std::byte*>(pick(k)) + skipped * dtype_bytes(shape.dtype);
    args.v = static_cast<const std::byte*>(pick(v)) + skipped * dtype_bytes(shape.dtype);
    args.sink = shape.sinks ? pick(sink) : nullptr;
  };
  for (std::size_t copy = 0; copy < copies; ++copy) point(args_[copy], false, copy);
  point(host_args_, true, 0);
  make_index(shape, copies, seed);
  if (Status status = place_index(device); !status.ok()) return status;

  Result<CallResult> result = CallResult::create(device, config_, rows, args_[0]);
  if (!result.ok()) return result.status();
  for (deuce_decode_args& args : args_) {
    args.out = args_[0].out;
    args.lse = args_[0].lse;
  }
  result_ = std::move(result.value());
  return {};
}

}  // namespace deuce::cli
