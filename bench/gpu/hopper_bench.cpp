// SPDX-License-Identifier: Apache-2.0
// Measures the hopper backend through the C API, each case next to the read roofs of the same
// bytes.
//   hopper_bench --set steady|latency|rows|many|fp8|all|predicted [--out FILE.json] [--replays N]
//                [--score-slots N] [--case TEXT: only cases whose name holds it]
// Every time is a CUDA graph of launches that rotate over enough caches to leave the L2 cold; one
// request of every case is compared with the reference before its time counts.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>

#include "api/validate.h"
#include "bench_cases.h"
#include "fill.h"
#include "gpu/tile_roof.h"
#include "kernel/numbers.h"
#include "sm_clocks.h"

namespace deuce::bench {
namespace {

constexpr int64_t kColdBytes = int64_t{4} * 60 * 1024 * 1024;  // four times an H200's L2

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  fmt::print(stderr, "{}: {}\n", what, cudaGetErrorString(error));
  std::exit(1);
}
void check(deuce_status status, const char* what) {
  if (status == DEUCE_OK) return;
  fmt::print(stderr, "{}: {}\n", what, deuce_last_error());
  std::exit(1);
}
void check(const Status& status, const char* what) {
  if (status.ok()) return;
  fmt::print(stderr, "{}: {}\n", what, status.sentence());
  std::exit(1);
}

template <class T>
T* device_alloc(int64_t count) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, static_cast<std::size_t>(std::max<int64_t>(count, 1)) * sizeof(T)),
        "cudaMalloc");
  return static_cast<T*>(memory);
}

template <class T>
T* device_copy(const std::vector<T>& host) {
  T* device = device_alloc<T>(static_cast<int64_t>(host.size()));
  check(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), "copy");
  return device;
}

/// Medians of per-launch microseconds over replays of a captured graph.
struct Timing {
  double median = 0, low = 0, high = 0;
  double clock_hz = 0;  // of the SMs over all replays; 0 = not read
};

int multiprocessors() {
  int device = 0, count = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), "SM count");
  return count;
}

/// Clocks of the SMs at two moments of a stream.
class ClockRate {
 public:
  ClockRate() : sms_(multiprocessors()), readings_(device_alloc<SmClock>(2 * int64_t{sms_})) {}
  ~ClockRate() { static_cast<void>(cudaFree(readings_)); }
  ClockRate(const ClockRate&) = delete;
  ClockRate& operator=(const ClockRate&) = delete;
  void read(int moment, cudaStream_t stream) {
    check(read_clocks(readings_ + moment * sms_, sms_, stream), "read_clocks");
  }
  /// Median over the SMs that were read both times; the stream has ended.
  double hz() const {
    const auto sms = static_cast<std::size_t>(sms_);
    std::vector<SmClock> all(2 * sms);
    check(cudaMemcpy(all.data(), readings_, all.size() * sizeof(SmClock), cudaMemcpyDeviceToHost),
          "clocks");
    std::vector<double> rates;
    for (std::size_t sm = 0; sm < sms; ++sm) {
      const SmClock &begin = all[sm], &end = all[sms + sm];
      if (begin.ns == 0 || end.ns <= begin.ns) continue;
      rates.push_back(static_cast<double>(end.cycles - begin.cycles) /
                      static_cast<double>(end.ns - begin.ns) * 1e9);
    }
    if (rates.empty()) return 0;
    const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
    std::nth_element(rates.begin(), middle, rates.end());
    return *middle;
  }

 private:
  int sms_;
  SmClock* readings_;
};

