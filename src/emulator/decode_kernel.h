// SPDX-License-Identifier: Apache-2.0
// A GPU kernel with a plan for one problem, ready to run in the emulator: what the backend,
// `deuce check` and `deuce trace` need, whichever kernel it is.
#pragma once

#include <memory>
#include <string>

#include "emulator/launch.h"
#include "plan/backend.h"

namespace deuce::emulator {

class DecodeKernel {
 public:
  virtual ~DecodeKernel() = default;
  virtual const KernelSpec& spec(const Options& options) const = 0;
  virtual WorkspaceNeed workspace() const = 0;
  /// Refuses by name what a call may not have, as the GPU backend does.
  virtual Status check_call(const Call& call) const = 0;
  virtual RunResult run(const Call& call, std::byte* workspace, const Options& options) const = 0;
  /// Beside the seed, the field of a config that a caller must set to run this very kernel again.
  virtual std::string replay_field() const = 0;
  /// A JSON object, as of BackendPlan::explain.
  virtual std::string explain() const = 0;
};

/// Refuses by name what the kernel named by `problem.emulated` cannot do.
Status check_kernel(const Problem& problem);

/// The kernel named by `problem.emulated` on a grid of `workers` blocks; check_kernel() was ok.
std::unique_ptr<DecodeKernel> make_decode_kernel(const Problem& problem, int workers);

}  // namespace deuce::emulator
