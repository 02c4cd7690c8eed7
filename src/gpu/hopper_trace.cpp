// SPDX-License-Identifier: Apache-2.0
// Traced launches of the Hopper kernel; see hopper_trace.h.
#include "gpu/hopper_trace.h"

#include <algorithm>
#include <functional>

#include "gpu/cuda_status.h"
#include "gpu/device.h"
#include "gpu/hopper_traced_kernels.h"
#include "gpu/tensor_map.h"
#include "plan/hopper_params.h"

namespace deuce::hopper {
namespace {

constexpr int kRepeats = 21;  // of each timing; odd, for a median

class DeviceMemory {
 public:
  ~DeviceMemory() { static_cast<void>(cudaFree(data_)); }
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  Status allocate(std::size_t bytes) {
    Status status = cuda_status(cudaMalloc(&data_, std::max<std::size_t>(bytes, 1)), "cudaMalloc");
    return status.ok() ? cuda_status(cudaMemset(data_, 0, bytes), "cudaMemset") : status;
  }
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

struct Functions {
  int shape;
  cudaError_t (*prepare)();
  cudaError_t (*prepare_traced)();
  cudaError_t (*launch)(const Params&, const LaunchOptions&);
  cudaError_t (*launch_traced)(const Params&, const LaunchOptions&, const trace::Buffer&);
};

template <int kShape>
constexpr Functions functions() {
  return {kShape, prepare_shape<kShape>, prepare_traced<kShape>, launch_shape<kShape>,
          launch_traced<kShape>};
}
/// One row for each file kernels/hopper_trace_*.cu.
constexpr Functions kTraced[]{functions<0>(), functions<3>()};

const Functions* find(const Problem& problem) {
  const int wanted = shape_of(problem);
  for (const Functions& row : kTraced) {
    if (row.shape == wanted) return &row;
  }
  return nullptr;
}

/// Median seconds of a launch, by events around it.
Result<double> time_of(const std::function<cudaError_t()>& launch) {
  cudaEvent_t begin = nullptr, end = nullptr;
  Status status = cuda_status(cudaEventCreate(&begin), "cudaEventCreate");
  if (status.ok()) status = cuda_status(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<float> milliseconds;
  for (int i = 0; i < kRepeats && status.ok(); ++i) {
    static_cast<void>(cudaEventRecord(begin));
    status = cuda_status(launch(), "kernel launch");
    static_cast<void>(cudaEventRecord(end));
    if (status.ok()) status = cuda_status(cudaEventSynchronize(end), "traced kernel");
    float elapsed = 0;
    static_cast<void>(cudaEventElapsedTime(&elapsed, begin, end));
    milliseconds.push_back(elapsed);
  }
  static_cast<void>(cudaEventDestroy(begin));
  static_cast<void>(cudaEventDestroy(end));
  if (!status.ok()) return status;
  std::nth_element(milliseconds.begin(), milliseconds.begin() + kRepeats / 2, milliseconds.end());
  return milliseconds[kRepeats / 2] * 1e-3;
}

/// Copies what the warps have left.
Status collect(const trace::Buffer& buffer, int slices, TracedRun& run) {
  std::vector<trace::SliceHeader> headers(static_cast<std::size_t>(slices));
  Status status =
      cuda_status(cudaMemcpy(headers.data(), buffer.headers,
                             headers.size() * sizeof(trace::SliceHeader), cudaMemcpyDeviceToHost),
                  "cudaMemcpy");
  for (std::size_t i = 0; i < headers.size() && status.ok(); ++i) {
    trace::Slice slice;
    slice.header = headers[i];
    slice.records.resize(std::min(headers[i].wanted, headers[i].capacity));
    status = cuda_status(
        cudaMemcpy(slice.records.data(), buffer.records + i * buffer.capacity,
                   slice.records.size() * sizeof(trace::Record), cudaMemcpyDeviceToHost),
        "cudaMemcpy");
    run.slices.push_back(std::move(slice));
  }
  return status;
}

/// The SM clock while the kernel ran, from the anchors of the longest-lived warp.
double clock_of(const std::vector<trace::Slice>& slices) {
  uint64_t longest = 0;
  double hz = 0;
  for (const trace::Slice& slice : slices) {
    const trace::Anchor &begin = slice.header.begin, &end = slice.header.end;
    if (end.ns <= begin.ns || end.ns - begin.ns <= longest) continue;
    longest = end.ns - begin.ns;
    hz = static_cast<double>(end.clock - begin.clock) / static_cast<double>(longest) * 1e9;
  }
  return hz;
}

/// What a launch needs on the device beside the call's arrays.
struct LaunchMemory {
  DeviceMemory workspace, headers, records;
  Status allocate(const WorkspaceParts& parts, int slices, uint32_t capacity) {
    const auto count = static_cast<std::size_t>(slices);
    Status status = workspace.allocate(parts.total);
    if (status.ok()) status = headers.allocate(count * sizeof(trace::SliceHeader));
    if (status.ok()) status = records.allocate(count * capacity * sizeof(trace::Record));
    return status;
  }
  std::byte* work() const { return static_cast<std::byte*>(workspace.data()); }
  trace::Buffer buffer(uint32_t capacity) const {
    return {static_cast<trace::SliceHeader*>(headers.data()),
            static_cast<trace::Record*>(records.data()), capacity};
  }
};

/// Everything a launch is told; both kernels may then be launched.
Status prepare(const Functions& kernel, const Problem& problem, const Call& call, int workers,
               const LaunchMemory& memory, Params& params) {
  const Config& config = kShapes[static_cast<std::size_t>(kernel.shape)];
  params = make_params(config, problem, call, workers, memory.work());
  Status status = encode_tensor_map(map_spec(config, problem, call, false), params.k_map);
  if (status.ok()) status = encode_tensor_map(map_spec(config, problem, call, true), params.v_map);
  if (status.ok()) status = cuda_status(kernel.prepare(), "cudaFuncSetAttribute");
  if (status.ok()) status = cuda_status(kernel.prepare_traced(), "cudaFuncSetAttribute");
  return status;
}

/// Times both kernels and keeps the records of the last traced launch.
Result<TracedRun> measure(const Functions& kernel, const Params& params, int workers,
                          const trace::Buffer& buffer, int slices) {
  const LaunchOptions options{.workers = workers};
  const Result<double> plain = time_of([&] { return kernel.launch(params, options); });
  if (!plain.ok()) return plain.status();
  const Result<double> traced =
      time_of([&] { return kernel.launch_traced(params, options, buffer); });
  if (!traced.ok()) return traced.status();
  TracedRun run;
  run.untraced_seconds = plain.value();
  run.traced_seconds = traced.value();
  Status status = collect(buffer, slices, run);
  if (!status.ok()) return status;
  run.clock_hz = clock_of(run.slices);
  return run;
}

}  // namespace

Result<TracedRun> run_traced(const Problem& problem, const Call& call, uint32_t capacity) {
  if (Status bad = check_problem(problem); !bad.ok()) return bad;
  if (Status bad = check_call(problem, call); !bad.ok()) return bad;
  const Functions* kernel = find(problem);
  if (kernel == nullptr) {
    return unsupported("backend",
                       "this shape has no traced Hopper kernel: compiled are head_dim 64 and 128, "
                       "bf16, 16 rows or fewer, not cut at fixed borders");
  }
  const Result<DeviceInfo> device = query_device(problem.device_id, "hopper", 9, 0);
  if (!device.ok()) return device.status();
  const Config& config = kShapes[static_cast<std::size_t>(kernel->shape)];
  const int workers = std::max(device.value().multiprocessors - problem.sm_margin, 1);
  const int slices = workers * config.threads() / 32;
  if (int64_t{slices} * capacity * 8 >= int64_t{1} << 32) {
    return invalid("records", "--records is {}: the slices of {} warps would pass 4 GB", capacity,
                   slices);
  }
  LaunchMemory memory;
  Params params;
  Status status = memory.allocate(workspace_parts(config, problem, workers), slices, capacity);
  if (status.ok()) status = prepare(*kernel, problem, call, workers, memory, params);
  if (!status.ok()) return status;
  Result<TracedRun> run = measure(*kernel, params, workers, memory.buffer(capacity), slices);
  if (run.ok()) run.value().device = device.value().name;
  return run;
}

}  // namespace deuce::hopper
