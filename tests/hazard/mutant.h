// SPDX-License-Identifier: Apache-2.0
// A mutant of a GPU kernel: a filter between kernel and machine that alters or drops
// operations, and the finding that it must lead to. The kernel is never touched.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/blackwell.h"
#include "emulator/decode_case.h"
#include "emulator/decode_kernel.h"

namespace deuce::test {

/// Which edge an operation is about.
struct Where {
  const Edge* edge = nullptr;
  int slot = 0;
  bool is(std::string_view name) const { return edge != nullptr && edge->name == name; }
};

/// Alters an operation, or drops it by returning false.
using Spoil = std::function<bool(emulator::Op&, const emulator::OpContext&, const Where&)>;

/// A finding: its check, and the edge or memory that it must be about or name.
struct Expected {
  std::string check, about;
};

struct Mutant {
  std::string name = {};
  Spoil spoil = {};
  std::vector<Expected> right = {};  // any of these; none = it is equivalent and must find nothing
  int slots = 2;                     // of scores; hopper: with more than 16 rows
  bool strict = false;  // in the strict mode, on the kernel that waits for the tensor pipe
  int replicas = 1;
  bool table_counts = true;  // false: no barrier is compared with the table
  bool relies = false;       // with strict: on the kernel that does not wait
  Backend kernel = Backend::blackwell;
  int rows = 16;  // hopper: up to 16 a stream is one warp, else one warpgroup or two
};

inline constexpr emulator::Mode kModes[] = {emulator::Mode::timed, emulator::Mode::eager,
                                            emulator::Mode::lazy, emulator::Mode::random,
                                            emulator::Mode::adversarial};

/// Six items in two parts each on two blocks: several pieces a block, every ring goes round, every
/// block of keys asks for a rescale.
emulator::CaseSpec stimulus();
/// The same for the Hopper kernel, whose tiles are half as high: every slot goes round, and tiles
/// with keys that nobody sees lie in the middle of the run. Both blocks have a part of one item.
emulator::CaseSpec hopper_stimulus(int rows);

/// Spoils what `kernel` does.
std::unique_ptr<emulator::OpFilter> make_filter(const emulator::KernelSpec& kernel, Spoil spoil);

/// The kernel under one mode; `spoil` may be empty.
emulator::RunResult run_mutant(emulator::DecodeCase& decode, emulator::Mode mode,
                               const Mutant& mutant);

bool is_wait(const emulator::Op& op);
bool is_arrival(const emulator::Op& op);
bool is_in(const emulator::Op& op, std::string_view file);  // its source line

// What mutants of both kernels do.
Spoil drop(emulator::OpKind kind);
Spoil drop(emulator::OpKind kind, Role role);
Spoil wait_for_other_parity(std::string_view edge);
Spoil wait_for_next_slot(const Edge& edge);
Spoil announce_bytes(std::string_view edge, int change);

/// One line a mode that did not end with the right finding, or whose finding does not name who did
/// what where, on both sides of a race; empty when all did.
std::string survivors(const Mutant& mutant);

/// Runs all mutants and prints caught / total.
void expect_caught(const std::vector<Mutant>& mutants);

}  // namespace deuce::test
