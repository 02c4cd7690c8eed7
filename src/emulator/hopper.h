// SPDX-License-Identifier: Apache-2.0
// Runs the Hopper kernel source in the emulator: what it must know about each configuration.
#pragma once

#include "emulator/launch.h"
#include "plan/backend.h"
#include "plan/hopper_params.h"

namespace deuce::emulator {

/// The description of a row of hopper::kShapes.
const KernelSpec& hopper_spec(int shape);

/// Memory of a run of `workers` CTAs.
WorkspaceNeed hopper_workspace(const Problem& problem, int workers);

/// One run of a call that check_problem() and check_call() accept. Only the arrays of the call, the
/// workspace and the fault word (may be null) exist for the kernel.
RunResult run_hopper(const Problem& problem, int workers, const Call& call, std::byte* workspace,
                     const Options& options, FaultWord* fault = nullptr);

}  // namespace deuce::emulator
