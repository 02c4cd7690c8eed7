// SPDX-License-Identifier: Apache-2.0
// Plan of the emulator backend; see emulator_backend.h. Blocks of the grid are interleaved on the
// calling thread, so a run is the same every time; the seed chooses the schedule.
#include "emulator/emulator_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "emulator/blackwell.h"
#include "plan/forced_workers.h"
#include "plan/names.h"

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
  if (problem.emulated != Backend::blackwell) {
    return unsupported("emulated_backend",
                       "emulated_backend is {}: the emulator runs blackwell only so far",
                       name_of(problem.emulated));
  }
  if (problem.sm_margin < 0 || problem.sm_margin >= kBlocks) {
    return unsupported("sm_margin", "sm_margin is {}: the emulated chip has {} SMs",
                       problem.sm_margin, kBlocks);
  }
  if ((problem.flags & (DEUCE_FLAG_TRACE | DEUCE_FLAG_PDL)) != 0) {
    return unsupported("flags",
                       "flags is {:#x}: emulator takes neither DEUCE_FLAG_TRACE nor DEUCE_FLAG_PDL",
                       problem.flags);
  }
  return check_blackwell(problem);
}

class EmulatorPlan final : public BackendPlan {
 public:
  explicit EmulatorPlan(const Problem& problem)
      : problem_(problem), plan_(plan_blackwell(problem, blocks_for(problem))) {}

  WorkspaceNeed workspace() const override { return workspace_of(plan_); }

  Status run(const Call& call, std::byte* workspace, deuce_stream) const override {
    if (Status bad = check_blackwell_call(problem_, call); !bad.ok()) return bad;
    if (call.batch == 0) return {};
    emulator::Options options;
    // Seed 0 is the timed schedule, any other one a random schedule of that seed.
    if (problem_.emulator_seed != 0) {
      options.run = {emulator::Mode::random, 0, problem_.emulator_seed};
    }
    options.replay = fmt::format("the same call with emulator_seed {}, row_replicas {}",
                                 problem_.emulator_seed, plan_.row_replicas);
    const emulator::RunResult result =
        emulator::run_blackwell(problem_, plan_, call, workspace, options);
    if (result.report.verdict() == emulator::Verdict::clean) return {};
    return {DEUCE_HAZARD, "", fmt::format("emulator: {}", result.report.sentence())};
  }

  std::string explain(const Call*) const override {
    return fmt::format(
        R"({{"kernel": "blackwell", "head_dim": {}, "score_slots": {}, "row_replicas": {}, )"
        R"("kv_tile": 128, "row_tile": {}, "workers": {}}})",
        problem_.head_dim_v, plan_.score_slots, plan_.row_replicas, plan_.shape.row_tile,
        plan_.workers);
  }

 private:
  Problem problem_;
  BlackwellPlan plan_;
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
