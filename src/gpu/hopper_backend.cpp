// SPDX-License-Identifier: Apache-2.0
// Plan of the hopper backend: picks the kernel, owns the fault word, launches. run() allocates and
// synchronises nothing and asks the device nothing, so it can be captured in a graph.
#include "gpu/hopper_backend.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "gpu/gpu_plan.h"
#include "gpu/hopper_launch.h"
#include "gpu/tensor_map.h"
#include "plan/hopper_params.h"

namespace deuce {
namespace {

using hopper::Config;
using hopper::kShapes;

struct ShapeFunctions {
  cudaError_t (*prepare)();
  cudaError_t (*launch)(const hopper::Params&, const hopper::LaunchOptions&);
};

/// Functions of a row of kShapes, by its number at run time.
ShapeFunctions functions_of(int shape) {
  return []<int... kIndex>(int wanted, std::integer_sequence<int, kIndex...>) {
    static constexpr ShapeFunctions kTable[]{
        {hopper::prepare_shape<kIndex>, hopper::launch_shape<kIndex>}...};
    return kTable[wanted];
  }
  (shape, std::make_integer_sequence<int, static_cast<int>(kShapes.size())>{});
}

int workers_of(const Problem& problem, const DeviceInfo& device) {
  return std::max(device.multiprocessors - problem.sm_margin, 1);
}

Result<DeviceInfo> find_device(const Problem& problem) {
  return query_device(problem.device_id, "hopper", 9, 0);
}

Status check_hopper(const Problem& problem) {
  if (Status bad = hopper::check_problem(problem); !bad.ok()) return bad;
  return find_device(problem).status();
}

class HopperPlan final : public GpuPlan {
 public:
  HopperPlan(const Problem& problem, const DeviceInfo& device)
      : GpuPlan(problem, device),
        shape_(hopper::shape_of(problem)),
        workers_(workers_of(problem, device)) {}

  Status prepare() { return GpuPlan::prepare(functions_of(shape_).prepare); }

  WorkspaceNeed workspace() const override {
    const hopper::WorkspaceParts parts = hopper::workspace_parts(config(), problem_, workers_);
    return {.bytes = parts.total, .control_bytes = parts.control_bytes};
  }

  Status run(const Call& call, std::byte* workspace, deuce_stream stream) const override {
    if (Status bad = hopper::check_call(problem_, call); !bad.ok()) return bad;
    hopper::Params params = hopper::make_params(config(), problem_, call, workers_, workspace);
    params.fault = fault_word();
    const bool starts_early = (problem_.flags & DEUCE_FLAG_PDL) != 0;
    params.starts_early = starts_early ? 1 : 0;
    Status status =
        encode_tensor_map(hopper::map_spec(config(), problem_, call, false), params.k_map);
    if (!status.ok()) return status;
    status = encode_tensor_map(hopper::map_spec(config(), problem_, call, true), params.v_map);
    if (!status.ok()) return status;
    const DeviceScope scope(device_.id);
    if (!scope.status().ok()) return scope.status();
    auto* cuda_stream = reinterpret_cast<cudaStream_t>(stream);
    if (Status bad = clear_control(workspace, cuda_stream); !bad.ok()) return bad;
    return cuda_status(
        functions_of(shape_).launch(
            params, {.workers = workers_, .stream = cuda_stream, .starts_early = starts_early}),
        "kernel launch");
  }

  std::string explain(const Call*) const override {
    const Config& shape = config();
    return fmt::format(
        R"({{"kernel": "hopper", "head_dim": {}, "rows_per_item": {}, "kv_tile": {}, )"
        R"("products": "{}", "score_slots": {}, "streams": {}, "ring_stages": {}, )"
        R"("ring_bytes": {}, "workers": {}, "threads": {}, )"
        R"("box_rows": {}, "l2_promotion_bytes": 128, "device": "{}"}})",
        shape.head_dim, shape.rows(), hopper::kTileTokens, products_of(shape), shape.score_slots,
        shape.streams, shape.stages, 2 * shape.stages * shape.tile_bytes(), workers_,
        shape.threads(), hopper::box_rows_of(problem_), device_.name);
  }

 private:
  const Config& config() const { return kShapes[static_cast<std::size_t>(shape_)]; }

  int shape_;
  int workers_;
};

Result<std::unique_ptr<BackendPlan>> create_hopper(const Problem& problem) {
  if (Status bad = hopper::check_problem(problem); !bad.ok()) return bad;
  return create_gpu_plan<HopperPlan>(problem, find_device(problem));
}

Status clear_on_device(const Problem& problem, std::byte* memory, std::size_t bytes,
                       deuce_stream stream) {
  return clear_memory(find_device(problem), memory, bytes, stream);
}

constexpr BackendEntry kHopper{.id = Backend::hopper,
                               .name = "hopper",
                               .check = check_hopper,
                               .create = create_hopper,
                               .checks_host_data = false,
                               .clear = clear_on_device};

}  // namespace

const BackendEntry& hopper_backend() { return kHopper; }

}  // namespace deuce