Timing time_graph(int launches, int replays, const std::function<void(int, cudaStream_t)>& launch) {
  cudaStream_t stream;
  check(cudaStreamCreate(&stream), "stream");
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  for (int i = 0; i < launches; ++i) launch(i, stream);
  check(cudaStreamEndCapture(stream, &graph), "end capture");
  check(cudaGraphInstantiate(&executable, graph, 0), "instantiate");
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  std::vector<double> microseconds;
  ClockRate clock;
  for (int i = -3; i < replays; ++i) {
    if (i == 0) clock.read(0, stream);
    check(cudaEventRecord(begin, stream), "record");
    check(cudaGraphLaunch(executable, stream), "graph launch");
    check(cudaEventRecord(end, stream), "record");
    check(cudaStreamSynchronize(stream), "replay");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "elapsed");
    if (i >= 0) microseconds.push_back(1e3 * milliseconds / launches);
  }
  clock.read(1, stream);
  check(cudaStreamSynchronize(stream), "clocks");
  std::sort(microseconds.begin(), microseconds.end());
  static_cast<void>(cudaGraphExecDestroy(executable));
  static_cast<void>(cudaGraphDestroy(graph));
  static_cast<void>(cudaStreamDestroy(stream));
  const auto at = [&](double share) {
    return microseconds[static_cast<std::size_t>(share *
                                                 (static_cast<double>(microseconds.size()) - 1))];
  };
  return {at(0.5), at(0.1), at(0.9), clock.hz()};
}

/// One case on the device: caches of several sets, tables, plan and workspace.
class Bench {
 public:
  explicit Bench(const BenchCase& spec);
  ~Bench();
  nlohmann::json measure(int replays);

 private:
  deuce_decode_args args_of(int set) const;
  double worst_error();
  hopper::TileRoof roof_of(int set) const;

  BenchCase spec_;
  deuce_decode_config config_;
  deuce_decode_plan plan_ = nullptr;
  int batch_, sets_ = 1, pages_ = 0, columns_ = 0, element_bytes_;
  int64_t tokens_ = 0, bytes_ = 0, slots_ = 0, pool_bytes_ = 0;
  uint8_t *k_ = nullptr, *v_ = nullptr, *q_ = nullptr, *out_ = nullptr, *workspace_ = nullptr;
  int32_t *kv_len_ = nullptr, *tables_ = nullptr;
  std::vector<int32_t> host_tables_;
  std::size_t workspace_bytes_ = 0;
  const int workers_ = multiprocessors();
};

Bench::Bench(const BenchCase& spec) : spec_(spec), batch_(static_cast<int>(spec.lengths.size())) {
  element_bytes_ = spec.kv_dtype == DEUCE_E4M3 ? 1 : 2;
  tokens_ = std::accumulate(spec.lengths.begin(), spec.lengths.end(), int64_t{0});
  bytes_ = 2 * tokens_ * spec.kv_heads * spec.head_dim * element_bytes_;
  sets_ = static_cast<int>(std::clamp<int64_t>((kColdBytes + bytes_ - 1) / bytes_, 1, 64));
  const int32_t longest = *std::max_element(spec.lengths.begin(), spec.lengths.end());
  int64_t rows = 0;
  if (spec.page_size > 0) {
    columns_ = (longest + spec.page_size - 1) / spec.page_size;
    slots_ = spec.page_size;
    for (int32_t length : spec.lengths) pages_ += (length + spec.page_size - 1) / spec.page_size;
    rows = int64_t{pages_} * sets_;
    std::vector<int32_t> ids(rows);
    std::iota(ids.begin(), ids.end(), 0);
    if (spec.shuffled) std::shuffle(ids.begin(), ids.end(), std::mt19937(7));
    host_tables_.assign(int64_t{sets_} * batch_ * columns_, 0);
    int64_t next = 0;
    for (int set = 0; set < sets_; ++set) {
      for (int b = 0; b < batch_; ++b) {
        for (int c = 0; c * spec.page_size < spec.lengths[b]; ++c) {
          host_tables_[(int64_t{set} * batch_ + b) * columns_ + c] = ids[next++];
        }
      }
    }
    tables_ = device_copy(host_tables_);
  } else {
    slots_ = longest;
    rows = int64_t{batch_} * sets_;
  }
  pool_bytes_ = rows * slots_ * spec.kv_heads * spec.head_dim * element_bytes_;
  k_ = device_alloc<uint8_t>(pool_bytes_);
  v_ = device_alloc<uint8_t>(pool_bytes_);
  check(fill_random(k_, pool_bytes_, spec.kv_dtype, 1, nullptr), "fill");
  check(fill_random(v_, pool_bytes_, spec.kv_dtype, 2, nullptr), "fill");
  const int64_t q_bytes =
      int64_t{batch_} * spec.q_len * spec.kv_heads * spec.group * spec.head_dim * 2;
  q_ = device_alloc<uint8_t>(q_bytes);
  out_ = device_alloc<uint8_t>(q_bytes);
  check(fill_random(q_, q_bytes, spec.q_dtype, 3, nullptr), "fill");
  kv_len_ = device_copy(spec.lengths);

  deuce_decode_config_init(&config_);
  config_.flags = DEUCE_FLAG_WORKSPACE_KEPT;
  config_.backend = DEUCE_BACKEND_HOPPER;
  config_.num_q_heads = spec.kv_heads * spec.group;
  config_.num_kv_heads = spec.kv_heads;
  config_.head_dim_qk = config_.head_dim_v = spec.head_dim;
  config_.q_dtype = spec.q_dtype;
  config_.kv_dtype = spec.kv_dtype;
  config_.page_size = spec.page_size;
  config_.max_batch = batch_;
  config_.max_q_len = spec.q_len;
  config_.score_slots = spec.score_slots;
  config_.causal = 1;
  config_.max_kv_len = longest;
  check(deuce_decode_plan_create(&config_, &plan_), "plan_create");
  check(deuce_decode_workspace_size(&config_, &workspace_bytes_, nullptr), "workspace_size");
  workspace_ = device_alloc<uint8_t>(static_cast<int64_t>(workspace_bytes_));
  check(deuce_decode_workspace_init(&config_, workspace_, workspace_bytes_, nullptr), "init");
  check(cudaDeviceSynchronize(), "set-up");
}

