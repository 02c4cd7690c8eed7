// SPDX-License-Identifier: Apache-2.0
// Plan of the hopper backend: picks the kernel, owns the fault word, launches. run() allocates and
// synchronises nothing and asks the device nothing, so it can be captured in a graph.
#include "gpu/hopper_backend.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "gpu/cuda_status.h"
#include "gpu/device.h"
#include "gpu/hopper_launch.h"
#include "gpu/hopper_params.h"
#include "gpu/mapped_fault_word.h"
#include "gpu/tensor_map.h"

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

int shape_of(const Problem& problem) {
  return hopper::select_shape(problem.head_dim_qk, hopper::element_of(problem),
                              int64_t{problem.group} * problem.max_q_len);
}

int workers_of(const Problem& problem, const DeviceInfo& device) {
  return std::max(device.multiprocessors - problem.sm_margin, 1);
}

Result<DeviceInfo> find_device(const Problem& problem) {
  Result<DeviceInfo> device = query_device(problem.device_id, "hopper");
  if (!device.ok()) return device;
  const DeviceInfo& info = device.value();
  if (info.major != 9 || info.minor != 0) {
    return Status{DEUCE_NO_DEVICE, "device_id",
                  fmt::format("device {} is {} (compute capability {}.{}): hopper needs 9.0",
                              info.id, info.name, info.major, info.minor)};
  }
  return device;
}

Status check_hopper(const Problem& problem) {
  if (Status bad = hopper::check_problem(problem); !bad.ok()) return bad;
  return find_device(problem).status();
}

class HopperPlan final : public BackendPlan {
 public:
  HopperPlan(const Problem& problem, const DeviceInfo& device)
      : problem_(problem),
        device_(device),
        shape_(shape_of(problem)),
        workers_(workers_of(problem, device)) {}

  Status prepare() {
    const DeviceScope scope(device_.id);
    if (!scope.status().ok()) return scope.status();
    if (Status bad = cuda_status(functions_of(shape_).prepare(), "cudaFuncSetAttribute");
        !bad.ok()) {
      return bad;
    }
    return fault_.allocate();
  }

  WorkspaceNeed workspace() const override {
    const hopper::WorkspaceParts parts = hopper::workspace_parts(config(), workers_);
    return {.bytes = parts.total, .control_bytes = parts.control_bytes};
  }

  Status run(const Call& call, std::byte* workspace, deuce_stream stream) const override {
    if (Status bad = hopper::check_call(problem_, call); !bad.ok()) return bad;
    hopper::Params params = hopper::make_params(config(), problem_, call, workers_, workspace);
    params.fault = fault_.device();
    Status status =
        encode_tensor_map(hopper::map_spec(config(), problem_, call, false), params.k_map);
    if (!status.ok()) return status;
    status = encode_tensor_map(hopper::map_spec(config(), problem_, call, true), params.v_map);
    if (!status.ok()) return status;
    const DeviceScope scope(device_.id);
    if (!scope.status().ok()) return scope.status();
    auto* cuda_stream = reinterpret_cast<cudaStream_t>(stream);
    if ((problem_.flags & DEUCE_FLAG_WORKSPACE_KEPT) == 0) {
      const cudaError_t error = cudaMemsetAsync(
          workspace, 0, hopper::workspace_parts(config(), workers_).control_bytes, cuda_stream);
      if (error != cudaSuccess) return cuda_status(error, "cudaMemsetAsync");
    }
    return cuda_status(
        functions_of(shape_).launch(params, {.workers = workers_, .stream = cuda_stream}),
        "kernel launch");
  }

  std::string explain(const Call*) const override {
    const Config& shape = config();
    return fmt::format(
        R"({{"kernel": "hopper", "head_dim": {}, "rows_per_item": {}, "kv_tile": {}, )"
        R"("streams": {}, "ring_stages": {}, "ring_bytes": {}, "workers": {}, "threads": {}, )"
        R"("box_rows": {}, "l2_promotion_bytes": 128, "device": "{}"}})",
        shape.head_dim, shape.rows(), hopper::kTileTokens, shape.streams, shape.stages,
        2 * shape.stages * shape.tile_bytes(), workers_, shape.threads(),
        hopper::box_rows_of(problem_), device_.name);
  }

  bool take_fault(deuce_fault& fault) const override { return fault_.take(fault); }

 private:
  const Config& config() const { return kShapes[static_cast<std::size_t>(shape_)]; }

  Problem problem_;
  DeviceInfo device_;
  int shape_;
  int workers_;
  MappedFaultWord fault_;
};

Result<std::unique_ptr<BackendPlan>> create_hopper(const Problem& problem) {
  if (Status bad = hopper::check_problem(problem); !bad.ok()) return bad;
  Result<DeviceInfo> device = find_device(problem);
  if (!device.ok()) return device.status();
  auto plan = std::make_unique<HopperPlan>(problem, device.value());
  if (Status bad = plan->prepare(); !bad.ok()) return bad;
  return std::unique_ptr<BackendPlan>(std::move(plan));
}

Status clear_on_device(const Problem& problem, std::byte* memory, std::size_t bytes,
                       deuce_stream stream) {
  Result<DeviceInfo> device = find_device(problem);
  if (!device.ok()) return device.status();
  return clear_memory(device.value(), memory, bytes, stream);
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
