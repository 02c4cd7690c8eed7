// SPDX-License-Identifier: Apache-2.0
// One run of the CPU backend: what all threads share, and the walk of one worker over its pieces.
// Made on the stack of BackendPlan::run(); it reads the call, the cache and the plan's layout and
// writes the results and the workspace, nothing else.
#pragma once

#include <cstddef>

#include "cpu/kernels.h"
#include "cpu/layout.h"
#include "kernel/publish.h"
#include "plan/cache_view.h"
#include "plan/problem.h"

namespace deuce::cpu {

class Run {
 public:
  Run(const Problem& problem, const Kernels& kernels, const Layout& layout, const Call& call,
      std::byte* workspace);

  int workers() const { return cut_.shape.workers; }
  /// Everything worker `worker` owns, on the scratch of a participant.
  void work(int participant, int worker) const;

 private:
  const Problem& problem_;
  const Kernels& kernels_;
  const Layout& layout_;
  const Call& call_;
  std::byte* workspace_;
  CacheView view_;
  Cut cut_;
  PartialSpace space_;
};

}  // namespace deuce::cpu
