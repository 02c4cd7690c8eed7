// SPDX-License-Identifier: Apache-2.0
// The machine and the build, as `deuce info` shows them and every benchmark result carries them.
#pragma once

#include <optional>
#include <string>

namespace deuce::cli {

/// A GPU as results name it.
struct GpuFacts {
  std::string name, driver;  // driver: its own version, or empty
  int major = 0, minor = 0, multiprocessors = 0;
  int cuda_driver = 0, cuda_runtime = 0;  // CUDA versions, 13000 = 13.0
  std::size_t l2_bytes = 0;
  double empty_kernel_s = 0;  // in a graph: what no call can be below
};

struct MachineFacts {
  std::string cpu;              // model name
  int threads = 0;              // of the cpu backend
  std::string simd;             // instruction set of the cpu backend
  std::size_t cache_bytes = 0;  // last-level cache
  std::string system;           // kernel and architecture
  std::string compiler, build_type, commit;
  std::optional<GpuFacts> gpu;  // where the command measured, if it was one
};

MachineFacts machine_facts();

}  // namespace deuce::cli
