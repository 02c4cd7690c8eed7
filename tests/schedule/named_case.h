// SPDX-License-Identifier: Apache-2.0
// What the schedule tests of both kernels share: a case with its name, and the promise that a run
// leaves the control part of its workspace as it found it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <vector>

#include "emulator/decode_case.h"

namespace deuce {

/// Name, problem and number of blocks.
struct NamedCase {
  const char* name;
  emulator::CaseSpec spec;
  int workers = 2;
};
inline void PrintTo(const NamedCase& named, std::ostream* out) { *out << named.name; }

inline void expect_counters_at_zero(const std::vector<std::byte>& workspace,
                                    std::size_t control_bytes) {
  const auto end = workspace.begin() + static_cast<std::ptrdiff_t>(control_bytes);
  EXPECT_TRUE(std::all_of(workspace.begin(), end, [](std::byte b) { return b == std::byte{0}; }))
      << "a counter was not set back to zero";
}

}  // namespace deuce
