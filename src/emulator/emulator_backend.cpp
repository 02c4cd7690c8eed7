// SPDX-License-Identifier: Apache-2.0
// Plan of the emulator backend; see emulator_backend.h. Blocks of the grid are interleaved on the
// calling thread, so a run is the same every time; the seed chooses the schedule.
#include "emulator/emulator_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "emulator/decode_kernel.h"
#include "plan/forced_workers.h"

namespace deuce {
namespace {

/// Blocks of the emulated grid: enough to cut items, few enough to stay quick.
constexpr int kBlocks = 4;

/// Tests may ask for more; beyond sixteen only memory grows.
int blocks_for(const Problem& problem) {
  const int32_t forced = forced_workers();
  return forced > 0 ? std::min(forced, 16) : kBlocks - problem.sm_margin;
}

Status check_emulator(const Problem& problem) {
  if (problem.sm_margin < 0 || problem.sm_margin >= kBlocks) {
    return unsupported("sm_margin", "sm_margin is {}: the emulated chip has {} SMs",
                       problem.sm_margin, kBlocks);
  }
  if ((problem.flags & (DEUCE_FLAG_TRACE | DEUCE_FLAG_PDL)) != 0) {
    return unsupported("flags",
                       "flags is {:#x}: emulator takes neither DEUCE_FLAG_TRACE nor DEUCE_FLAG_PDL",
                       problem.flags);
  }
  return emulator::check_kernel(problem);
}

class EmulatorPlan final : public BackendPlan {
 public:
  explicit EmulatorPlan(const Problem& problem)
      : seed_(problem.emulator_seed),
        kernel_(emulator::make_decode_kernel(problem, blocks_for(problem))) {}

  WorkspaceNeed workspace() const override { return kernel_->workspace(); }

  Status run(const Call& call, std::byte* workspace, deuce_stream) const override {
    if (Status bad = kernel_->check_call(call); !bad.ok()) return bad;
    if (call.batch == 0) return {};
    emulator::Options options;
    // Seed 0 is the timed schedule, any other one a random schedule of that seed.
    if (seed_ != 0) options.run = {emulator::Mode::random, 0, seed_};
    options.replay =
        fmt::format("the same call with emulator_seed {}, {}", seed_, kernel_->replay_field());
    const emulator::RunResult result = kernel_->run(call, workspace, options);
    if (result.report.verdict() == emulator::Verdict::clean) return {};
    return {DEUCE_HAZARD, "", fmt::format("emulator: {}", result.report.sentence())};
  }

  std::string explain(const Call*) const override { return kernel_->explain(); }

 private:
  uint64_t seed_;
  std::unique_ptr<emulator::DecodeKernel> kernel_;
};

Result<std::unique_ptr<BackendPlan>> create_emulator(const Problem& problem) {
  Status status = check_emulator(problem);
  if (!status.ok()) return status;
  return std::unique_ptr<BackendPlan>(std::make_unique<EmulatorPlan>(problem));
}

constexpr BackendEntry kEmulator{.id = Backend::emulator,
                                 .name = "emulator",
                                 .check = check_emulator,
                                 .create = create_emulator,
                                 .checks_host_data = true};

}  // namespace

const BackendEntry& emulator_backend() { return kEmulator; }

}  // namespace deuce
