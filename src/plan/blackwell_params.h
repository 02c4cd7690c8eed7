// SPDX-License-Identifier: Apache-2.0
// From a validated problem and call to the parameters of the Blackwell kernel: tensor maps, work
// shape, workspace. Shared by the launchers of src/gpu and src/emulator, which differ in how a map
// is encoded and in nothing else.
#pragma once

#include <functional>

#include "kernel/blackwell/params.h"
#include "plan/backend.h"
#include "plan/tensor_map_spec.h"

namespace deuce {

/// Refuses by name what the kernel cannot do. The same for GPU and emulator.
Status check_blackwell(const Problem& problem);
/// Refuses by name addresses and strides that tensor maps and 16-byte stores cannot take.
Status check_blackwell_call(const Problem& problem, const Call& call);

/// What a plan fixes once: work shape without batch, partial numbering, workspace parts.
struct BlackwellPlan {
  int workers = 1;
  int score_slots = 2, row_replicas = 1;
  int query_tokens = 1;  // tokens of a row tile
  WorkShape shape;
  PartialMap partials;
  std::size_t counter_bytes = 0, partial_bytes = 0;
};
BlackwellPlan plan_blackwell(const Problem& problem, int workers);
WorkspaceNeed workspace_of(const BlackwellPlan& plan);

using EncodeMap = std::function<Status(const TensorMapSpec&, TensorMap&)>;

/// Fills `params` for one run, but for the fault word. Reads no device memory.
Status fill_params(const Problem& problem, const BlackwellPlan& plan, const Call& call,
                   std::byte* workspace, const EncodeMap& encode, blackwell::Params& params);

}  // namespace deuce
