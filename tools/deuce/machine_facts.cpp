// SPDX-License-Identifier: Apache-2.0
// Facts from /proc, uname, sysconf and the compiler's own macros.
#include "machine_facts.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <fstream>

#include "cpu/kernels.h"
#include "cpu/pool.h"
#include "cpu/roof.h"
#include "deuce_commit.h"

namespace deuce::cli {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string system_name() {
  utsname about{};
  if (::uname(&about) != 0) return "unknown";
  return fmt::format("{} {} {}", about.sysname, about.release, about.machine);
}

}  // namespace

MachineFacts machine_facts() {
  MachineFacts facts;
  facts.cpu = cpu_model();
  facts.threads = cpu::usable_cpus();
  facts.simd = cpu::chosen_kernels().name;
  facts.cache_bytes = cpu::last_level_cache_bytes();
  facts.system = system_name();
#if defined(__clang__)
  facts.compiler = "clang " __clang_version__;
#else
  facts.compiler = "gcc " __VERSION__;
#endif
#ifdef NDEBUG
  facts.build_type = "release";
#else
  facts.build_type = "debug";
#endif
  facts.commit = DEUCE_COMMIT;
  return facts;
}

}  // namespace deuce::cli
