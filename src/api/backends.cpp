// SPDX-License-Identifier: Apache-2.0
// The one list of backends in this library. A folder that is built defines DEUCE_WITH_<NAME> and
// offers its entry in a header; nothing else in the tree asks what was built.
#include <vector>

#include "plan/backend.h"
#ifdef DEUCE_WITH_CPU
#include "cpu/cpu_backend.h"
#endif
#ifdef DEUCE_WITH_REFERENCE
#include "reference/reference_backend.h"
#endif
#ifdef DEUCE_WITH_EMULATOR
#include "emulator/emulator_backend.h"
#endif
#ifdef DEUCE_WITH_HOPPER
#include "gpu/hopper_backend.h"
#endif
#ifdef DEUCE_WITH_BLACKWELL
#include "gpu/blackwell_backend.h"
#endif

namespace deuce {

std::span<const BackendEntry> backends() {
  static const std::vector<BackendEntry> table{
#ifdef DEUCE_WITH_CPU
      cpu_backend(),
#endif
#ifdef DEUCE_WITH_HOPPER
      hopper_backend(),
#endif
#ifdef DEUCE_WITH_BLACKWELL
      blackwell_backend(),
#endif
#ifdef DEUCE_WITH_EMULATOR
      emulator_backend(),
#endif
#ifdef DEUCE_WITH_REFERENCE
      reference_backend(),
#endif
  };
  return table;
}

namespace {
/// Made when the library is loaded: a child of fork() waits for ever for what another thread of its
/// parent had begun to make.
[[maybe_unused]] const auto kMadeAtLoad = backends();
[[maybe_unused]] const bool kTextMadeAtLoad = Status().field().empty();
}  // namespace

const BackendEntry* find_backend(Backend id) {
  for (const BackendEntry& entry : backends()) {
    if (entry.id == id) return &entry;
  }
  return nullptr;
}

}  // namespace deuce