Bench::~Bench() {
  deuce_decode_plan_destroy(plan_);
  for (void* memory : {static_cast<void*>(k_), static_cast<void*>(v_), static_cast<void*>(q_),
                       static_cast<void*>(out_), static_cast<void*>(workspace_),
                       static_cast<void*>(kv_len_), static_cast<void*>(tables_)}) {
    static_cast<void>(cudaFree(memory));
  }
}

deuce_decode_args Bench::args_of(int set) const {
  const int64_t dim = spec_.head_dim, heads = spec_.kv_heads, q_heads = heads * spec_.group;
  deuce_decode_args args{};
  args.struct_size = sizeof args;
  args.batch = batch_;
  args.q_len = spec_.q_len;
  args.q = q_;
  args.k = k_;
  args.v = v_;
  args.out = out_;
  args.q_stride[0] = args.out_stride[0] = spec_.q_len * q_heads * dim;
  args.q_stride[1] = args.out_stride[1] = q_heads * dim;
  args.q_stride[2] = args.out_stride[2] = dim;
  args.k_stride[0] = slots_ * heads * dim;
  args.k_stride[1] = spec_.head_major ? dim : heads * dim;
  args.k_stride[2] = spec_.head_major ? slots_ * dim : dim;
  std::copy_n(args.k_stride, 3, args.v_stride);
  args.kv_len = kv_len_;
  if (spec_.page_size > 0) {
    args.block_table = tables_ + int64_t{set} * batch_ * columns_;
    args.block_table_stride = columns_;
    args.block_table_columns = columns_;
    args.num_pages = pages_ * sets_;
  } else {
    const int64_t offset = int64_t{set} * batch_ * args.k_stride[0] * element_bytes_;
    args.k = k_ + offset;
    args.v = v_ + offset;
    args.cache_slots = slots_;
    args.num_pages = batch_;
  }
  return args;
}

hopper::TileRoof Bench::roof_of(int set) const {
  const Result<Problem> problem = validate_config(config_);
  if (!problem.ok()) check(problem.status(), "config");
  deuce_decode_args args = args_of(set);
  check(validate_args(problem.value(), args), "args");
  hopper::TileRoof roof;
  check(hopper::make_tile_roof(problem.value(), args, workers_,
                               reinterpret_cast<std::byte*>(workspace_), roof),
        "tile roof");
  return roof;
}

