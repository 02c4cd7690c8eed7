// SPDX-License-Identifier: Apache-2.0
// The C++ wrapper over a paged cache: three requests of different length share a pool of pages that
// lie in no order. Each request's query points at one of its keys, the needle, so its output must
// be that key's value. Build: c++ -std=c++17 decode.cpp $(pkg-config --cflags --libs deuce)
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deuce/deuce.hpp>
#include <memory>
#include <vector>

constexpr int kBatch = 3, kPage = 16, kColumns = 8, kPages = kBatch * kColumns;
constexpr int kQueryHeads = 8, kKvHeads = 2, kHeadDim = 64;

static float value_of(int request) { return static_cast<float>(100 + request); }

int main() try {
  const std::vector<int> kv_len{1, 50, 128}, needle{0, 17, 127};
  std::vector<float> q(kBatch * kQueryHeads * kHeadDim, 1.0f), out(q.size());
  std::vector<float> k(kPages * kPage * kKvHeads * kHeadDim), v(k.size());
  std::vector<int> block_table(kBatch * kColumns);
  for (int i = 0; i < kPages; ++i) block_table[i] = i * 7 % kPages;  // 7 and 24 share no factor
  for (int b = 0; b < kBatch; ++b) {
    const int slot = block_table[b * kColumns + needle[b] / kPage] * kPage + needle[b] % kPage;
    for (int i = 0; i < kKvHeads * kHeadDim; ++i) {
      k[slot * kKvHeads * kHeadDim + i] = 4.0f;  // a score of 4 * 64 / sqrt(64) = 32, others 0
      v[slot * kKvHeads * kHeadDim + i] = value_of(b);
    }
  }

  deuce_decode_config config = deuce::make_config();
  config.num_q_heads = kQueryHeads, config.num_kv_heads = kKvHeads;
  config.head_dim_qk = config.head_dim_v = kHeadDim;
  config.q_dtype = config.kv_dtype = DEUCE_F32;
  config.page_size = kPage;
  config.max_batch = kBatch, config.max_q_len = 1, config.max_kv_len = kColumns * kPage;
  const deuce::DecodePlan plan(config);
  const std::unique_ptr<void, decltype(&std::free)> workspace(
      std::aligned_alloc(256, (plan.workspace_bytes() + 511) / 256 * 256), std::free);

  deuce_decode_args args = deuce::make_args();
  args.batch = kBatch;
  deuce::set_rows(args, q.data(), out.data(), nullptr, 1, kQueryHeads, kHeadDim);
  deuce::set_paged_nhd(args, k.data(), v.data(), kPages, kPage, kKvHeads, kHeadDim);
  args.kv_len = kv_len.data();
  args.block_table = block_table.data();
  args.block_table_stride = args.block_table_columns = kColumns;
  plan.run(args, workspace.get(), plan.workspace_bytes());

  bool right = true;
  for (int b = 0; b < kBatch; ++b) {
    const float found = out[b * kQueryHeads * kHeadDim];
    std::printf("request %d, %3d keys: found %.3f, needle %.0f\n", b, kv_len[b], found,
                value_of(b));
    right = right && std::fabs(found - value_of(b)) < 0.01f;
  }
  return right ? 0 : 1;
} catch (const deuce::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
