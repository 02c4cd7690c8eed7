// SPDX-License-Identifier: Apache-2.0
// From a validated problem and call to the arguments of a Hopper launch: pure functions of the
// host.
#pragma once

#include "kernel/hopper/config.h"
#include "kernel/hopper/params.h"
#include "plan/problem.h"
#include "plan/status.h"
#include "plan/tensor_map_spec.h"

namespace deuce::hopper {

/// Refuses by name what this backend cannot do, whatever the device.
Status check_problem(const Problem& problem);
/// Refuses by name what a call may not have on this backend: strides and scales.
Status check_call(const Problem& problem, const Call& call);

Element element_of(const Problem& problem);
/// The row of kShapes that serves a problem.
int shape_of(const Problem& problem);

/// For people: the matrix instructions that a kernel uses.
constexpr const char* products_of(const Config& shape) {
  return shape.engine == Engine::warpgroup ? "wgmma" : "mma.sync";
}

/// How the workspace is divided, in bytes from its start.
struct WorkspaceParts {
  std::size_t control_bytes = 0, partials = 0, partial_rows = 0, total = 0;
  int64_t slots = 0;  // of partials
  int max_row_tiles = 1, tree_levels = 0;
};
WorkspaceParts workspace_parts(const Config& shape, const Problem& problem, int workers);

/// Height of the TMA boxes of a cache: a power of two that divides the page.
int box_rows_of(const Problem& problem);

TensorMapSpec map_spec(const Config& shape, const Problem& problem, const Call& call, bool is_v);

/// Everything but the tensor maps and the fault word.
Params make_params(const Config& shape, const Problem& problem, const Call& call, int workers,
                   std::byte* workspace);

}  // namespace deuce::hopper
