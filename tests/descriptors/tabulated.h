// SPDX-License-Identifier: Apache-2.0
// The constants that people who write tcgen05 kernels carry around, one row per operand: layout,
// high and constant bits of its descriptor, and what each K step adds to the start address.
// constants_test.cpp compares the kernel's encoder with them, cutlass_test.cpp CUTLASS's.
#pragma once

#include <array>
#include <cstdint>

#include "kernel/blackwell/descriptors.h"

namespace deuce::test {

inline constexpr int kMostSteps = 8;

template <blackwell::OperandLayout kLayout>
struct TabulatedOperand {
  uint64_t constant;  // descriptor of a tile at shared address 0
  int steps;
  std::array<uint32_t, kMostSteps> step;  // 16-byte units
};

using blackwell::OperandLayout;

// Leading bytes of a K-major operand are ignored, those of one that is a single swizzle span wide
// are never used; 16 and 0 are what CUTLASS writes there.
inline constexpr TabulatedOperand<OperandLayout{16, 1024, Swizzle::bytes128}> kQk64{
    0x4000404000010000, 4, {0, 2, 4, 6}};
inline constexpr TabulatedOperand<OperandLayout{16, 1024, Swizzle::bytes128}> kQk128{
    0x4000404000010000, 8, {0, 2, 4, 6, 1024, 1026, 1028, 1030}};
inline constexpr TabulatedOperand<OperandLayout{16, 512, Swizzle::bytes64}> kQk96{
    0x8000402000010000, 6, {0, 2, 512, 514, 1024, 1026}};
inline constexpr TabulatedOperand<OperandLayout{0, 1024, Swizzle::bytes128}> kV64{
    0x4000404000000000, 8, {0, 128, 256, 384, 512, 640, 768, 896}};
inline constexpr TabulatedOperand<OperandLayout{16384, 1024, Swizzle::bytes128}> kV128{
    0x4000404004000000, 8, {0, 128, 256, 384, 512, 640, 768, 896}};
inline constexpr TabulatedOperand<OperandLayout{8192, 512, Swizzle::bytes64}> kV96{
    0x8000402002000000, 8, {0, 64, 128, 192, 256, 320, 384, 448}};

// Instruction descriptors, M = 128.
struct TabulatedInstruction {
  bool bf16;
  blackwell::Major b_major;
  int columns;
  uint32_t bits;
};
inline constexpr TabulatedInstruction kInstructions[] = {
    {true, blackwell::Major::k, 128, 0x08200490},  {true, blackwell::Major::k, 64, 0x08100490},
    {true, blackwell::Major::mn, 64, 0x08110490},  {true, blackwell::Major::mn, 96, 0x08190490},
    {true, blackwell::Major::mn, 128, 0x08210490}, {false, blackwell::Major::k, 128, 0x08200010},
    {false, blackwell::Major::k, 64, 0x08100010},  {false, blackwell::Major::mn, 64, 0x08110010},
    {false, blackwell::Major::mn, 96, 0x08190010}, {false, blackwell::Major::mn, 128, 0x08210010},
};

}  // namespace deuce::test
