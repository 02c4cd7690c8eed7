// SPDX-License-Identifier: Apache-2.0
// The limits of this machine that decode attention on a CPU is measured against: how fast all
// threads together read memory, and how many multiply-adds they do. Used by `deuce info --roof`,
// `deuce bench` and the side-by-side runs. Both are measured with the instruction set that plans
// use, and with work dealt out in small claims as a run deals it, so that a neighbour on the
// machine disturbs both alike.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace deuce::cpu {

class Pool;

/// Repeated measurements of one rate, per second.
struct Rate {
  double best = 0, median = 0;
};

struct Roof {
  std::string instruction_set;
  int threads = 0;
  std::size_t buffer_bytes = 0;  // read once per pass; beyond the last-level cache
  int passes = 0;
  Rate read_bytes;     // ordinary pages, as a caller's cache has them
  Rate multiply_adds;  // of single floats
};

/// Size of the last-level cache in bytes; a guess of 32 MiB where the system does not tell.
std::size_t last_level_cache_bytes();

/// Bytes of a roof's buffer: several times the last-level cache.
std::size_t roof_bytes();

/// Memory beyond the last-level cache, read pass by pass: what a sample can be put next to that was
/// taken a moment ago. Neighbours on the machine change the roof by half from one second to the
/// next, and two buffers of one process may differ by a quarter (docs/cpu.md).
class ReadRoof {
 public:
  /// `threads` 0 = the pool that runs use. Allocates and touches a buffer.
  explicit ReadRoof(int threads = 0);
  /// Reads the caller's memory instead.
  explicit ReadRoof(const std::vector<std::span<const std::byte>>& memory);
  ~ReadRoof();
  /// Reads all of it once; bytes per second.
  double pass();
  Pool& pool() { return *pool_; }
  std::size_t buffer_bytes() const { return bytes_; }

 private:
  void deal_out(std::span<const std::byte> memory);

  std::shared_ptr<Pool> pool_;
  std::unique_ptr<std::byte[]> buffer_;
  std::vector<std::span<const std::byte>> claims_;
  std::size_t bytes_ = 0;
};

/// Measures for about `seconds` (the buffer's first touch comes on top, below a second).
/// `threads` 0 = every CPU that this process may use. Not thread-safe with itself; allocates.
Roof measure_roof(int threads = 0, double seconds = 1.5);

}  // namespace deuce::cpu
