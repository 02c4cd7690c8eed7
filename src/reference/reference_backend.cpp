// SPDX-License-Identifier: Apache-2.0
// Plan of the reference backend: refusals, workspace, and the loops over requests, rows and heads.
// One thread, no tiles: num_splits and split_kv_len are met by any result within rounding.
#include "reference/reference_backend.h"

#include <algorithm>
#include <memory>

#include "plan/cache_view.h"
#include "plan/names.h"
#include "reference/attention.h"

namespace deuce {
namespace {

Status check_reference(const Problem& problem) {
  if (problem.score_slots > 1) {
    return unsupported("score_slots",
                       "score_slots is {}: reference has no score slots; pass 0 or 1",
                       problem.score_slots);
  }
  if (problem.row_replicas > 1) {
    return unsupported("row_replicas",
                       "row_replicas is {}: reference has no row replicas; pass 0 or 1",
                       problem.row_replicas);
  }
  if (problem.sm_margin != 0) {
    return unsupported("sm_margin", "sm_margin is {}: reference runs on the calling thread; pass 0",
                       problem.sm_margin);
  }
  if ((problem.flags & (DEUCE_FLAG_TRACE | DEUCE_FLAG_PDL)) != 0) {
    return unsupported(
        "flags", "flags is {:#x}: reference takes neither DEUCE_FLAG_TRACE nor DEUCE_FLAG_PDL",
        problem.flags);
  }
  if (is_fp8(problem.out_type)) {
    return unsupported("out_dtype", "out_dtype is {}: reference writes f32, f16 or bf16",
                       name_of(problem.out_type));
  }
  return {};
}

class ReferencePlan final : public BackendPlan {
 public:
  explicit ReferencePlan(const Problem& problem) : problem_(problem) {}

  WorkspaceNeed workspace() const override {
    const int64_t doubles = problem_.max_kv_len + problem_.head_dim_qk + problem_.head_dim_v +
                            std::max(problem_.head_dim_qk, problem_.head_dim_v);
    return {.bytes = static_cast<std::size_t>(doubles) * sizeof(double), .control_bytes = 0};
  }

  Status run(const Call& call, std::byte* workspace, deuce_stream) const override {
    reference::RowScratch scratch{};
    scratch.q = reinterpret_cast<double*>(workspace);
    scratch.o = scratch.q + problem_.head_dim_qk;
    scratch.key = scratch.o + problem_.head_dim_v;
    scratch.scores = scratch.key + std::max(problem_.head_dim_qk, problem_.head_dim_v);
    const CacheView view(problem_, call);
    for (int64_t request = 0; request < call.batch; ++request) {
      for (int64_t row = 0; row < view.q_len(request); ++row) {
        for (int64_t head = 0; head < problem_.num_q_heads; ++head) {
          reference::attend_row(problem_, call, request, row, head, scratch);
        }
      }
    }
    return {};
  }

  std::string explain(const Call*) const override {
    return R"({"kernel": "three loops in double precision", "workers": 1, "splits": 1})";
  }

 private:
  Problem problem_;
};

Result<std::unique_ptr<BackendPlan>> create_reference(const Problem& problem) {
  Status status = check_reference(problem);
  if (!status.ok()) return status;
  return std::unique_ptr<BackendPlan>(std::make_unique<ReferencePlan>(problem));
}

constexpr BackendEntry kReference{.id = Backend::reference,
                                  .name = "reference",
                                  .check = check_reference,
                                  .create = create_reference,
                                  .checks_host_data = true};

}  // namespace

const BackendEntry& reference_backend() { return kReference; }

}  // namespace deuce
