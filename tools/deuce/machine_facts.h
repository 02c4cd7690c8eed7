// SPDX-License-Identifier: Apache-2.0
// The machine and the build, as `deuce info` shows them and every benchmark result carries them.
#pragma once

#include <string>

namespace deuce::cli {

struct MachineFacts {
  std::string cpu;              // model name
  int threads = 0;              // of the cpu backend
  std::string simd;             // instruction set of the cpu backend
  std::size_t cache_bytes = 0;  // last-level cache
  std::string system;           // kernel and architecture
  std::string compiler, build_type, commit;
};

MachineFacts machine_facts();

}  // namespace deuce::cli
