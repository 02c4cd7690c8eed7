// SPDX-License-Identifier: Apache-2.0
// The small call of the emulator; see caller.h.
#include "hazard/caller.h"

#include <random>

#include "kernel/numbers.h"

namespace deuce::test {
namespace {

constexpr int kDim = EmulatedCall::kHeadDim;

void set(int64_t (&stride)[3], int64_t a, int64_t b, int64_t c) {
  stride[0] = a;
  stride[1] = b;
  stride[2] = c;
}

/// Rows of `kDim` values at three strides, one behind the other.
std::vector<uint16_t> gathered(const void* base, const int64_t (&stride)[3], int first,
                               int second) {
  std::vector<uint16_t> values;
  const auto* from = static_cast<const uint16_t*>(base);
  for (int b = 0; b < EmulatedCall::kBatch; ++b) {
    for (int i = 0; i < first; ++i) {
      for (int h = 0; h < second; ++h) {
        const uint16_t* row = from + b * stride[0] + i * stride[1] + h * stride[2];
        values.insert(values.end(), row, row + kDim);
      }
    }
  }
  return values;
}

}  // namespace

EmulatedCall::EmulatedCall() {
  config.backend = DEUCE_BACKEND_EMULATOR;
  config.num_q_heads = kQHeads;
  config.num_kv_heads = kKvHeads;
  config.head_dim_qk = config.head_dim_v = kDim;
  config.q_dtype = config.kv_dtype = DEUCE_BF16;
  config.max_batch = kBatch;
  config.max_q_len = 1;
  config.max_kv_len = kSlots;
  rows.resize(std::size_t{kBatch} * kQHeads * 2 * kDim);
  cache.resize(std::size_t{kBatch} * kSlots * 2 * kKvHeads * kDim);
  lse.resize(std::size_t{kBatch} * kQHeads);
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (auto* values : {&rows, &cache}) {
    for (uint16_t& value : *values) value = from_float<Bf16>(normal(random)).bits;
  }
  args.batch = kBatch;
  args.q_len = 1;
  args.q = rows.data();
  args.out = rows.data() + kDim;
  args.lse = lse.data();
  set(args.q_stride, kQHeads * 2 * kDim, kQHeads * 2 * kDim, 2 * kDim);
  set(args.out_stride, kQHeads * 2 * kDim, kQHeads * 2 * kDim, 2 * kDim);
  set(args.lse_stride, kQHeads, kQHeads, 1);
  args.k = cache.data();
  args.v = cache.data() + kKvHeads * kDim;
  for (auto* stride : {&args.k_stride, &args.v_stride}) {
    set(*stride, kSlots * 2 * kKvHeads * kDim, 2 * kKvHeads * kDim, kDim);
  }
  args.cache_slots = kSlots;
  args.kv_len = kv_len.data();
}

void EmulatedCall::make_dense() {
  dense[0] = gathered(args.q, args.q_stride, 1, kQHeads);
  dense[1] = gathered(args.k, args.k_stride, kSlots, kKvHeads);
  dense[2] = gathered(args.v, args.v_stride, kSlots, kKvHeads);
  dense[3].resize(dense[0].size());
  args.q = dense[0].data();
  args.k = dense[1].data();
  args.v = dense[2].data();
  args.out = dense[3].data();
  for (auto* stride : {&args.q_stride, &args.out_stride}) {
    set(*stride, kQHeads * kDim, kQHeads * kDim, kDim);
  }
  for (auto* stride : {&args.k_stride, &args.v_stride}) {
    set(*stride, kSlots * kKvHeads * kDim, kKvHeads * kDim, kDim);
  }
}

deuce_status EmulatedCall::run() {
  deuce_decode_plan plan = nullptr;
  deuce_status status = deuce_decode_plan_create(&config, &plan);
  if (status != DEUCE_OK) return status;
  std::size_t bytes = 0;
  status = deuce_decode_workspace_size(&config, &bytes, nullptr);
  if (status == DEUCE_OK) {
    std::vector<std::byte> memory(bytes + 256);
    auto* workspace = memory.data() + (256 - reinterpret_cast<uintptr_t>(memory.data()) % 256);
    status = deuce_decode_run(plan, &args, workspace, bytes, nullptr);
  }
  deuce_decode_plan_destroy(plan);
  return status;
}

uint16_t EmulatedCall::out(int request, int head, int column) const {
  return static_cast<const uint16_t*>(
      args.out)[request * args.out_stride[0] + head * args.out_stride[2] + column];
}

uint16_t& EmulatedCall::v(int request, int slot, int head, int column) {
  return cache[static_cast<std::size_t>(
      ((request * kSlots + slot) * 2 * kKvHeads + kKvHeads + head) * kDim + column)];
}

}  // namespace deuce::test
