// SPDX-License-Identifier: Apache-2.0
// Who is under test: a backend of this library, or a mutant made from the reference by a wrong
// argument or a damaged result. Every property is a function of (subject, case), so that the same
// text that must hold for a backend must fail for its mutants.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "reference/judge.h"
#include "support/instance.h"

namespace deuce::testing {

/// Memory of the device that a backend works on. Buffers are copied there before a run and back
/// after it, and every pointer of the arguments is moved along.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual std::byte* allocate(std::size_t bytes) = 0;  // 256-byte aligned, until release_all
  virtual void upload_to(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  /// A copy, at an address of the same alignment.
  virtual std::byte* upload(const std::byte* from, std::size_t bytes) = 0;
  virtual void download(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  virtual void release_all() = 0;
};

struct Subject {
  std::string name;
  int32_t backend = DEUCE_BACKEND_REFERENCE;
  int32_t emulated_backend = 0;
  DeviceMemory* device = nullptr;          // nullptr: host memory
  std::string (*why_missing)() = nullptr;  // of its device; "" when it is there
  std::function<void(deuce_decode_config&, deuce_decode_args&)> mutate = {};
  std::function<void(Instance&)> damage = {};  // of the results
  /// Computes in place of a backend, from a validated call and a worker count (0 = its own).
  std::function<void(const Problem&, const Call&, int32_t)> direct = {};

  /// The reference and the emulator have no time for thousands of rounds.
  bool is_slow() const {
    return backend == DEUCE_BACKEND_REFERENCE || backend == DEUCE_BACKEND_EMULATOR;
  }
  /// A kernel for GPUs, on one or in the emulator.
  bool is_gpu_kernel() const {
    return backend == DEUCE_BACKEND_EMULATOR || backend == DEUCE_BACKEND_HOPPER ||
           backend == DEUCE_BACKEND_BLACKWELL;
  }
  /// The slowest of all: 200 matrix instructions of a warp for each tile of keys, emulated.
  bool runs_every_matrix() const {
    return backend == DEUCE_BACKEND_EMULATOR && emulated_backend == DEUCE_BACKEND_HOPPER;
  }
};

/// A drawn case moved into what the subject takes: shapes and types of the GPU kernels, where
/// nearly every free draw is refused. Others get the case as it is.
Case within_reach(const Subject& subject, Case drawn);

/// Filled before main by a test program whose subjects are on a device.
std::vector<Subject>& device_subjects();

/// The backends under test: those of the host, or the device's where a program has one.
std::vector<Subject> subjects();

struct Outcome {
  deuce_status status = DEUCE_OK;
  std::string sentence, field;
  std::vector<uint32_t> out, lse;  // bits by (token, head, column)
  bool refused() const { return status == DEUCE_UNSUPPORTED; }
};

struct RunOptions {
  uint32_t flags = 0;
  uint8_t workspace_fill = 0xFF;
  std::ptrdiff_t workspace_excess = 0;  // bytes given beyond what was asked for
};

/// Cases of the running test that subjects computed, that they refused by name, and that the test
/// left out for them. A test in which everything is refused has shown nothing, and what is left out
/// easily grows, so Backends (kernel/backends.h) looks at them.
struct ServedCases {
  int computed = 0, refused = 0;
  std::set<std::string> left_out = {};
  void note(deuce_status status) {
    computed += status == DEUCE_OK ? 1 : 0;
    refused += status == DEUCE_UNSUPPORTED ? 1 : 0;
  }
};
ServedCases& served_cases();

/// Plans and runs the instance on the subject through the C API, under a watchdog.
Outcome run(const Subject& subject, Instance& instance, const RunOptions& options = {});

/// Judges the results of a run of `instance` against the exact ones.
reference::Verdict judge_results(const Subject& subject, const Instance& instance);

/// Empty, or what is wrong: runs the case with NaN poison and with zeros, checks the frame both
/// times, the results against the exact ones, and both runs bit by bit. `refused` tells whether
/// the subject refused the case by name (nothing must have been written then).
std::string check_frame(const Subject& subject, const Case& from, bool* refused = nullptr);

using Property = std::function<std::string(const Subject&, const Case&)>;

/// Shrinks a failing case while it still fails, for some seconds, and reports both.
std::string shrink(const Subject& subject, const Case& failing, const Property& property);

}  // namespace deuce::testing
