// SPDX-License-Identifier: Apache-2.0
// The two kernels behind one interface; see decode_kernel.h.
#include "emulator/decode_kernel.h"

#include <fmt/format.h>

#include "emulator/blackwell.h"
#include "emulator/hopper.h"
#include "plan/hopper_shapes.h"

namespace deuce::emulator {
namespace {

class BlackwellKernel final : public DecodeKernel {
 public:
  BlackwellKernel(const Problem& problem, int workers)
      : problem_(problem), plan_(plan_blackwell(problem, workers)) {}

  const KernelSpec& spec(const Options& options) const override {
    return *blackwell_spec({.head_dim = problem_.head_dim_v,
                            .score_slots = plan_.score_slots,
                            .bf16 = problem_.kv_type == DType::bf16,
                            .strict_order = options.strict_order,
                            .kv_slots = options.kv_slots,
                            .row_replicas = plan_.row_replicas});
  }
  WorkspaceNeed workspace() const override { return workspace_of(plan_); }
  Status check_call(const Call& call) const override {
    return check_blackwell_call(problem_, call);
  }
  RunResult run(const Call& call, std::byte* workspace, const Options& options) const override {
    return run_blackwell(problem_, plan_, call, workspace, options);
  }
  std::string replay_field() const override {
    return fmt::format("row_replicas {}", plan_.row_replicas);
  }
  std::string explain() const override {
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

class HopperKernel final : public DecodeKernel {
 public:
  HopperKernel(const Problem& problem, int workers) : problem_(problem), workers_(workers) {}

  const KernelSpec& spec(const Options&) const override {
    return hopper_spec(hopper::shape_of(problem_));
  }
  WorkspaceNeed workspace() const override { return hopper_workspace(problem_, workers_); }
  Status check_call(const Call& call) const override { return hopper::check_call(problem_, call); }
  RunResult run(const Call& call, std::byte* workspace, const Options& options) const override {
    return run_hopper(problem_, workers_, call, workspace, options);
  }
  std::string replay_field() const override { return "emulated_backend hopper"; }
  std::string explain() const override {
    const hopper::Config& shape =
        hopper::kShapes[static_cast<std::size_t>(hopper::shape_of(problem_))];
    return fmt::format(
        R"({{"kernel": "hopper", "head_dim": {}, "rows_per_item": {}, "kv_tile": {}, )"
        R"("products": "{}", "score_slots": {}, "streams": {}, "ring_stages": {}, )"
        R"("box_rows": {}, "workers": {}, "threads": {}}})",
        shape.head_dim, shape.rows(), hopper::kTileTokens, hopper::products_of(shape),
        shape.score_slots, shape.streams, shape.stages, hopper::box_rows_of(problem_), workers_,
        shape.threads());
  }

 private:
  Problem problem_;
  int workers_;
};

}  // namespace

Status check_kernel(const Problem& problem) {
  return problem.emulated == Backend::hopper ? hopper::check_problem(problem)
                                             : check_blackwell(problem);
}

std::unique_ptr<DecodeKernel> make_decode_kernel(const Problem& problem, int workers) {
  if (problem.emulated == Backend::hopper) return std::make_unique<HopperKernel>(problem, workers);
  return std::make_unique<BlackwellKernel>(problem, workers);
}

}  // namespace deuce::emulator
