// SPDX-License-Identifier: Apache-2.0
// Plan of the blackwell backend: picks the kernel, owns the fault word, launches. run() allocates
// and synchronises nothing and asks the device nothing, so it can be captured in a graph.
#include "gpu/blackwell_backend.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "gpu/blackwell_launch.h"
#include "gpu/gpu_plan.h"
#include "gpu/tensor_map.h"
#include "plan/blackwell_params.h"

namespace deuce {
namespace {

using blackwell::kShapes;

struct ShapeFunctions {
  cudaError_t (*prepare)();
  cudaError_t (*launch)(const blackwell::Params&, int, cudaStream_t);
};

/// Functions of a row of kShapes, by its number at run time.
ShapeFunctions functions_of(int shape) {
  return []<int... kIndex>(int wanted, std::integer_sequence<int, kIndex...>) {
    static constexpr ShapeFunctions kTable[]{
        {blackwell::prepare_shape<kIndex>, blackwell::launch_shape<kIndex>}...};
    return kTable[wanted];
  }
  (shape, std::make_integer_sequence<int, static_cast<int>(kShapes.size())>{});
}

Result<DeviceInfo> find_device(const Problem& problem) {
  return query_device(problem.device_id, "blackwell", 10, kAnyMinor);
}

int shape_of(const Problem& problem, const BlackwellPlan& plan) {
  return blackwell::select_shape({.head_dim = problem.head_dim_v,
                                  .score_slots = plan.score_slots,
                                  .bf16 = problem.kv_type == DType::bf16,
                                  .row_replicas = plan.row_replicas});
}

Status check_problem(const Problem& problem) {
  if ((problem.flags & (DEUCE_FLAG_TRACE | DEUCE_FLAG_PDL)) != 0) {
    return unsupported("flags", "flags is {:#x}: blackwell takes DEUCE_FLAG_WORKSPACE_KEPT only",
                       problem.flags);
  }
  if (Status bad = check_blackwell(problem); !bad.ok()) return bad;
  if (shape_of(problem, plan_blackwell(problem, 1)) < 0) {
    return unsupported("row_replicas",
                       "row_replicas is {}: at head dim 128 blackwell has them with score_slots 2 "
                       "only, here {}",
                       problem.row_replicas, problem.score_slots);
  }
  return {};
}

Status check(const Problem& problem) {
  if (Status bad = check_problem(problem); !bad.ok()) return bad;
  return find_device(problem).status();
}

class BlackwellGpuPlan final : public GpuPlan {
 public:
  BlackwellGpuPlan(const Problem& problem, const DeviceInfo& device)
      : GpuPlan(problem, device),
        plan_(plan_blackwell(problem, std::max(device.multiprocessors - problem.sm_margin, 1))),
        shape_(shape_of(problem, plan_)) {}

  Status prepare() { return GpuPlan::prepare(functions_of(shape_).prepare); }

  WorkspaceNeed workspace() const override { return workspace_of(plan_); }

  Status run(const Call& call, std::byte* workspace, deuce_stream stream) const override {
    if (Status bad = check_blackwell_call(problem_, call); !bad.ok()) return bad;
    if (call.batch == 0) return {};
    blackwell::Params params;
    params.fault = fault_word();
    Status status = fill_params(problem_, plan_, call, workspace, encode_tensor_map, params);
    if (!status.ok()) return status;
    const DeviceScope scope(device_.id);
    if (!scope.status().ok()) return scope.status();
    auto* cuda_stream = reinterpret_cast<cudaStream_t>(stream);
    if (Status bad = clear_control(workspace, cuda_stream); !bad.ok()) return bad;
    return cuda_status(functions_of(shape_).launch(params, plan_.workers, cuda_stream),
                       "kernel launch");
  }

  std::string explain(const Call*) const override {
    return fmt::format(
        R"({{"kernel": "blackwell", "head_dim": {}, "score_slots": {}, "row_replicas": {}, )"
        R"("kv_tile": 128, "row_tile": {}, "workers": {}, "device": "{}", "run_on_silicon_by_us": false}})",
        problem_.head_dim_v, plan_.score_slots, plan_.row_replicas, plan_.shape.row_tile,
        plan_.workers, device_.name);
  }

 private:
  BlackwellPlan plan_;
  int shape_;
};

Result<std::unique_ptr<BackendPlan>> create(const Problem& problem) {
  if (Status bad = check_problem(problem); !bad.ok()) return bad;
  return create_gpu_plan<BlackwellGpuPlan>(problem, find_device(problem));
}

Status clear_on_device(const Problem& problem, std::byte* memory, std::size_t bytes,
                       deuce_stream stream) {
  return clear_memory(find_device(problem), memory, bytes, stream);
}

constexpr BackendEntry kBlackwell{.id = Backend::blackwell,
                                  .name = "blackwell",
                                  .check = check,
                                  .create = create,
                                  .checks_host_data = false,
                                  .clear = clear_on_device};

}  // namespace

const BackendEntry& blackwell_backend() { return kBlackwell; }

}  // namespace deuce
