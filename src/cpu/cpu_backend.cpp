// SPDX-License-Identifier: Apache-2.0
// Plan of the CPU backend: refusals, workspace, and a run as a job of the thread pool.
#include "cpu/cpu_backend.h"

#include <fmt/format.h>

#include <memory>
#include <new>
#include <system_error>

#include "cpu/kernels.h"
#include "cpu/layout.h"
#include "cpu/pool.h"
#include "cpu/worker.h"
#include "plan/forced_workers.h"
#include "plan/names.h"

namespace deuce {
namespace {

constexpr int kLargestHeadDim = 256, kHeadDimStep = 8;

Status check_head_dim(const char* field, int head_dim) {
  const bool fits = head_dim > 0 && head_dim <= kLargestHeadDim;
  if (fits && head_dim % kHeadDimStep == 0) return {};
  return unsupported(field, "{} is {}: cpu takes multiples of {} up to {}", field, head_dim,
                     kHeadDimStep, kLargestHeadDim);
}

Status check_cpu(const Problem& problem) {
  if (Status bad = check_head_dim("head_dim_qk", problem.head_dim_qk); !bad.ok()) return bad;
  if (Status bad = check_head_dim("head_dim_v", problem.head_dim_v); !bad.ok()) return bad;
  if (problem.score_slots > 1) {
    return unsupported("score_slots", "score_slots is {}: cpu has no score slots; pass 0 or 1",
                       problem.score_slots);
  }
  if (problem.row_replicas > 1) {
    return unsupported("row_replicas", "row_replicas is {}: cpu has no row replicas; pass 0 or 1",
                       problem.row_replicas);
  }
  if ((problem.flags & (DEUCE_FLAG_TRACE | DEUCE_FLAG_PDL)) != 0) {
    return unsupported("flags",
                       "flags is {:#x}: cpu takes neither DEUCE_FLAG_TRACE nor DEUCE_FLAG_PDL",
                       problem.flags);
  }
  if (is_fp8(problem.out_type)) {
    return unsupported("out_dtype", "out_dtype is {}: cpu writes f32, f16 or bf16",
                       name_of(problem.out_type));
  }
  return {};
}

class CpuPlan final : public BackendPlan {
 public:
  CpuPlan(const Problem& problem, const cpu::Kernels& kernels, std::shared_ptr<cpu::Pool> pool)
      : problem_(problem),
        kernels_(kernels),
        pool_(std::move(pool)),
        layout_(problem, kernels, std::max(1, pool_->threads() - problem.sm_margin),
                forced_workers()) {}

  WorkspaceNeed workspace() const override {
    return {.bytes = layout_.bytes(), .control_bytes = layout_.control_bytes()};
  }

  Status run(const Call& call, std::byte* workspace, deuce_stream) const override {
    if (call.batch == 0) return {};
    const cpu::Run run(problem_, kernels_, layout_, call, workspace);
    cpu::Job job;
    job.context = const_cast<cpu::Run*>(&run);  // only ever used as const again, in the next line
    job.body = [](void* context, int participant, int task) {
      static_cast<const cpu::Run*>(context)->work(participant, task);
    };
    job.tasks = run.workers();
    job.participants = layout_.threads();
    pool_->run(job);
    return {};
  }

  std::string explain(const Call* call) const override {
    const cpu::Cut cut =
        call == nullptr ? cpu::Cut{cpu::widest_bundle(problem_), {}, 0} : layout_.cut(*call);
    std::string text =
        fmt::format(R"({{"kernel": "cpu {}", "threads": {}, "workers": {}, "kv_tile": {}, )"
                    R"("kv_heads_per_item": {}, "rows_per_item": {})",
                    kernels_.name, layout_.threads(), layout_.max_workers(), cpu::kScheduleTile,
                    cut.bundle.heads, cut.bundle.row_tile);
    if (call != nullptr) text += call_facts(cut);
    return text + "}";
  }

 private:
  std::string call_facts(const cpu::Cut& cut) const {
    const int64_t tile_bytes = int64_t{cpu::kScheduleTile} * cut.bundle.heads *
                               (problem_.head_dim_qk + problem_.head_dim_v) *
                               dtype_bytes(problem_.kv_type);
    return fmt::format(R"(, "workers_used": {}, "tiles": {}, "kv_bytes_at_most": {})",
                       cut.shape.workers, cut.total, cut.total * tile_bytes);
  }

  Problem problem_;
  const cpu::Kernels& kernels_;
  std::shared_ptr<cpu::Pool> pool_;
  cpu::Layout layout_;
};

Result<std::unique_ptr<BackendPlan>> create_cpu(const Problem& problem) {
  Status status = check_cpu(problem);
  if (!status.ok()) return status;
  try {
    return std::unique_ptr<BackendPlan>(
        std::make_unique<CpuPlan>(problem, cpu::chosen_kernels(), cpu::Pool::get()));
  } catch (const std::system_error& error) {
    return Status(DEUCE_RUNTIME_ERROR, "", fmt::format("cannot start threads: {}", error.what()));
  }
}

constexpr BackendEntry kCpu{.id = Backend::cpu,
                            .name = "cpu",
                            .check = check_cpu,
                            .create = create_cpu,
                            .checks_host_data = true};

}  // namespace

const BackendEntry& cpu_backend() { return kCpu; }

}  // namespace deuce
