// SPDX-License-Identifier: Apache-2.0
// The Hopper kernel on the emulator; see hopper.h.
#include "emulator/hopper.h"

#include <algorithm>
#include <memory>

#include "emulator/hopper_variant.h"
#include "emulator/memory_ranges.h"

namespace deuce::emulator {
namespace {

const HopperVariant& variant_of(int shape) {
  static const std::vector<HopperVariant> table = [] {
    std::vector<HopperVariant> list;
    for (const auto& variants : {hopper_variants_64, hopper_variants_128, hopper_variants_64_fixed,
                                 hopper_variants_128_fixed}) {
      for (HopperVariant& variant : variants()) list.push_back(std::move(variant));
    }
    std::sort(list.begin(), list.end(),
              [](const HopperVariant& a, const HopperVariant& b) { return a.shape < b.shape; });
    return list;
  }();
  return table[static_cast<std::size_t>(shape)];
}

Status encode_map(const TensorMapSpec& spec, TensorMap& map) {
  if (const char* broken = spec.fault()) return invalid("k", "tensor map: {}", broken);
  map = encode(spec);
  return {};
}

}  // namespace

const KernelSpec& hopper_spec(int shape) { return variant_of(shape).spec; }

WorkspaceNeed hopper_workspace(const Problem& problem, int workers) {
  const hopper::Config& config =
      hopper::kShapes[static_cast<std::size_t>(hopper::shape_of(problem))];
  const hopper::WorkspaceParts parts = workspace_parts(config, problem, workers);
  return {.bytes = parts.total, .control_bytes = parts.control_bytes};
}

RunResult run_hopper(const Problem& problem, int workers, const Call& call, std::byte* workspace,
                     const Options& options, FaultWord* fault) {
  const HopperVariant& variant = variant_of(hopper::shape_of(problem));
  const hopper::Config& config = hopper::kShapes[static_cast<std::size_t>(variant.shape)];
  const auto params =
      std::make_unique<hopper::Params>(make_params(config, problem, call, workers, workspace));
  params->fault = fault;
  Status status = encode_map(map_spec(config, problem, call, false), params->k_map);
  if (status.ok()) status = encode_map(map_spec(config, problem, call, true), params->v_map);
  if (!status.ok()) {
    RunResult refused;
    refused.report.add({"launch", Severity::error, status.field(), status.sentence()});
    return refused;
  }
  const hopper::WorkspaceParts parts = workspace_parts(config, problem, workers);
  Launch launch;
  launch.kernel = &variant.spec;
  launch.blocks = workers;
  launch.memory = memory_ranges(problem, call);
  launch.memory.push_back({"counters", workspace, parts.control_bytes, true});
  launch.memory.push_back(
      {"partials", workspace + parts.partials, parts.partial_rows - parts.partials, true});
  launch.memory.push_back({"states of partials", workspace + parts.partial_rows,
                           parts.total - parts.partial_rows, true});
  if (fault != nullptr) launch.memory.push_back({"fault word", fault, sizeof *fault, true});
  launch.entry = [&](Machine& machine) { variant.run(machine, *params); };
  return run(launch, options);
}

}  // namespace deuce::emulator
