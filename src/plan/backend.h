// SPDX-License-Identifier: Apache-2.0
// What a backend is to the rest of the library: a name, a support check and a factory.
// The table in backends.cpp is the only list; check() and create() read the same rules, so that
// "is this supported" and "run it" cannot disagree.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "plan/problem.h"
#include "plan/status.h"

namespace deuce {

struct WorkspaceNeed {
  std::size_t bytes = 0;          // whole workspace
  std::size_t control_bytes = 0;  // leading part that is all zero at rest (api.md section 3)
};

/// An immutable plan of one backend; run() may be called from several threads at once, each with
/// its own workspace, and neither allocates nor synchronises.
class BackendPlan {
 public:
  virtual ~BackendPlan() = default;
  virtual WorkspaceNeed workspace() const = 0;
  /// The call is validated; the workspace has at least workspace().bytes, aligned to 256.
  /// The control part has been cleared unless DEUCE_FLAG_WORKSPACE_KEPT is set.
  virtual Status run(const Call& call, std::byte* workspace, deuce_stream stream) const = 0;
  /// A JSON object of backend facts: kernel, KV tile, worker count, rows per item; with a call,
  /// splits per item and predicted bytes as well.
  virtual std::string explain(const Call* call) const = 0;
};

struct BackendEntry {
  Backend id;
  const char* name;
  /// Refuses by name what this backend cannot do, before anything is built.
  Status (*check)(const Problem&);
  Result<std::unique_ptr<BackendPlan>> (*create)(const Problem&);
};

/// Every backend compiled into this library.
std::span<const BackendEntry> backends();
/// The entry, or nullptr when this library was built without it.
const BackendEntry* find_backend(Backend id);

}  // namespace deuce
