// SPDX-License-Identifier: Apache-2.0
// The Blackwell kernel on the emulator; see blackwell.h.
#include "emulator/blackwell.h"

#include <memory>
#include <utility>

#include "emulator/blackwell_variants.h"
#include "emulator/machine.h"
#include "emulator/memory_ranges.h"

namespace deuce::emulator {
namespace {

const BlackwellVariant* find(int head_dim, int score_slots, bool bf16, bool strict_order,
                             int kv_slots) {
  static const std::vector<BlackwellVariant> table = [] {
    std::vector<BlackwellVariant> list = blackwell_variants_64();
    for (BlackwellVariant& variant : blackwell_variants_128()) list.push_back(std::move(variant));
    for (BlackwellVariant& variant : blackwell_variants_rings()) list.push_back(std::move(variant));
    return list;
  }();
  for (const BlackwellVariant& variant : table) {
    if (variant.head_dim == head_dim && variant.score_slots == score_slots &&
        variant.bf16 == bf16 && variant.strict_order == strict_order &&
        variant.kv_slots == kv_slots) {
      return &variant;
    }
  }
  return nullptr;
}

}  // namespace

const KernelSpec* blackwell_spec(int head_dim, int score_slots, bool bf16, int kv_slots) {
  const BlackwellVariant* variant = find(head_dim, score_slots, bf16, false, kv_slots);
  return variant == nullptr ? nullptr : &variant->spec;
}

RunResult run_blackwell(const Problem& problem, const BlackwellPlan& plan, const Call& call,
                        std::byte* workspace, const Options& options, FaultWord* fault) {
  RunResult result;
  const BlackwellVariant* variant =
      find(problem.head_dim_v, plan.score_slots, problem.kv_type == DType::bf16,
           options.strict_order, options.kv_slots);
  if (variant == nullptr) {
    result.report.add({"launch", Severity::error, "", "this configuration is not compiled"});
    return result;
  }
  const auto params = std::make_unique<blackwell::Params>();
  const Status status = fill_params(
      problem, plan, call, workspace,
      [](const TensorMapSpec& spec, TensorMap& map) -> Status {
        if (const char* broken = spec.fault()) {
          return invalid("q", "tensor map: {}", broken);
        }
        map = encode(spec);
        return {};
      },
      *params);
  if (!status.ok()) {
    result.report.add({"launch", Severity::error, status.field(), status.sentence()});
    return result;
  }
  params->fault = fault;
  Launch launch;
  launch.kernel = &variant->spec;
  launch.blocks = plan.workers;
  launch.memory = memory_ranges(problem, call);
  launch.memory.push_back({"counters", workspace, plan.counter_bytes, true});
  launch.memory.push_back({"partials", workspace + plan.counter_bytes, plan.partial_bytes, true});
  if (fault != nullptr) launch.memory.push_back({"fault word", fault, sizeof *fault, true});
  launch.entry = [&](Machine& machine) { variant->run(machine, *params); };
  return run(launch, options);
}

}  // namespace deuce::emulator