/// Largest |error| over the bound scale, request and KV head 0 of set 0, against the reference.
double Bench::worst_error() {
  deuce_decode_args args = args_of(0);
  check(deuce_decode_run(plan_, &args, workspace_, workspace_bytes_, nullptr), "run");
  check(cudaDeviceSynchronize(), "run");
  const int64_t dim = spec_.head_dim, length = spec_.lengths[0],
                rows = int64_t{spec_.group} * spec_.q_len;
  const int64_t page_elements = slots_ * spec_.kv_heads * dim;
  std::vector<uint8_t> k(length * dim * element_bytes_), v(k.size());
  const int64_t run = std::min<int64_t>(slots_, length);
  for (int64_t first = 0; first < length; first += run) {
    const int64_t row = spec_.page_size > 0 ? host_tables_[first / slots_] : 0;
    const int64_t count = std::min(run, length - first);
    const auto bytes = static_cast<std::size_t>(dim * element_bytes_);
    const auto pitch = static_cast<std::size_t>(args.k_stride[1] * element_bytes_);
    const int64_t offset = row * page_elements * element_bytes_;
    check(cudaMemcpy2D(&k[first * dim * element_bytes_], bytes, k_ + offset, pitch, bytes,
                       static_cast<std::size_t>(count), cudaMemcpyDeviceToHost),
          "copy k");
    check(cudaMemcpy2D(&v[first * dim * element_bytes_], bytes, v_ + offset, pitch, bytes,
                       static_cast<std::size_t>(count), cudaMemcpyDeviceToHost),
          "copy v");
  }
  const int64_t elements = int64_t{spec_.q_len} * spec_.kv_heads * spec_.group * dim;
  std::vector<uint16_t> q(elements), out(elements);
  check(cudaMemcpy(q.data(), q_, elements * 2, cudaMemcpyDeviceToHost), "copy q");
  check(cudaMemcpy(out.data(), out_, elements * 2, cudaMemcpyDeviceToHost), "copy out");

  deuce_decode_config config = config_;
  config.flags = 0;
  config.backend = DEUCE_BACKEND_REFERENCE;
  config.score_slots = 0;
  config.num_q_heads = spec_.group;
  config.num_kv_heads = 1;
  config.page_size = 0;
  config.max_batch = 1;
  config.out_dtype = DEUCE_F32;
  config.max_kv_len = length;
  std::vector<float> expected(rows * dim);
  deuce_decode_plan plan = nullptr;
  check(deuce_decode_plan_create(&config, &plan), "reference");
  std::size_t bytes = 0;
  check(deuce_decode_workspace_size(&config, &bytes, nullptr), "reference");
  void* workspace = std::aligned_alloc(256, (bytes + 511) / 256 * 256);
  deuce_decode_args host{};
  host.struct_size = sizeof host;
  host.batch = 1;
  host.q_len = spec_.q_len;
  host.q = q.data();
  host.k = k.data();
  host.v = v.data();
  host.out = expected.data();
  std::copy_n(args.q_stride, 3, host.q_stride);
  host.out_stride[0] = rows * dim;
  host.out_stride[1] = spec_.group * dim;
  host.out_stride[2] = dim;
  host.k_stride[0] = host.v_stride[0] = length * dim;
  host.k_stride[1] = host.v_stride[1] = host.k_stride[2] = host.v_stride[2] = dim;
  host.cache_slots = host.kv_len_all = length;
  host.num_pages = 1;
  check(deuce_decode_run(plan, &host, workspace, bytes, nullptr), "reference");
  deuce_decode_plan_destroy(plan);
  std::free(workspace);
  double error = 0, norm = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t token = row / spec_.group, head = row % spec_.group;
    for (int64_t d = 0; d < dim; ++d) {
      const uint16_t bits = out[token * args.out_stride[1] + head * args.out_stride[2] + d];
      const double got = spec_.q_dtype == DEUCE_BF16 ? to_float(Bf16{bits}) : to_float(Half{bits});
      const double want = expected[row * dim + d];
      error += (got - want) * (got - want);
      norm += want * want;
    }
  }
  return std::sqrt(error / norm);
}

