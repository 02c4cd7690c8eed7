// SPDX-License-Identifier: Apache-2.0
// The host side of the tile roof: parameters as the backend makes them.
#include "gpu/tile_roof.h"

#include "gpu/tensor_map.h"
#include "plan/hopper_params.h"
#include "plan/hopper_shapes.h"

namespace deuce::hopper {
namespace {

int free_shape_of(const Problem& problem) {
  return select_shape(problem.head_dim_qk, element_of(problem),
                      int64_t{problem.group} * problem.max_q_len, /*fixed_borders=*/false,
                      problem.score_slots);
}

void cut_freely(Problem& problem) { problem.num_splits = problem.split_kv_len = 0; }

}  // namespace

std::size_t tile_roof_workspace(const Problem& problem, int workers) {
  Problem free = problem;
  cut_freely(free);
  return workspace_parts(kShapes[static_cast<std::size_t>(free_shape_of(free))], free, workers)
      .total;
}

Status make_tile_roof(Problem problem, const Call& call, int workers, std::byte* workspace,
                      TileRoof& roof) {
  if (Status bad = check_problem(problem); !bad.ok()) return bad;
  cut_freely(problem);
  roof.shape = free_shape_of(problem);
  roof.workers = workers;
  const Config& shape = kShapes[static_cast<std::size_t>(roof.shape)];
  roof.params = make_params(shape, problem, call, workers, workspace);
  Status status = encode_tensor_map(map_spec(shape, problem, call, false), roof.params.k_map);
  if (!status.ok()) return status;
  return encode_tensor_map(map_spec(shape, problem, call, true), roof.params.v_map);
}

}  // namespace deuce::hopper
