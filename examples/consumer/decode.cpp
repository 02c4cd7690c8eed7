// SPDX-License-Identifier: Apache-2.0
// One decode step of one request: 100 keys on shuffled pages of 16, 32 query heads on 8 KV heads.
// Built against an installed Deuce by CMakeLists.txt beside it, or with pkg-config:
// c++ -std=c++17 decode.cpp $(pkg-config --cflags --libs deuce)
#include <cstdio>
#include <vector>

#include "deuce/deuce.hpp"

int main() {
  constexpr int kQHeads = 32, kKvHeads = 8, kDim = 128, kPage = 16, kPages = 7;
  deuce_decode_config config = deuce::make_config();
  config.num_q_heads = kQHeads;
  config.num_kv_heads = kKvHeads;
  config.head_dim_qk = config.head_dim_v = kDim;
  config.q_dtype = config.kv_dtype = DEUCE_F32;
  config.page_size = kPage;
  config.max_batch = config.max_q_len = 1;
  config.max_kv_len = kPage * kPages;
  const deuce::DecodePlan plan(config);
  const deuce::HostWorkspace workspace(plan.workspace_bytes());

  const std::vector<float> q(kQHeads * kDim, 0.5F), k(kPages * kPage * kKvHeads * kDim, 0.25F);
  const std::vector<float> v(k.size(), 1.5F);
  const std::vector<int32_t> page_ids{3, 0, 6, 1, 5, 2, 4};
  std::vector<float> out(q.size());
  deuce_decode_args args = deuce::make_args();
  args.batch = 1;
  args.kv_len_all = 100;
  args.block_table = page_ids.data();
  args.block_table_columns = kPages;
  deuce::set_rows(args, q.data(), out.data(), nullptr, 1, kQHeads, kDim);
  deuce::set_paged_nhd(args, k.data(), v.data(), kPages, kPage, kKvHeads, kDim);
  plan.run(args, workspace.data(), workspace.size());
  std::printf("out[0] = %.3f\n", static_cast<double>(out[0]));
}
