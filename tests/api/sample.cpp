// SPDX-License-Identifier: Apache-2.0
// Builds the sample call and judges refusals.
// Values are small integers over 8, so that every element type holds them exactly.
#include "api/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace deuce_test {
namespace {

constexpr int kBatch = 3, kRows = 2, kQHeads = 4, kKvHeads = 2, kDim = 16;
constexpr int kPage = 8, kColumns = 3, kPages = 12, kSlots = 24;

std::vector<float> numbers(std::size_t count, int step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(static_cast<int>(i * step % 17) - 8) / 8;
  }
  return values;
}

std::vector<std::uint8_t> fp8_numbers(std::size_t count, int step) {
  std::vector<std::uint8_t> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<std::uint8_t>(0x30 + i * step % 16 + (i % 3 == 0 ? 0x80 : 0));
  }
  return values;
}

}  // namespace

Workspace::Workspace(std::size_t size)
    : data_(static_cast<std::byte*>(std::aligned_alloc(256, (size + 255) / 256 * 256))),
      size_(size) {}

void Workspace::Free::operator()(std::byte* memory) const { std::free(memory); }

Sample::Sample(int backend, Cache cache, bool fp8) {
  set_config(backend, cache, fp8);
  set_rows();
  set_cache(cache, fp8);
  set_tables(cache);
}

void Sample::set_config(int backend, Cache cache, bool fp8) {
  config.backend = backend;
  config.num_q_heads = kQHeads;
  config.num_kv_heads = kKvHeads;
  config.head_dim_qk = config.head_dim_v = kDim;
  config.q_dtype = DEUCE_F32;
  config.kv_dtype = fp8 ? DEUCE_E4M3 : DEUCE_F32;
  config.page_size = cache == Cache::contiguous ? 0 : kPage;
  config.max_batch = kBatch;
  config.max_q_len = kRows;
  config.max_kv_len = kSlots;
}

void Sample::set_rows() {
  q = numbers(std::size_t{kBatch} * kRows * kQHeads * kDim, 5);
  out.assign(std::size_t{kBatch} * kRows * kQHeads * kDim, 0.0F);
  lse.assign(std::size_t{kBatch} * kRows * kQHeads, 0.0F);
  args.batch = kBatch;
  deuce::set_rows(args, q.data(), out.data(), lse.data(), kRows, kQHeads, kDim);
}

void Sample::set_cache(Cache cache, bool fp8) {
  const std::size_t rows = cache == Cache::contiguous ? kBatch : kPages;
  const std::size_t slots = cache == Cache::contiguous ? kSlots : kPage;
  const std::size_t count = rows * slots * kKvHeads * kDim;
  const void *keys = nullptr, *values = nullptr;
  if (fp8) {
    k_fp8 = fp8_numbers(count, 7);
    v_fp8 = fp8_numbers(count, 3);
    keys = k_fp8.data();
    values = v_fp8.data();
  } else {
    k = numbers(count, 7);
    v = numbers(count, 3);
    keys = k.data();
    values = v.data();
  }
  if (cache == Cache::contiguous) {
    deuce::set_contiguous(args, keys, values, kBatch, kSlots, kKvHeads, kDim);
  } else {
    deuce::set_paged_nhd(args, keys, values, kPages, kPage, kKvHeads, kDim);
  }
}

void Sample::set_tables(Cache cache) {
  kv_len = {11, 0, 20};
  args.kv_len = kv_len.data();
  if (cache == Cache::table) {
    // What no key needs holds ids that no pool has.
    block_table = {7, 2, -1, -1, -1, -1, 4, 11, 0};
    args.block_table = block_table.data();
    args.block_table_stride = args.block_table_columns = kColumns;
  } else if (cache == Cache::indptr) {
    args.kv_len = nullptr;
    page_indptr = {0, 2, 2, 5};
    page_indices = {7, 2, 4, 11, 0};
    last_page_len = {3, 99, 4};
    args.page_indptr = page_indptr.data();
    args.page_indices = page_indices.data();
    args.last_page_len = last_page_len.data();
  }
}

std::vector<int> host_backends() {
  std::vector<int> found;
  for (int backend : {DEUCE_BACKEND_CPU, DEUCE_BACKEND_REFERENCE}) {
    const Sample sample(backend);
    if (deuce_decode_check(&sample.config) == DEUCE_OK) found.push_back(backend);
  }
  return found;
}

std::string backend_name(int backend) {
  switch (backend) {
    case DEUCE_BACKEND_CPU: return "cpu";
    case DEUCE_BACKEND_HOPPER: return "hopper";
    case DEUCE_BACKEND_BLACKWELL: return "blackwell";
    case DEUCE_BACKEND_EMULATOR: return "emulator";
    case DEUCE_BACKEND_REFERENCE: return "reference";
    default: return "auto";
  }
}

deuce_status run(Sample& sample) {
  deuce::DecodePlan plan;
  const deuce_status made = deuce::DecodePlan::try_create(sample.config, plan);
  if (made != DEUCE_OK) return made;
  const Workspace workspace(plan.workspace_bytes());
  return plan.try_run(sample.args, workspace.data(), workspace.size());
}

void expect_refused(Sample& sample, deuce_status status, const std::string& field,
                    const std::string& sentence) {
  deuce::DecodePlan plan;
  ASSERT_EQ(deuce::DecodePlan::try_create(sample.config, plan), DEUCE_OK) << deuce_last_error();
  const Workspace workspace(plan.workspace_bytes());
  const std::byte mark{0x5a};
  std::fill_n(workspace.data(), workspace.size(), mark);
  std::memset(sample.out.data(), 0x5a, sample.out.size() * sizeof(float));
  std::memset(sample.lse.data(), 0x5a, sample.lse.size() * sizeof(float));

  EXPECT_EQ(plan.try_run(sample.args, workspace.data(), workspace.size()), status);
  EXPECT_EQ(deuce_last_error(), sentence);
  EXPECT_EQ(deuce_last_error_field(), field);

  const auto untouched = [&](const void* memory, std::size_t bytes) {
    const auto* first = static_cast<const std::byte*>(memory);
    return std::all_of(first, first + bytes, [&](std::byte value) { return value == mark; });
  };
  EXPECT_TRUE(untouched(sample.out.data(), sample.out.size() * sizeof(float))) << "out was written";
  EXPECT_TRUE(untouched(sample.lse.data(), sample.lse.size() * sizeof(float))) << "lse was written";
  EXPECT_TRUE(untouched(workspace.data(), workspace.size())) << "workspace was written";
}

}  // namespace deuce_test
