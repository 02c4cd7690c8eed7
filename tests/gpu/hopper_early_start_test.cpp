// SPDX-License-Identifier: Apache-2.0
// DEUCE_FLAG_PDL: the launch overlaps the kernel before it, reads q and this step's tokens only
// when that one has ended, and gives the bits of a launch that waits for everything.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "deuce/deuce.h"
#include "gpu/device_buffer.h"
#include "gpu/slow_writer.h"
#include "kernel/numbers.h"

namespace deuce::test {
namespace {

constexpr int kQLen = 2, kKvHeads = 2, kGroup = 4, kDim = 128, kSlots = 3100;
constexpr int kHeads = kKvHeads * kGroup;
constexpr std::size_t kTokenBytes = std::size_t{kKvHeads} * kDim * 2;  // of K or V of one slot
// Long over many CTAs; two tiles; only new tokens; nothing.
const std::vector<int32_t> kLengths{3000, 70, kQLen, 0};

std::vector<uint16_t> drawn(std::size_t elements, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<uint16_t> bits(elements);
  for (uint16_t& value : bits) value = from_float<Bf16>(normal(random)).bits;
  return bits;
}

/// A decode step: the right inputs, and device buffers in which what a preceding kernel writes is
/// still missing.
class Step {
 public:
  Step()
      : batch_(static_cast<int>(kLengths.size())),
        right_q_(drawn(std::size_t(batch_) * kQLen * kHeads * kDim, 1)),
        right_k_(drawn(std::size_t(batch_) * kSlots * kKvHeads * kDim, 2)),
        right_v_(drawn(std::size_t(batch_) * kSlots * kKvHeads * kDim, 3)),
        kv_len_(kLengths),
        out_(std::vector<uint16_t>(right_q_.size())),
        lse_(std::vector<float>(right_q_.size() / kDim)) {
    restore();
  }
  ~Step() {
    deuce_decode_plan_destroy(plan_);
    static_cast<void>(cudaStreamDestroy(stream_));
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  void plan(uint32_t flags) {
    deuce_decode_config config;
    deuce_decode_config_init(&config);
    config.backend = DEUCE_BACKEND_HOPPER;
    config.q_dtype = config.kv_dtype = config.out_dtype = DEUCE_BF16;
    config.num_q_heads = kHeads;
    config.num_kv_heads = kKvHeads;
    config.head_dim_qk = config.head_dim_v = kDim;
    config.max_batch = batch_;
    config.max_q_len = kQLen;
    config.max_kv_len = kSlots;
    config.causal = 1;
    config.flags = flags;
    ASSERT_EQ(deuce_decode_plan_create(&config, &plan_), DEUCE_OK) << deuce_last_error();
    std::size_t bytes = 0;
    ASSERT_EQ(deuce_decode_workspace_size(&config, &bytes, nullptr), DEUCE_OK);
    workspace_ = DeviceBuffer<uint8_t>(std::vector<uint8_t>(bytes, 0));
    ASSERT_EQ(cudaStreamCreate(&stream_), cudaSuccess);
  }

  /// All inputs as they are when the preceding kernel has ended.
  void restore() {
    q_ = DeviceBuffer(right_q_);
    k_ = DeviceBuffer(right_k_);
    v_ = DeviceBuffer(right_v_);
  }
  /// NaN in q and in the new tokens; the copies that a preceding kernel makes to repair it.
  LateCopies take_away_new_tokens() {
    LateCopies copies;
    hide(q_.data(), right_q_.size() * 2, copies);
    for (int b = 0; b < batch_; ++b) {
      if (kLengths[b] == 0) continue;
      const std::size_t first = slot(b, kLengths[b] - kQLen);
      hide(k_.data() + first, kQLen * kTokenBytes, copies);
      hide(v_.data() + first, kQLen * kTokenBytes, copies);
    }
    return copies;
  }
  /// Likewise in a token that the preceding kernel has promised not to write.
  LateCopies take_away_an_old_token() {
    LateCopies copies;
    hide(k_.data() + slot(0, 100), kTokenBytes, copies);
    return copies;
  }

  void decode() {
    deuce_decode_args args{};
    args.struct_size = sizeof args;
    args.batch = batch_;
    args.q_len = kQLen;
    args.q = q_.data();
    args.k = k_.data();
    args.v = v_.data();
    args.out = out_.data();
    args.lse = lse_.data();
    args.q_stride[0] = args.out_stride[0] = kQLen * kHeads * kDim;
    args.q_stride[1] = args.out_stride[1] = kHeads * kDim;
    args.q_stride[2] = args.out_stride[2] = kDim;
    args.lse_stride[0] = kQLen * kHeads;
    args.lse_stride[1] = kHeads;
    args.lse_stride[2] = 1;
    args.k_stride[0] = args.v_stride[0] = int64_t{kSlots} * kKvHeads * kDim;
    args.k_stride[1] = args.v_stride[1] = kKvHeads * kDim;
    args.k_stride[2] = args.v_stride[2] = kDim;
    args.kv_len = kv_len_.data();
    args.num_pages = batch_;
    args.cache_slots = kSlots;
    ASSERT_EQ(deuce_decode_run(plan_, &args, workspace_.data(), workspace_.size(), stream_of_api()),
              DEUCE_OK)
        << deuce_last_error();
  }
  std::vector<uint16_t> results() {
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    std::vector<uint16_t> all = out_.to_host();
    const std::vector<float> lse = lse_.to_host();
    const std::size_t outputs = all.size();
    all.resize(outputs + 2 * lse.size());
    std::memcpy(&all[outputs], lse.data(), 4 * lse.size());
    return all;
  }
  void poison_results() {
    ASSERT_EQ(cudaMemset(out_.data(), 0xff, 2 * out_.size()), cudaSuccess);
    ASSERT_EQ(cudaMemset(lse_.data(), 0xff, 4 * lse_.size()), cudaSuccess);
  }
  /// The preceding kernel reads the results of the step before, as late as it writes.
  void keep_old_results(LateCopies& copies) {
    old_out_ = DeviceBuffer<uint16_t>(std::vector<uint16_t>(out_.size()));
    old_lse_ = DeviceBuffer<float>(std::vector<float>(lse_.size()));
    copies.add(out_.data(), old_out_.data(), 2 * out_.size());
    copies.add(lse_.data(), old_lse_.data(), 4 * lse_.size());
  }
  bool old_results_were_poison() const {
    const std::vector<uint16_t> out = old_out_.to_host();
    const std::vector<float> lse = old_lse_.to_host();
    return std::all_of(out.begin(), out.end(), [](uint16_t bits) { return bits == 0xffff; }) &&
           std::all_of(lse.begin(), lse.end(), [](float value) { return std::isnan(value); });
  }
  cudaStream_t stream() const { return stream_; }

 private:
  deuce_stream stream_of_api() const { return reinterpret_cast<deuce_stream>(stream_); }
  static std::size_t slot(int request, int position) {
    return (std::size_t(request) * kSlots + position) * kKvHeads * kDim;
  }
  void hide(uint16_t* place, std::size_t bytes, LateCopies& copies) {
    std::vector<uint8_t> right(bytes);
    ASSERT_EQ(cudaMemcpy(right.data(), place, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
    aside_.emplace_back(right);
    ASSERT_EQ(cudaMemset(place, 0xff, bytes), cudaSuccess);
    copies.add(aside_.back().data(), place, bytes);
  }

  int batch_;
  std::vector<uint16_t> right_q_, right_k_, right_v_;
  DeviceBuffer<uint16_t> q_, k_, v_;
  DeviceBuffer<int32_t> kv_len_;
  DeviceBuffer<uint16_t> out_;
  DeviceBuffer<float> lse_, old_lse_;
  DeviceBuffer<uint16_t> old_out_;
  DeviceBuffer<uint8_t> workspace_;
  std::vector<DeviceBuffer<uint8_t>> aside_;
  deuce_decode_plan plan_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

constexpr uint32_t kEarly = DEUCE_FLAG_PDL | DEUCE_FLAG_WORKSPACE_KEPT;

std::vector<uint16_t> results_without_overlap() {
  Step step;
  step.plan(0);
  step.decode();
  return step.results();
}

TEST(HopperEarlyStart, NewTokensOfTheKernelBeforeAreSeen) {
  DEUCE_NEEDS_HOPPER();
  const std::vector<uint16_t> wanted = results_without_overlap();
  Step step;
  step.plan(kEarly);
  for (int i = 0; i < 20; ++i) {
    LateCopies copies = step.take_away_new_tokens();
    step.poison_results();
    step.keep_old_results(copies);
    ASSERT_EQ(launch_slow_writer(copies, 10'000 * (i % 5), step.stream()), cudaSuccess);
    step.decode();
    ASSERT_EQ(step.results(), wanted) << "run " << i;
    ASSERT_TRUE(step.old_results_were_poison()) << "run " << i << ": written before the wait";
  }
}

// What shows that the launch is early at all: an old token is read before the kernel before ends.
TEST(HopperEarlyStart, OldTokensAreReadWhileTheKernelBeforeRuns) {
  DEUCE_NEEDS_HOPPER();
  Step step;
  step.plan(kEarly);
  const LateCopies copies = step.take_away_an_old_token();
  ASSERT_EQ(launch_slow_writer(copies, 2'000'000, step.stream()), cudaSuccess);
  step.decode();
  EXPECT_NE(step.results(), results_without_overlap());

  Step patient;
  patient.plan(DEUCE_FLAG_WORKSPACE_KEPT);
  const LateCopies again = patient.take_away_an_old_token();
  ASSERT_EQ(launch_slow_writer(again, 2'000'000, patient.stream()), cudaSuccess);
  patient.decode();
  EXPECT_EQ(patient.results(), results_without_overlap());
}

// Launches of one plan share their workspace; each may start while the one before it merges.
TEST(HopperEarlyStart, LaunchesInARowAndInAGraphKeepTheirBits) {
  DEUCE_NEEDS_HOPPER();
  const std::vector<uint16_t> wanted = results_without_overlap();
  Step step;
  step.plan(kEarly);
  const LateCopies copies = step.take_away_new_tokens();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(step.stream(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_EQ(launch_slow_writer(copies, 20'000, step.stream()), cudaSuccess);
  for (int i = 0; i < 50; ++i) step.decode();
  ASSERT_EQ(cudaStreamEndCapture(step.stream(), &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&replay, graph, 0), cudaSuccess);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(cudaGraphLaunch(replay, step.stream()), cudaSuccess);
    ASSERT_EQ(step.results(), wanted) << "replay " << i;
  }
  static_cast<void>(cudaGraphExecDestroy(replay));
  static_cast<void>(cudaGraphDestroy(graph));
}

}  // namespace
}  // namespace deuce::test
