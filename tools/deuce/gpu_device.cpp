// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU, launches captured in a graph and timed by events. Uses the static runtime, so
// the tool starts on a machine without a driver; open_gpu then says why there is no device.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>

#include "api/validate.h"
#include "gpu/cuda_status.h"
#include "gpu/device.h"
#include "gpu/tile_roof.h"
#include "nvml.h"
#include "plan/names.h"

namespace deuce::cli {
namespace {

/// Launches of one replay, so that the time between replays is spread over them.
constexpr std::size_t kFewestLaunches = 16;

/// Two events of a stream and what is between them.
class Stopwatch {
 public:
  Status create() {
    Status status = cuda_status(cudaEventCreate(&begin_), "cudaEventCreate");
    return status.ok() ? cuda_status(cudaEventCreate(&end_), "cudaEventCreate") : status;
  }
  ~Stopwatch() {
    if (begin_ != nullptr) static_cast<void>(cudaEventDestroy(begin_));
    if (end_ != nullptr) static_cast<void>(cudaEventDestroy(end_));
  }
  Stopwatch() = default;
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  /// Seconds of `work` on the stream, waited for.
  Result<double> time(cudaStream_t stream, const std::function<Status()>& work) const {
    Status status = cuda_status(cudaEventRecord(begin_, stream), "cudaEventRecord");
    if (status.ok()) status = work();
    if (status.ok()) status = cuda_status(cudaEventRecord(end_, stream), "cudaEventRecord");
    if (status.ok()) status = cuda_status(cudaEventSynchronize(end_), "cudaEventSynchronize");
    float milliseconds = 0;
    if (status.ok()) {
      status =
          cuda_status(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    }
    if (!status.ok()) return status;
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

/// A captured graph of launches; a sample is a replay.
class GraphRepeat final : public Repeat {
 public:
  explicit GraphRepeat(cudaStream_t stream) : stream_(stream) {}
  ~GraphRepeat() override {
    if (executable_ != nullptr) static_cast<void>(cudaGraphExecDestroy(executable_));
    if (graph_ != nullptr) static_cast<void>(cudaGraphDestroy(graph_));
  }

  Status capture(std::size_t count, const std::function<Status(std::size_t)>& launch) {
    launches_ = (std::max(kFewestLaunches, count) + count - 1) / count * count;
    if (Status status = watch_.create(); !status.ok()) return status;
    Status status = cuda_status(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
                                "cudaStreamBeginCapture");
    if (!status.ok()) return status;
    for (std::size_t i = 0; i < launches_ && status.ok(); ++i) status = launch(i % count);
    // Ends the capture whatever happened, so that the stream can be used again.
    const Status ended =
        cuda_status(cudaStreamEndCapture(stream_, &graph_), "cudaStreamEndCapture");
    if (!status.ok()) return status;
    if (!ended.ok()) return ended;
    status = cuda_status(cudaGraphInstantiate(&executable_, graph_, 0), "cudaGraphInstantiate");
    return status.ok() ? sample().status() : status;  // the first replay uploads the graph
  }

  Result<Timed> sample() override {
    const Result<double> seconds = watch_.time(stream_, [&] {
      return cuda_status(cudaGraphLaunch(executable_, stream_), "cudaGraphLaunch");
    });
    if (!seconds.ok()) return seconds.status();
    return Timed{seconds.value() / static_cast<double>(launches_), seconds.value()};
  }

 private:
  cudaStream_t stream_;
  Stopwatch watch_;
  std::size_t launches_ = 0;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

/// The tile roof of the calls, one launch each.
class TileRoofs final : public ReadRoof {
 public:
  TileRoofs(std::unique_ptr<Repeat> repeat, Memory workspace, int64_t bytes)
      : repeat_(std::move(repeat)), workspace_(std::move(workspace)), bytes_(bytes) {}
  Result<double> pass() override {
    const Result<Timed> timed = repeat_->sample();
    if (!timed.ok()) return timed.status();
    return static_cast<double>(bytes_) / timed.value().seconds;
  }

 private:
  std::unique_ptr<Repeat> repeat_;
  Memory workspace_;
  int64_t bytes_;
};

class GpuDevice final : public Device {
 public:
  GpuDevice(Backend backend, DeviceInfo info) : backend_(backend), info_(std::move(info)) {}
  ~GpuDevice() override {
    if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
  }

  Status create() {
    Status status = cuda_status(cudaSetDevice(info_.id), "cudaSetDevice");
    if (status.ok()) {
      status = cuda_status(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                           "cudaStreamCreate");
    }
    if (status.ok()) status = watch_.create();
    if (!status.ok()) return status;
    std::array<char, 32> bus{};
    if (cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), info_.id) == cudaSuccess)
      nvml_ = Nvml::open(bus.data());
    return learn_facts();
  }

  Result<Memory> allocate(std::size_t bytes) override {
    void* memory = nullptr;
    const Status status =
        cuda_status(cudaMalloc(&memory, std::max<std::size_t>(bytes, 1)), "cudaMalloc");
    if (!status.ok()) return status;
    return Memory(static_cast<std::byte*>(memory),
                  [](std::byte* block) { static_cast<void>(cudaFree(block)); });
  }

  Result<Memory> place(const void* host, std::size_t bytes) override {
    Result<Memory> memory = allocate(bytes);
    if (!memory.ok()) return memory;
    if (Status status = upload(memory.value().get(), host, bytes); !status.ok()) return status;
    return memory;
  }

  Status upload(std::byte* to, const void* host, std::size_t bytes) override {
    return copy(to, host, bytes, cudaMemcpyHostToDevice);
  }
  Status download(void* host, const std::byte* from, std::size_t bytes) override {
    return copy(host, from, bytes, cudaMemcpyDeviceToHost);
  }

  Result<double> time(const std::function<Status()>& launch) override {
    return watch_.time(stream_, launch);
  }

  Result<std::unique_ptr<Repeat>> repeat(std::size_t count,
                                         std::function<Status(std::size_t)> launch) override {
    auto repeat = std::make_unique<GraphRepeat>(stream_);
    if (Status status = repeat->capture(count, launch); !status.ok()) return status;
    return std::unique_ptr<Repeat>(std::move(repeat));
  }

  Result<std::unique_ptr<ReadRoof>> roof(const deuce_decode_config& config,
                                         const std::vector<deuce_decode_args>& calls,
                                         int64_t bytes) override {
    if (backend_ != Backend::hopper || bytes == 0) return std::unique_ptr<ReadRoof>();
    const Result<Problem> problem = validate_config(config);
    if (!problem.ok()) return problem.status();
    const int workers = std::max(info_.multiprocessors - problem.value().sm_margin, 1);
    Result<Memory> workspace = allocate(hopper::tile_roof_workspace(problem.value(), workers));
    if (!workspace.ok()) return workspace.status();
    std::vector<hopper::TileRoof> roofs;
    for (deuce_decode_args call : calls) {
      if (Status bad = validate_args(problem.value(), call); !bad.ok()) return bad;
      roofs.emplace_back();
      if (Status bad = hopper::make_tile_roof(problem.value(), call, workers,
                                              workspace.value().get(), roofs.back());
          !bad.ok())
        return bad;
    }
    Result<std::unique_ptr<Repeat>> launches = repeat(roofs.size(), [&](std::size_t i) {
      return cuda_status(hopper::launch_tile_roof(roofs[i], stream_), "tile roof");
    });
    if (!launches.ok()) return launches.status();
    return std::unique_ptr<ReadRoof>(
        std::make_unique<TileRoofs>(std::move(launches.value()), workspace.value(), bytes));
  }

  double read_roof() override {
    if (backend_ != Backend::hopper) return 0;
    constexpr int64_t kBytes = int64_t{1} << 30;
    constexpr std::size_t kPasses = 9;
    const Result<Memory> memory = allocate(kBytes);
    if (!memory.ok()) return 0;
    const auto passes = repeat(1, [&](std::size_t) {
      return cuda_status(
          hopper::launch_linear_roof(memory.value().get(), kBytes, info_.multiprocessors, stream_),
          "linear roof");
    });
    if (!passes.ok()) return 0;
    Samples samples;
    for (std::size_t i = 0; i < kPasses; ++i) {
      const Result<Timed> timed = passes.value()->sample();
      if (!timed.ok()) return 0;
      samples.sorted_s.push_back(timed.value().seconds);
    }
    std::sort(samples.sorted_s.begin(), samples.sorted_s.end());
    return static_cast<double>(kBytes) / samples.median();
  }

  std::size_t cache_bytes() const override { return facts_.l2_bytes; }
  deuce_stream stream() const override { return stream_; }
  bool keeps_workspace() const override { return true; }
  std::optional<GpuFacts> gpu() const override { return facts_; }
  std::optional<GpuClocks> clocks() const override {
    return nvml_ == nullptr ? std::nullopt : nvml_->clocks();
  }

 private:
  Status copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    if (bytes == 0) return {};
    Status status = cuda_status(cudaMemcpyAsync(to, from, bytes, kind, stream_), "cudaMemcpy");
    return status.ok() ? cuda_status(cudaStreamSynchronize(stream_), "cudaMemcpy") : status;
  }

  Status learn_facts() {
    facts_.name = info_.name;
    facts_.major = info_.major;
    facts_.minor = info_.minor;
    facts_.multiprocessors = info_.multiprocessors;
    if (nvml_ != nullptr) facts_.driver = nvml_->driver_version();
    int l2 = 0;
    Status status = cuda_status(cudaDriverGetVersion(&facts_.cuda_driver), "cudaDriverGetVersion");
    if (status.ok())
      status = cuda_status(cudaRuntimeGetVersion(&facts_.cuda_runtime), "cudaRuntimeGetVersion");
    if (status.ok()) {
      status = cuda_status(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, info_.id),
                           "cudaDeviceGetAttribute");
    }
    facts_.l2_bytes = static_cast<std::size_t>(l2);
    if (!status.ok() || backend_ != Backend::hopper) return status;
    const auto nothing = repeat(64, [&](std::size_t) {
      return cuda_status(hopper::launch_empty(info_.multiprocessors, stream_), "empty kernel");
    });
    if (!nothing.ok()) return nothing.status();
    const Result<Timed> timed = nothing.value()->sample();
    if (!timed.ok()) return timed.status();
    facts_.empty_kernel_s = timed.value().seconds;
    return {};
  }

  Backend backend_;
  DeviceInfo info_;
  GpuFacts facts_;
  cudaStream_t stream_ = nullptr;
  Stopwatch watch_;
  std::unique_ptr<Nvml> nvml_;
};

}  // namespace

Result<std::unique_ptr<Device>> open_gpu(Backend backend) {
  const bool hopper = backend == Backend::hopper;
  const Result<DeviceInfo> info =
      query_device(-1, hopper ? "hopper" : "blackwell", hopper ? 9 : 10, hopper ? 0 : kAnyMinor);
  if (!info.ok()) return info.status();
  auto device = std::make_unique<GpuDevice>(backend, info.value());
  if (Status status = device->create(); !status.ok()) return status;
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace deuce::cli
