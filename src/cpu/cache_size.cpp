// SPDX-License-Identifier: Apache-2.0
// Size of the last-level cache, as the kernel knows it. sysconf is no substitute: on some virtual
// machines it reports the cache of the whole host.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>

#include "cpu/roof.h"

namespace deuce::cpu {
namespace {

struct Cache {
  int level = 0;
  std::size_t bytes = 0;
  std::string shared_by;
};
constexpr int kMostCaches = 8;

/// Level 0 when there is no such cache.
Cache read_cache(long cpu, int index) {
  const std::string folder =
      fmt::format("/sys/devices/system/cpu/cpu{}/cache/index{}/", cpu, index);
  Cache cache;
  std::ifstream(folder + "shared_cpu_list") >> cache.shared_by;
  std::ifstream(folder + "level") >> cache.level;
  std::string unit;
  std::ifstream(folder + "size") >> cache.bytes >> unit;
  cache.bytes <<= unit == "M" ? 20 : unit == "K" ? 10 : 0;
  return cache;
}

}  // namespace

std::size_t last_level_cache_bytes() {
  std::map<std::string, std::size_t> instances;  // by the processors that share it
  int level = 0;
  for (long cpu = 0; cpu < ::sysconf(_SC_NPROCESSORS_CONF); ++cpu) {
    for (int index = 0; index < kMostCaches; ++index) {
      const Cache cache = read_cache(cpu, index);
      if (cache.level > level) instances.clear();
      level = std::max(level, cache.level);
      if (cache.level == level && level > 0) instances[cache.shared_by] = cache.bytes;
    }
  }
  std::size_t bytes = 0;
  for (const auto& [processors, size] : instances) bytes += size;
  constexpr std::size_t kUnknown = std::size_t{32} << 20;
  return bytes > 0 ? bytes : kUnknown;
}

}  // namespace deuce::cpu
