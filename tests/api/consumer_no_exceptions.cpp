// SPDX-License-Identifier: Apache-2.0
// The try_ forms are a full set: this program is compiled as C++17 without exceptions and RTTI.
#include <cstdio>
#include <vector>

#include "deuce/deuce.hpp"

namespace {

bool fails(deuce_status status, const char* what) {
  if (status == DEUCE_OK) return false;
  std::fprintf(stderr, "%s: %s\n", what, deuce::error_text(status).c_str());
  return true;
}

}  // namespace

int main() {
  constexpr int kHeads = 2, kDim = 16, kSlots = 4;
  deuce_decode_config config = deuce::make_config();
  config.num_q_heads = config.num_kv_heads = kHeads;
  config.head_dim_qk = config.head_dim_v = kDim;
  config.q_dtype = config.kv_dtype = DEUCE_F32;
  config.max_batch = config.max_q_len = 1;
  config.max_kv_len = kSlots;

  deuce::DecodePlan plan;
  if (fails(deuce::try_check(config), "check")) return 1;
  if (fails(deuce::DecodePlan::try_create(config, plan), "create")) return 1;
  const deuce::HostWorkspace workspace(plan.workspace_bytes());
  if (fails(plan.try_init_workspace(workspace.data(), workspace.size()), "init")) return 1;

  const std::vector<float> q(kHeads * kDim), cache(kSlots * kHeads * kDim, 3.0F);
  std::vector<float> out(q.size());
  deuce_decode_args args = deuce::make_args();
  args.batch = 1;
  args.kv_len_all = kSlots;
  deuce::set_rows(args, q.data(), out.data(), nullptr, 1, kHeads, kDim);
  deuce::set_contiguous(args, cache.data(), cache.data(), 1, kSlots, kHeads, kDim);
  if (fails(plan.try_run(args, workspace.data(), workspace.size()), "run")) return 1;
  std::string text;
  if (fails(plan.try_explain(text, &args), "explain")) return 1;
  const bool right = out.front() == 3.0F && out.back() == 3.0F && text.front() == '{' &&
                     !plan.take_fault().has_value();
  return right ? 0 : 1;
}
