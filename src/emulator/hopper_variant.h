// SPDX-License-Identifier: Apache-2.0
// Makes the description and the entry of one Hopper kernel, a row of hopper::kShapes; included by
// the files that instantiate the kernel and by hopper.cpp, which collects them.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "emulator/machine.h"
#include "kernel/hopper/kernel.h"
#include "plan/hopper_shapes.h"
#include "plan/names.h"

namespace deuce::emulator {

struct HopperVariant {
  int shape;  // row of hopper::kShapes
  KernelSpec spec;
  void (*run)(Machine&, const hopper::Params&);
};

/// Every row of one head dimension, in files by whether pieces end at fixed borders.
std::vector<HopperVariant> hopper_variants_64();
std::vector<HopperVariant> hopper_variants_128();
std::vector<HopperVariant> hopper_variants_64_fixed();
std::vector<HopperVariant> hopper_variants_128_fixed();

/// Where the code of this kernel stands that is neither an operation nor charged. A test runs into
/// each entry, so that none silently stops to apply when a file gets another name.
inline std::vector<PlainCode> hopper_plain_code() {
  std::vector<PlainCode> list{
      {"hopper/schedule.h", OpKind::load_constant, &cost::kScheduleRequests, true},
      {"hopper/queries.h", OpKind::load_global, &cost::kQueryLoad},
      {"hopper/load.h", OpKind::arrive_expect, &cost::kTileIssue}};
  for (const OpKind kind : {OpKind::shuffle_index, OpKind::shuffle_xor, OpKind::shuffle_up}) {
    list.push_back({"hopper/schedule.h", kind, &cost::kScheduleStep});
    if (kind != OpKind::shuffle_up) list.push_back({"hopper/states.h", kind, &cost::kMergeStep});
  }
  return list;
}

template <hopper::Config kConfig>
KernelSpec hopper_kernel_spec() {
  using Storage = hopper::SharedStorage<kConfig>;
  constexpr const char* kElements[] = {"bf16", "f16", "e4m3"};
  KernelSpec spec;
  spec.name = fmt::format("hopper hd{} {} rows {}{}{}", kConfig.head_dim,
                          kElements[static_cast<std::size_t>(kConfig.element)], kConfig.rows(),
                          kConfig.score_slots > 1 ? " slots 2" : "",
                          kConfig.fixed_borders ? " fixed borders" : "");
  spec.chip = Chip::h200;
  spec.threads = kConfig.threads();
  spec.shared_bytes = sizeof(Storage);
  spec.launch_registers = hopper::launch_registers(kConfig.threads());
  spec.roles.assign(hopper::kRoles<kConfig>.begin(), hopper::kRoles<kConfig>.end());
  spec.edges.assign(hopper::kEdges<kConfig>.begin(), hopper::kEdges<kConfig>.end());
  spec.shared_ranges = {
      {"K tile", offsetof(Storage, k), kConfig.tile_bytes(), kConfig.stages},
      {"V tile", offsetof(Storage, v), kConfig.tile_bytes(), kConfig.stages, true},
      {"stream state", offsetof(Storage, state), sizeof(hopper::StreamState<kConfig>),
       kConfig.states()},
      {"row states", offsetof(Storage, rows), sizeof(Storage::rows) / kConfig.states(),
       kConfig.states()},
      {"parked", offsetof(Storage, parked), sizeof(Storage::parked)},
      {"poisoned", offsetof(Storage, poisoned), sizeof(uint32_t), kConfig.stages}};
  spec.plain_code = hopper_plain_code();
  spec.loads_ahead = !kConfig.moves_registers();  // fitted, as its declaration says
  spec.traces_operands = true;
  return spec;
}

template <int kShape>
HopperVariant hopper_variant() {
  constexpr hopper::Config kConfig = hopper::kShapes[kShape];
  return {kShape, hopper_kernel_spec<kConfig>(),
          [](Machine& machine, const hopper::Params& params) {
            hopper::decode_kernel<hopper::kShapes[kShape]>(machine, params);
          }};
}

/// The rows of kShapes with a head dimension, with or without fixed borders.
template <int kHeadDim, bool kFixedBorders>
std::vector<HopperVariant> hopper_variants() {
  std::vector<HopperVariant> list;
  const auto add = [&]<int kShape>(std::integral_constant<int, kShape>) {
    constexpr hopper::Config kConfig = hopper::kShapes[kShape];
    if constexpr (kConfig.head_dim == kHeadDim && kConfig.fixed_borders == kFixedBorders) {
      list.push_back(hopper_variant<kShape>());
    }
  };
  [&]<int... kShape>(std::integer_sequence<int, kShape...>) {
    (add(std::integral_constant<int, kShape>{}), ...);
  }
  (std::make_integer_sequence<int, static_cast<int>(hopper::kShapes.size())>{});
  return list;
}

}  // namespace deuce::emulator
