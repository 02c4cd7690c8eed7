// SPDX-License-Identifier: Apache-2.0
// Every contract with its inputs and the words it must produce, computed on the host without any
// of the code under test. Used by the emulator's and the GPU's test alike.
#pragma once

#include <array>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "contract/operations.h"
#include "plan/tensor_map_spec.h"

namespace deuce::contract {

struct Case {
  std::string name;
  Operation operation;
  TensorMapSpec map{};  // of `box`; the base is filled in by who runs it
  std::array<int32_t, 4> coordinate{};
};
inline void PrintTo(const Case& contract, std::ostream* out) { *out << contract.name; }

/// All contracts; boxes for every swizzle, inside, across and outside the tensor.
std::vector<Case> cases();

/// The tensor of the box contracts, 16-bit elements; also the source of the bytes contract.
std::vector<uint16_t> tensor();

/// What the contract must write. Words it does not write are 0.
std::vector<uint32_t> expected(const Case& contract);

}  // namespace deuce::contract