nlohmann::json Bench::measure(int replays) {
  const double error = worst_error();
  const int launches = std::max(sets_, bytes_ > 500'000'000 ? 4 : 16);
  std::vector<deuce_decode_args> args;
  std::vector<hopper::TileRoof> roofs;
  for (int set = 0; set < sets_; ++set) {
    args.push_back(args_of(set));
    roofs.push_back(roof_of(set));
  }
  const Timing kernel = time_graph(launches, replays, [&](int i, cudaStream_t stream) {
    check(deuce_decode_run(plan_, &args[i % sets_], workspace_, workspace_bytes_,
                           reinterpret_cast<deuce_stream>(stream)),
          "run");
  });
  const Timing tiles = time_graph(launches, replays, [&](int i, cudaStream_t stream) {
    check(hopper::launch_tile_roof(roofs[i % sets_], stream), "tile roof");
  });
  const int64_t half = bytes_ / 2 / 16384 * 16384;
  const int64_t places = std::max<int64_t>(pool_bytes_ / std::max<int64_t>(half, 16384), 1);
  const Timing linear = time_graph(2 * launches, replays, [&](int i, cudaStream_t stream) {
    check(hopper::launch_linear_roof((i % 2 == 0 ? k_ : v_) + (i / 2 % places) * half, half,
                                     workers_, stream),
          "linear roof");
  });
  const auto rate = [&](double microseconds) {
    return static_cast<double>(bytes_) / microseconds * 1e-6;
  };
  fmt::print(
      "{:44s} {:9.2f} us {:5.3f} TB/s | tile roof {:9.2f} {:5.3f} | linear {:5.3f} | share {:5.1f} "
      "% | err {:.1e}\n",
      spec_.name, kernel.median, rate(kernel.median), tiles.median, rate(tiles.median),
      rate(2 * linear.median), 100 * tiles.median / kernel.median, error);
  std::fflush(stdout);
  return {{"name", spec_.name},
          {"batch", batch_},
          {"tokens", tokens_},
          {"kv_bytes", bytes_},
          {"kv_heads", spec_.kv_heads},
          {"group", spec_.group},
          {"q_len", spec_.q_len},
          {"head_dim", spec_.head_dim},
          {"page_size", spec_.page_size},
          {"head_major", spec_.head_major},
          {"shuffled", spec_.shuffled},
          {"sets", sets_},
          {"launches", launches},
          {"replays", replays},
          {"us", kernel.median},
          {"us_p10", kernel.low},
          {"us_p90", kernel.high},
          {"clock_hz", kernel.clock_hz},
          {"tile_roof_us", tiles.median},
          {"linear_roof_us", 2 * linear.median},
          {"tb_per_s", rate(kernel.median)},
          {"tile_roof_tb_per_s", rate(tiles.median)},
          {"relative_error", error}};
}

int run(int argc, char** argv) {
  std::string set = "all", out, text;
  int replays = 20, score_slots = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--set") == 0) set = argv[i + 1];
    if (std::strcmp(argv[i], "--out") == 0) out = argv[i + 1];
    if (std::strcmp(argv[i], "--replays") == 0) replays = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--case") == 0) text = argv[i + 1];
    if (std::strcmp(argv[i], "--score-slots") == 0) score_slots = std::atoi(argv[i + 1]);
  }
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "device");
  int driver = 0;
  check(cudaDriverGetVersion(&driver), "driver");
  const Timing empty = time_graph(64, replays, [](int, cudaStream_t stream) {
    check(hopper::launch_empty(multiprocessors(), stream), "empty");
  });
  fmt::print("{} ({} SMs), empty kernel in a graph {:.2f} us\n", properties.name,
             properties.multiProcessorCount, empty.median);
  nlohmann::json report{{"schema", 1},
                        {"device", properties.name},
                        {"cuda_driver", driver},
                        {"sms", properties.multiProcessorCount},
                        {"empty_kernel_us", empty.median},
                        {"timing", "CUDA graph replay, caches rotated beyond 4 x L2, medians"},
                        {"score_slots", score_slots},
                        {"cases", nlohmann::json::array()}};
  std::vector<BenchCase> cases = cases_of(set);
  for (BenchCase& spec : cases) {
    if (spec.name.find(text) == std::string::npos) continue;
    spec.score_slots = score_slots;
    report["cases"].push_back(Bench(spec).measure(replays));
    // After every case: whoever stops the run keeps what was measured.
    if (!out.empty()) std::ofstream(out) << report.dump(1) << "\n";
  }
  return 0;
}

}  // namespace
}  // namespace deuce::bench

int main(int argc, char** argv) { return deuce::bench::run(argc, argv); }
