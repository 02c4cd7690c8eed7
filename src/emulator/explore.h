// SPDX-License-Identifier: Apache-2.0
// Every interleaving of a recorded kernel, within bounds: an exhaustive search over the programs of
// record.h with equal states merged. Asynchronous completions may come in any order at any time.
// Independent of the vector clocks: it knows parity bits, arrival counts and who touches what.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/record.h"

namespace deuce::emulator {

/// One move of a warp: it passes all waits at once, then arrives and issues at once. Moves are cut
/// wherever the warp touches memory, or waits after a signal.
struct Step {
  std::vector<Event> waits, signals;  // signals: arrivals, copies, MMAs, commits
  Access after;                       // touched from here until the next step
  std::size_t last_event = 0;         // of the program
  std::size_t begins = 0;             // event from which on the step may have been taken
};

struct Actor {
  int warp;
  Role role;
  Access before;  // touched until the first step
  std::vector<Step> steps;
};

struct ModelBarrier {
  std::string name;
  int expected = 0;    // arrivals per phase
  bool bytes = false;  // a phase also needs the copies announced in it
  bool open_at_exit = false;
};

struct Model {
  const Recording* recording = nullptr;
  std::vector<ModelBarrier> barriers;
  std::vector<Actor> actors;
  std::string fault;  // why it cannot be explored
};

/// Which part of the kernel is explored. Leaving out barriers allows more orders, never fewer: a
/// part without violations cannot have any in the whole, but for deadlocks across parts.
enum class Part : uint8_t {
  whole,
  tiles,  // without the list of pieces
  pieces  // the list of pieces alone
};

/// `quarters` of the four lane quarters (softmax, correction and epilogue warps) take part; arrival
/// counts of the edge table shrink accordingly.
Model make_model(const Recording& recording, int quarters, Part part);

/// What the search ran into; empty kind = nothing.
struct Violation {
  std::string kind;  // early, overtaken, race, operand, deadlock, exit, left over
  std::string edge;  // barrier or memory it is about
  std::string text;
};

struct Exploration {
  Violation violation;
  uint64_t states = 0;
  bool complete = false;  // every reachable state was visited
};

Exploration explore(const Model& model, uint64_t state_limit);

/// Whether the events happened in an order that the model allows; the text says where not.
std::string rejects(const Model& model, const std::vector<int>& order);

}  // namespace deuce::emulator
