// SPDX-License-Identifier: Apache-2.0
// The limits of this machine that decode attention on a CPU is measured against: how fast all
// threads together read memory, and how many multiply-adds they do. Used by `deuce info --roof`,
// `deuce bench` and the side-by-side runs. Both are measured with the instruction set that plans
// use, and with work dealt out in small claims as a run deals it, so that a neighbour on the
// machine disturbs both alike.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

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

/// A buffer beyond the last-level cache, read pass by pass: what a sample can be put next to that
/// was taken a moment ago. Neighbours on the machine change the roof by half from one second to the
/// next.
class ReadRoof {
 public:
  /// `threads` 0 = the pool that runs use. Allocates and touches the buffer.
  explicit ReadRoof(int threads = 0);
  ~ReadRoof();
  /// Reads the buffer once; bytes per second.
  double pass();
  Pool& pool() { return *pool_; }
  std::size_t buffer_bytes() const { return bytes_; }

 private:
  std::shared_ptr<Pool> pool_;
  std::size_t bytes_;
  std::unique_ptr<std::byte[]> buffer_;
};

/// Measures for about `seconds` (the buffer's first touch comes on top, below a second).
/// `threads` 0 = every CPU that this process may use. Not thread-safe with itself; allocates.
Roof measure_roof(int threads = 0, double seconds = 1.5);

}  // namespace deuce::cpu
