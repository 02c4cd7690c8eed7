// SPDX-License-Identifier: Apache-2.0
// Traced launches of the Hopper kernel; see hopper_trace.h.
#include "gpu/hopper_trace.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "gpu/cuda_status.h"
#include "gpu/device.h"
#include "gpu/hopper_traced_kernels.h"
#include "gpu/tensor_map.h"
#include "gpu/trace_capture.h"
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
  void abandon() { data_ = nullptr; }

 private:
  void* data_ = nullptr;
};

/// A kernel without and with a tracer.
struct Functions {
  int shape = 0;
  cudaError_t (*prepare)() = nullptr;
  cudaError_t (*launch)(const Params&, const LaunchOptions&) = nullptr;
  TracedFunctions traced{};
};

/// Of a row of kShapes, by its number at run time.
Functions functions_of(int shape, trace::Level level) {
  return
      []<int... kIndex>(int wanted, trace::Level recorded, std::integer_sequence<int, kIndex...>) {
    using Make = Functions (*)(trace::Level);
    static constexpr Make kTable[]{[](trace::Level of) -> Functions {
      return {kIndex, prepare_shape<kIndex>, launch_shape<kIndex>, traced_functions<kIndex>(of)};
    }...};
    return kTable[wanted](recorded);
  }
  (shape, level, std::make_integer_sequence<int, static_cast<int>(kShapes.size())>{});
}

