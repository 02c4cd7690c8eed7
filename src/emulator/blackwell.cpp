// SPDX-License-Identifier: Apache-2.0
// The Blackwell kernel on the emulator; see blackwell.h.
#include "emulator/blackwell.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "emulator/blackwell_variants.h"
#include "emulator/machine.h"
#include "emulator/memory_ranges.h"

namespace deuce::emulator {
namespace {

const BlackwellVariant* find(const blackwell::Config& config) {
  static const std::vector<BlackwellVariant> table = [] {
    std::vector<BlackwellVariant> list;
    for (const auto& variants : {blackwell_variants_64, blackwell_variants_128,
                                 blackwell_variants_64_replicas, blackwell_variants_128_replicas,
                                 blackwell_variants_rings, blackwell_variants_rings_replicas}) {
      for (BlackwellVariant& variant : variants()) list.push_back(std::move(variant));
    }
    return list;
  }();
  const auto found = std::find_if(table.begin(), table.end(), [&](const BlackwellVariant& variant) {
    return variant.config == config;
  });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

const KernelSpec* blackwell_spec(const blackwell::Config& config) {
  const BlackwellVariant* variant = find(config);
  return variant == nullptr ? nullptr : &variant->spec;
}

Status check_compiled(const blackwell::Config& config) {
  if (blackwell_spec(config) != nullptr) return {};
  if (config.score_slots < 1 || config.score_slots > 3) {
    return invalid("score_slots", "score_slots is {}: it must be 1, 2 or 3", config.score_slots);
  }
  if (config.row_replicas != 1 && config.row_replicas != 2 && config.row_replicas != 4) {
    return invalid("row_replicas", "row_replicas is {}: it must be 1, 2 or 4", config.row_replicas);
  }
  if (config.strict_order) {
    return unsupported("strict_order",
                       "strict_order: the kernel is compiled with it for head_dim 64, bf16 and "
                       "score_slots 2 and 3");
  }
  return unsupported("head_dim", "head_dim is {}: compiled are 64 and 128", config.head_dim);
}

RunResult run_blackwell(const Problem& problem, const BlackwellPlan& plan, const Call& call,
                        std::byte* workspace, const Options& options, FaultWord* fault) {
  RunResult result;
  const BlackwellVariant* variant = find({.head_dim = problem.head_dim_v,
                                          .score_slots = plan.score_slots,
                                          .bf16 = problem.kv_type == DType::bf16,
                                          .strict_order = options.strict_order,
                                          .kv_slots = options.kv_slots,
                                          .row_replicas = plan.row_replicas});
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
