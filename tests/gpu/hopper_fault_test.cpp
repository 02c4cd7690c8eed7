// SPDX-License-Identifier: Apache-2.0
// Lengths and ids in device memory that cannot be right: the kernel reports the first, gives the
// faulty request NaN, and every other request the bits that it has in a batch without the fault.
// compute-sanitizer on this file shows that nothing is read out of bounds.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "gpu/gpu_case.h"

namespace deuce::test {
namespace {

constexpr int kHeads = 8, kDim = 128, kFaulty = 1, kTag = 7;
const std::vector<int32_t> kLengths{300, 200, 500, 0, 64};

/// Fixed borders: the bits of a request then do not depend on what its neighbours are cut into.
CaseSpec paged_spec() {
  CaseSpec spec{.seed = 21, .group = 4, .page_size = 16, .lengths = kLengths};
  spec.split_kv_len = 128;
  return spec;
}

std::vector<uint8_t> bytes_of_request(const std::vector<uint8_t>& results, int request) {
  constexpr std::size_t kOut = kHeads * kDim * 2, kLse = kHeads * 4;
  std::vector<uint8_t> bytes(kOut + kLse);
  std::memcpy(bytes.data(), &results[request * kOut], kOut);
  std::memcpy(&bytes[kOut], &results[kLengths.size() * kOut + request * kLse], kLse);
  return bytes;
}

bool all_nan(const std::vector<uint8_t>& request) {
  constexpr std::size_t kOut = kHeads * kDim;
  for (std::size_t i = 0; i < kOut; ++i) {
    uint16_t bits;
    std::memcpy(&bits, &request[2 * i], 2);
    if ((bits & 0x7fff) <= 0x7f80) return false;
  }
  for (int h = 0; h < kHeads; ++h) {
    float lse;
    std::memcpy(&lse, &request[2 * kOut + 4 * h], 4);
    if (!std::isnan(lse)) return false;
  }
  return true;
}

struct Expected {
  int32_t code, column;
  int64_t value, lowest, highest;
};

void expect_fault(const CaseSpec& spec, const std::function<void(deuce_decode_args&)>& change,
                  const Expected& expected) {
  GpuCase problem(spec);
  const std::vector<uint8_t> clean = problem.run_on_gpu();
  deuce_fault fault{};
  const std::vector<uint8_t> results = problem.run_on_gpu(change, fault);
  EXPECT_EQ(fault.code, expected.code);
  EXPECT_EQ(fault.request, kFaulty);
  EXPECT_EQ(fault.column, expected.column);
  EXPECT_EQ(fault.value, expected.value);
  EXPECT_EQ(fault.lowest, expected.lowest);
  EXPECT_EQ(fault.highest, expected.highest);
  EXPECT_EQ(fault.tag, kTag);
  for (int request = 0; request < static_cast<int>(kLengths.size()); ++request) {
    const std::vector<uint8_t> found = bytes_of_request(results, request);
    if (request == kFaulty) {
      EXPECT_TRUE(all_nan(found));
    } else {
      EXPECT_EQ(found, bytes_of_request(clean, request)) << "request " << request;
    }
  }
}

std::vector<int32_t> with(std::vector<int32_t> values, std::size_t index, int32_t value) {
  values[index] = value;
  return values;
}

TEST(HopperFault, LengthsOutsideTheTable) {
  DEUCE_NEEDS_HOPPER();
  for (const int32_t length : {-1, -2'000'000'000, 501, 2'000'000'000}) {
    const DeviceBuffer<int32_t> lengths(with(kLengths, kFaulty, length));
    expect_fault(paged_spec(), [&](deuce_decode_args& args) { args.kv_len = lengths.data(); },
                 {DEUCE_FAULT_KV_LEN, -1, length, 0, 500});
  }
  // The plan allows more than the table holds: 500 keys take 32 columns of 16, here all there are.
  CaseSpec spec = paged_spec();
  spec.max_kv_len = 4000;
  const DeviceBuffer<int32_t> lengths(with(kLengths, kFaulty, 513));
  expect_fault(spec,
               [&](deuce_decode_args& args) {
                 args.kv_len = lengths.data();
                 args.block_table_columns = 32;
               },
               {DEUCE_FAULT_KV_LEN, -1, 513, 0, 512});
}

TEST(HopperFault, PageIdsOutsideThePool) {
  DEUCE_NEEDS_HOPPER();
  CaseSpec spec = paged_spec();
  int32_t pages = 3;  // that the fixture adds
  for (const int32_t length : kLengths) pages += (length + 15) / 16;
  for (const int32_t id : {pages, 2'147'483'647, -1, -2'147'483'647}) {
    GpuCase source(spec);
    deuce_decode_args host = source.args(false);
    const auto columns = static_cast<std::size_t>(host.block_table_columns);
    std::vector<int32_t> table(host.block_table, host.block_table + kLengths.size() * columns);
    table[kFaulty * columns + 3] = id;
    const DeviceBuffer<int32_t> changed(table);
    expect_fault(spec, [&](deuce_decode_args& args) { args.block_table = changed.data(); },
                 {DEUCE_FAULT_PAGE_ID, 3, id, 0, pages - 1});
  }
}

// Load warps work out 32 boxes at a time: many tiles, or in small pages a part of one.
TEST(HopperFault, PageIdsOfEveryRound) {
  DEUCE_NEEDS_HOPPER();
  for (const int page : {1, 2, 3, 5, 16, 64}) {
    CaseSpec spec = paged_spec();
    spec.page_size = page;
    spec.lengths[kFaulty] = page < 16 ? 200 : 5000;
    int32_t pages = 3;
    for (const int32_t length : spec.lengths) pages += (length + page - 1) / page;
    GpuCase source(spec);
    deuce_decode_args host = source.args(false);
    const auto columns = static_cast<std::size_t>(host.block_table_columns);
    const int32_t used = (spec.lengths[kFaulty] + page - 1) / page;
    for (const int32_t column : {0, used / 2, used - 1}) {
      SCOPED_TRACE("page size " + std::to_string(page) + ", column " + std::to_string(column));
      std::vector<int32_t> table(host.block_table, host.block_table + kLengths.size() * columns);
      table[kFaulty * columns + static_cast<std::size_t>(column)] = pages;
      const DeviceBuffer<int32_t> changed(table);
      expect_fault(spec, [&](deuce_decode_args& args) { args.block_table = changed.data(); },
                   {DEUCE_FAULT_PAGE_ID, column, pages, 0, pages - 1});
    }
  }
}

TEST(HopperFault, StartsBehindTheLength) {
  DEUCE_NEEDS_HOPPER();
  for (const int32_t start : {-1, 201}) {
    const DeviceBuffer<int32_t> starts(std::vector<int32_t>{0, start, 0, 0, 0});
    expect_fault(paged_spec(), [&](deuce_decode_args& args) { args.kv_start = starts.data(); },
                 {DEUCE_FAULT_KV_START, -1, start, 0, 200});
  }
}

TEST(HopperFault, CacheRowsOutsideTheCache) {
  DEUCE_NEEDS_HOPPER();
  CaseSpec spec = paged_spec();
  spec.page_size = 0;
  const auto rows = static_cast<int32_t>(kLengths.size()) + 2;  // of the fixture
  for (const int32_t row : {-1, rows, 2'147'483'647}) {
    const DeviceBuffer<int32_t> cache_rows(std::vector<int32_t>{0, row, 2, 3, 4});
    expect_fault(spec, [&](deuce_decode_args& args) { args.cache_row = cache_rows.data(); },
                 {DEUCE_FAULT_CACHE_ROW, -1, row, 0, rows - 1});
  }
}

TEST(HopperFault, APendingFaultStopsTheNextRunOnce) {
  DEUCE_NEEDS_HOPPER();
  GpuCase problem(paged_spec());
  const DeviceBuffer<int32_t> lengths(with(kLengths, kFaulty, -5));
  const deuce_decode_config config = problem.config(DEUCE_BACKEND_HOPPER);
  deuce_decode_plan plan = nullptr;
  ASSERT_EQ(deuce_decode_plan_create(&config, &plan), DEUCE_OK) << deuce_last_error();
  std::size_t bytes = 0;
  ASSERT_EQ(deuce_decode_workspace_size(&config, &bytes, nullptr), DEUCE_OK);
  const DeviceBuffer<uint8_t> workspace(std::vector<uint8_t>(bytes, 0xff));
  const DeviceBuffer<uint8_t> out(std::vector<uint8_t>(kLengths.size() * kHeads * kDim * 2));
  deuce_decode_args args = problem.args(true);
  args.out = out.data();
  args.kv_len = lengths.data();
  ASSERT_EQ(deuce_decode_run(plan, &args, workspace.data(), bytes, nullptr), DEUCE_OK);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(deuce_decode_run(plan, &args, workspace.data(), bytes, nullptr), DEUCE_DEVICE_FAULT);
  EXPECT_NE(std::strstr(deuce_last_error(), "request 1"), nullptr) << deuce_last_error();
  deuce_decode_args right = problem.args(true);
  right.out = out.data();
  EXPECT_EQ(deuce_decode_run(plan, &right, workspace.data(), bytes, nullptr), DEUCE_OK);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  deuce_fault fault{};
  fault.struct_size = sizeof fault;
  EXPECT_EQ(deuce_decode_fault(plan, &fault), DEUCE_OK);
  EXPECT_EQ(fault.code, DEUCE_FAULT_NONE);
  deuce_decode_plan_destroy(plan);
}

}  // namespace
}  // namespace deuce::test
