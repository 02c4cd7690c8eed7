// SPDX-License-Identifier: Apache-2.0
// What a backend is to the rest of the library: a name, a support check and a factory.
// The table in src/api/backends.cpp is the only list; check() and create() read the same rules, so
// that "is this supported" and "run it" cannot disagree.
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
  std::size_t control_bytes = 0;  // leading part that is all zero at rest
};

/// An immutable plan of one backend; run() may be called from several threads at once, each with
/// its own workspace, and neither allocates nor synchronises.
class BackendPlan {
 public:
  virtual ~BackendPlan() = default;
  virtual WorkspaceNeed workspace() const = 0;
  /// The call is validated; the workspace has at least workspace().bytes, aligned to 256.
  /// Host memory: the control part has been cleared unless DEUCE_FLAG_WORKSPACE_KEPT is set.
  /// Device memory: run() clears it on the stream, under the same flag.
  virtual Status run(const Call& call, std::byte* workspace, deuce_stream stream) const = 0;
  /// A JSON object of backend facts: kernel, KV tile, worker count, rows per item; with a call,
  /// splits per item and predicted bytes as well.
  virtual std::string explain(const Call* call) const = 0;
  /// Moves a pending device fault of an earlier run into `fault` and clears it; never waits.
  /// Backends that see their data on the host have none.
  virtual bool take_fault(deuce_fault& fault) const {
    static_cast<void>(fault);
    return false;
  }
};

struct BackendEntry {
  Backend id;
  const char* name;
  /// Refuses by name what this backend cannot do, before anything is built.
  Status (*check)(const Problem&);
  Result<std::unique_ptr<BackendPlan>> (*create)(const Problem&);
  /// Lengths and tables are checked by check_host_data() before run(): what a GPU finds in the
  /// kernel is then found before anything is computed. False where the kernel does it itself.
  bool checks_host_data = false;
  /// Clears `bytes` of device memory on the stream. nullptr: tensors and workspace are host memory,
  /// and the caller of run() clears the control part itself. With a function, run() clears it.
  Status (*clear)(const Problem&, std::byte* memory, std::size_t bytes, deuce_stream) = nullptr;

  bool on_host() const { return clear == nullptr; }
};

/// Every backend compiled into this library.
std::span<const BackendEntry> backends();
/// The entry, or nullptr when this library was built without it.
const BackendEntry* find_backend(Backend id);

}  // namespace deuce
