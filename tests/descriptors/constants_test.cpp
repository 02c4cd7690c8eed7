// SPDX-License-Identifier: Apache-2.0
// The kernel's descriptors against the tabulated constants, and the emulator's decoder against the
// fields that were put in.
#include <gtest/gtest.h>

#include "descriptors/tabulated.h"
#include "emulator/mma.h"

namespace deuce::test {
namespace {

using blackwell::Config;
using blackwell::Major;
using blackwell::operand_descriptor;
using blackwell::TileDescriptors;
using emulator::decode_instruction;
using emulator::decode_operand;

template <OperandLayout kLayout>
void expect_row(const TabulatedOperand<kLayout>& row) {
  EXPECT_EQ(operand_descriptor<kLayout>(0), row.constant);
  for (const uint32_t address : {0u, 1024u, 16384u, 231424u}) {
    const uint64_t bits = operand_descriptor<kLayout>(address);
    EXPECT_EQ(bits, row.constant + address / 16);
    const emulator::SharedOperand decoded = decode_operand(bits);
    EXPECT_EQ(decoded.fault, nullptr);
    EXPECT_EQ(decoded.start, address);
    EXPECT_EQ(decoded.leading_bytes, kLayout.leading_bytes);
    EXPECT_EQ(decoded.stride_bytes, kLayout.stride_bytes);
    EXPECT_EQ(decoded.swizzle, kLayout.swizzle);
  }
}

TEST(Descriptors, OfOperandsAreTheTabulatedConstants) {
  expect_row(kQk64);
  expect_row(kQk96);
  expect_row(kQk128);
  expect_row(kV64);
  expect_row(kV96);
  expect_row(kV128);
}

template <Config kConfig>
void expect_steps(const auto& queries, const auto& values) {
  using Tiles = TileDescriptors<kConfig>;
  ASSERT_EQ(Tiles::kQkSteps, queries.steps);
  ASSERT_EQ(Tiles::kPvSteps, values.steps);
  EXPECT_EQ(operand_descriptor<Tiles::kRowsByDim>(0), queries.constant);
  EXPECT_EQ(operand_descriptor<Tiles::kDimByKeys>(0), values.constant);
  for (int i = 0; i < queries.steps; ++i) EXPECT_EQ(Tiles::qk_step(i), queries.step[i]) << i;
  for (int i = 0; i < values.steps; ++i) EXPECT_EQ(Tiles::pv_step(i), values.step[i]) << i;
}

TEST(Descriptors, OfTheKernelTakeTheTabulatedSteps) {
  expect_steps<Config{.head_dim = 64}>(kQk64, kV64);
  expect_steps<Config{.head_dim = 128}>(kQk128, kV128);
}

TEST(Descriptors, OfInstructionsAreTheTabulatedConstants) {
  for (const TabulatedInstruction& row : kInstructions) {
    EXPECT_EQ(instruction_descriptor(row.bf16, row.b_major, 128, row.columns), row.bits);
    const emulator::MmaShape shape = decode_instruction(row.bits);
    EXPECT_EQ(shape.fault, nullptr);
    EXPECT_EQ(shape.rows, 128);
    EXPECT_EQ(shape.columns, row.columns);
    EXPECT_EQ(shape.a_bf16, row.bf16);
    EXPECT_EQ(shape.b_bf16, row.bf16);
    EXPECT_FALSE(shape.a_mn_major);
    EXPECT_EQ(shape.b_mn_major, row.b_major == Major::mn);
  }
}

TEST(Descriptors, OfTheKernelNameItsShapes) {
  EXPECT_EQ(TileDescriptors<Config{.head_dim = 64}>::kQk, 0x08200490u);
  EXPECT_EQ(TileDescriptors<Config{.head_dim = 128}>::kQk, 0x08200490u);
  EXPECT_EQ(TileDescriptors<Config{.head_dim = 64}>::kPv, 0x08110490u);
  EXPECT_EQ(TileDescriptors<Config{.head_dim = 128}>::kPv, 0x08210490u);
  constexpr Config kHalf{.head_dim = 128, .bf16 = false};
  EXPECT_EQ(TileDescriptors<kHalf>::kQk, 0x08200010u);
  EXPECT_EQ(TileDescriptors<kHalf>::kPv, 0x08210010u);
}

TEST(Descriptors, WithABrokenFieldAreRefused) {
  const uint64_t good = kV128.constant;
  for (const uint64_t flip : {uint64_t{1} << 46, uint64_t{1} << 47, uint64_t{1} << 49,
                              uint64_t{1} << 52, uint64_t{1} << 14, uint64_t{1} << 61}) {
    EXPECT_NE(decode_operand(good ^ flip).fault, nullptr) << std::hex << flip;
  }
  const uint32_t instruction = kInstructions[0].bits;
  for (const int bit : {2, 3, 4, 6, 8, 11, 13, 14, 23, 24, 29, 31}) {
    EXPECT_NE(decode_instruction(instruction ^ 1u << bit).fault, nullptr) << bit;
  }
}

}  // namespace
}  // namespace deuce::test
