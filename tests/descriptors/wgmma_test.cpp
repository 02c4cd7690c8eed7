// SPDX-License-Identifier: Apache-2.0
// The descriptors of wgmma: the kernel's bits against constants worked out from the PTX ISA by
// hand, and the emulator's decoder against the fields and against bits that mean nothing.
#include <gtest/gtest.h>

#include "emulator/mma.h"
#include "kernel/hopper/group_descriptors.h"

namespace deuce::test {
namespace {

using emulator::decode_wgmma_operand;
using emulator::SharedOperand;
using hopper::Config;
using hopper::GroupDescriptors;

template <int kHeadDim>
using Tiles = GroupDescriptors<Config{.head_dim = kHeadDim}>;

// 128-byte swizzle: 1 in bits 62-63. Blocks of 8 keys 1024 bytes apart: 64 in bits 32-45. Columns
// of 64 dims 8192 bytes apart: 512 in bits 16-29.
TEST(WgmmaDescriptors, AreTheTabulatedConstants) {
  EXPECT_EQ(Tiles<128>::keys(0), 0x4000004000010000u);
  EXPECT_EQ(Tiles<64>::keys(0), 0x4000004000010000u);
  EXPECT_EQ(Tiles<128>::values(0), 0x4000004002000000u);
  EXPECT_EQ(Tiles<64>::values(0), 0x4000004000010000u);
  EXPECT_EQ(Tiles<128>::keys(16384), Tiles<128>::keys(0) + 1024);
}

TEST(WgmmaDescriptors, StepsStayInsideTheTile) {
  for (int step = 0; step < Tiles<128>::kKeySteps; ++step) {
    EXPECT_EQ(Tiles<128>::key_step(step), step < 4 ? 2u * step : 512u + 2u * (step - 4));
  }
  for (int step = 0; step < Tiles<128>::kValueSteps; ++step) {
    EXPECT_EQ(Tiles<128>::value_step(step), 128u * step);
  }
}

TEST(WgmmaDescriptors, AreDecodedIntoTheirFields) {
  for (const uint32_t address : {0u, 1024u, 16384u, 196608u}) {
    const SharedOperand keys = decode_wgmma_operand(Tiles<128>::keys(address));
    EXPECT_EQ(keys.fault, nullptr);
    EXPECT_EQ(keys.start, address);
    EXPECT_EQ(keys.stride_bytes, 1024u);
    EXPECT_EQ(keys.swizzle, Swizzle::bytes128);
    EXPECT_EQ(decode_wgmma_operand(Tiles<128>::values(address)).leading_bytes, 8192u);
  }
}

TEST(WgmmaDescriptors, BitsWithoutMeaningAreFaults) {
  for (const int bit : {14, 15, 30, 31, 46, 47, 48, 49, 51, 52, 61}) {
    EXPECT_NE(decode_wgmma_operand(Tiles<128>::keys(0) | uint64_t{1} << bit).fault, nullptr) << bit;
  }
}

}  // namespace
}  // namespace deuce::test