/// Two events on one stream.
struct Span {
  cudaEvent_t begin = nullptr, end = nullptr;
  Status status;
  Span() {
    status = cuda_status(cudaEventCreate(&begin), "cudaEventCreate");
    if (status.ok()) status = cuda_status(cudaEventCreate(&end), "cudaEventCreate");
  }
  ~Span() {
    static_cast<void>(cudaEventDestroy(begin));
    static_cast<void>(cudaEventDestroy(end));
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
};

struct Times {
  double median = 0;  // seconds
  bool hangs = false;
};

/// Of `launch(i)`, i counting on from `first`, by events around each; `clear` comes before them.
Result<Times> time_of(int first, double hang_seconds, const std::function<Status()>& clear,
                      const std::function<cudaError_t(int)>& launch) {
  const Span span;
  Status status = span.status;
  std::vector<float> milliseconds;
  for (int i = 0; i < kRepeats && status.ok(); ++i) {
    if (status = clear(); !status.ok()) break;
    static_cast<void>(cudaEventRecord(span.begin));
    status = cuda_status(launch(first + i), "kernel launch");
    static_cast<void>(cudaEventRecord(span.end));
    if (!status.ok()) break;
    if (hang_seconds > 0) {
      const Result<bool> ended = trace::ends_within(span.end, hang_seconds);
      if (!ended.ok()) return ended.status();
      if (!ended.value()) return Times{.median = 0, .hangs = true};
    }
    status = cuda_status(cudaEventSynchronize(span.end), "traced kernel");
    float elapsed = 0;
    static_cast<void>(cudaEventElapsedTime(&elapsed, span.begin, span.end));
    milliseconds.push_back(elapsed);
  }
  if (!status.ok()) return status;
  std::nth_element(milliseconds.begin(), milliseconds.begin() + kRepeats / 2, milliseconds.end());
  return Times{.median = milliseconds[kRepeats / 2] * 1e-3};
}

/// Median over the slices.
double record_cycles(const std::vector<trace::Slice>& slices) {
  std::vector<uint32_t> costs;
  for (const trace::Slice& slice : slices) costs.push_back(trace::self_cost(slice.header));
  if (costs.empty()) return 0;
  const auto middle = costs.begin() + static_cast<std::ptrdiff_t>(costs.size() / 2);
  std::nth_element(costs.begin(), middle, costs.end());
  return static_cast<double>(*middle) / trace::kSelfCostRecords;
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
  DeviceMemory workspace;
  trace::TraceCapture capture;
  Status allocate(const WorkspaceParts& parts, int slices, const TraceLimits& limits) {
    const Status status = workspace.allocate(parts.total);
    return status.ok() ? capture.allocate(slices, limits.capacity, limits.policy) : status;
  }
  std::byte* work() const { return static_cast<std::byte*>(workspace.data()); }
  /// Of a launch that hangs; see TraceCapture::abandon.
  void abandon() {
    workspace.abandon();
    capture.abandon();
  }
};

/// Everything that the launches are told; both kernels may then be launched.
Status prepare(const Functions& kernel, const Problem& problem, const std::vector<Call>& calls,
               int workers, const LaunchMemory& memory, std::vector<Params>& launches) {
  const Config& config = kShapes[static_cast<std::size_t>(kernel.shape)];
  Status status;
  for (const Call& call : calls) {
    Params& params =
        launches.emplace_back(make_params(config, problem, call, workers, memory.work()));
    if (status.ok()) {
      status = encode_tensor_map(map_spec(config, problem, call, false), params.k_map);
    }
    if (status.ok()) {
      status = encode_tensor_map(map_spec(config, problem, call, true), params.v_map);
    }
  }
  if (status.ok()) status = cuda_status(kernel.prepare(), "cudaFuncSetAttribute");
  if (status.ok()) status = cuda_status(kernel.traced.prepare(), "cudaFuncSetAttribute");
  return status;
}

/// Times both kernels and keeps the records of the last traced launch, which are those of a launch
/// that hangs. The kernel without a tracer comes second: of its hang nothing could be said.
Result<TracedRun> measure(const Functions& kernel, const std::vector<Params>& launches, int workers,
                          const TraceLimits& limits, LaunchMemory& memory) {
  const LaunchOptions options{.workers = workers};
  trace::TraceCapture& capture = memory.capture;
  const auto params = [&](int i) -> const Params& {
    return launches[static_cast<std::size_t>(i) % launches.size()];
  };
  TracedRun run;
  const Result<Times> traced = time_of(
      0, limits.hang_seconds, [&] { return capture.clear(); },
      [&](int i) { return kernel.traced.launch(params(i), options, capture.buffer()); });
  if (!traced.ok()) return traced.status();
  run.hangs = traced.value().hangs;
  run.traced_seconds = traced.value().median;
  Result<std::vector<trace::Slice>> slices = run.hangs ? capture.peek() : capture.collect();
  if (run.hangs) {
    memory.abandon();
    run.unread = slices.status();
  } else if (!slices.ok()) {
    return slices.status();
  }
  if (slices.ok()) run.slices = std::move(slices.value());
  if (run.hangs) return run;
  run.clock_hz = clock_of(run.slices);
  run.record_cycles = record_cycles(run.slices);
  // Clears as well, so that both find the same in the L2 and the same pause before them.
  const Result<Times> plain = time_of(
      kRepeats, 0, [&] { return capture.clear(); },
      [&](int i) { return kernel.launch(params(i), options); });
  if (!plain.ok()) return plain.status();
  run.untraced_seconds = plain.value().median;
  return run;
}

Status check_limits(const TraceLimits& limits, int slices) {
  if (int64_t{slices} * limits.capacity * 8 >= int64_t{1} << 32) {
    return invalid("records", "--records is {}: the slices of {} warps would pass 4 GB",
                   limits.capacity, slices);
  }
  if (limits.policy == trace::Policy::keep_newest &&
      (limits.capacity & (limits.capacity - 1)) != 0) {
    return invalid("records", "--records is {}: to keep the newest it must be a power of two",
                   limits.capacity);
  }
  return {};
}

}  // namespace

Result<TracedRun> run_traced(const Problem& problem, const std::vector<Call>& calls,
                             const TraceLimits& limits) {
  if (Status bad = check_problem(problem); !bad.ok()) return bad;
  for (const Call& call : calls) {
    if (Status bad = check_call(problem, call); !bad.ok()) return bad;
  }
  const Functions kernel = functions_of(shape_of(problem), limits.level);
  const Result<DeviceInfo> device = query_device(problem.device_id, "hopper", 9, 0);
  if (!device.ok()) return device.status();
  const Config& config = kShapes[static_cast<std::size_t>(kernel.shape)];
  const int workers = std::max(device.value().multiprocessors - problem.sm_margin, 1);
  const int slices = workers * config.threads() / 32;
  if (Status bad = check_limits(limits, slices); !bad.ok()) return bad;
  LaunchMemory memory;
  std::vector<Params> launches;
  Status status = memory.allocate(workspace_parts(config, problem, workers), slices, limits);
  if (status.ok()) status = prepare(kernel, problem, calls, workers, memory, launches);
  if (!status.ok()) return status;
  Result<TracedRun> run = measure(kernel, launches, workers, limits, memory);
  if (run.ok()) run.value().device = device.value().name;
  return run;
}

}  // namespace deuce::hopper
