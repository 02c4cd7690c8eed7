// SPDX-License-Identifier: Apache-2.0
// Runs the Blackwell kernel source in the emulator: what it must know about each configuration.
#pragma once

#include "emulator/launch.h"
#include "kernel/blackwell/config.h"
#include "plan/blackwell_params.h"

namespace deuce::emulator {

/// The description of a compiled configuration, or nullptr when there is none.
const KernelSpec* blackwell_spec(const blackwell::Config& config);

/// UNSUPPORTED, with what there is, when the configuration is not compiled.
Status check_compiled(const blackwell::Config& config);

/// One run of a call. Only the arrays of the call, the workspace and the fault word (may be null)
/// exist for the kernel.
RunResult run_blackwell(const Problem& problem, const BlackwellPlan& plan, const Call& call,
                        std::byte* workspace, const Options& options, FaultWord* fault = nullptr);

}  // namespace deuce::emulator
