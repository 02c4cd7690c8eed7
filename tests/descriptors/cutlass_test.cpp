// SPDX-License-Identifier: Apache-2.0
// The same descriptors and swizzles by CUTLASS's encoders, run on the host: bit by bit against the
// kernel's, and address by address against what the emulator decodes from the bits.
// This shows agreement with CUTLASS, which runs on Blackwell; no Blackwell was asked.
#include "descriptors/cutlass_host.h"

#include <cute/tensor.hpp>
// The order matters: the descriptors use what the tensor header declares.
#include <cute/arch/mma_sm100_desc.hpp>
#include <cute/atom/mma_traits_sm100.hpp>

#include <random>

#include "descriptors/tabulated.h"
#include "kernel/blackwell/shared.h"

namespace deuce::test {
namespace {

using blackwell::Config;
using blackwell::TileDescriptors;
using cute::UMMA::SmemDescriptor;
using emulator::decode_operand;
using emulator::SharedOperand;

/// One K step (16 elements) of an operand: same bits, and every 8 elements where the emulator
/// looks.
template <cute::UMMA::Major kMajor>
void expect_same(const auto& step, uint64_t bits, int rows) {
  EXPECT_EQ(static_cast<uint64_t>(cute::UMMA::make_umma_desc<kMajor>(step)), bits);
  expect_same_places(step, decode_operand(bits), kMajor == cute::UMMA::Major::MN, rows);
}

/// A [128 rows][dim] tile, contiguous along dim: Q, or K.
template <class Element, int kDim, OperandLayout kLayout>
void expect_rows_by_dim(const auto& atom, const TabulatedOperand<kLayout>& row, uint32_t address) {
  using namespace cute;
  const auto layout = tile_to_shape(atom, Shape<_128, Int<kDim>>{});
  const Tensor tile =
      make_tensor(make_smem_ptr(reinterpret_cast<Element*>(shared_memory + address)), layout);
  ASSERT_EQ(row.steps, kDim / 16);
  for (int i = 0; i < row.steps; ++i) {
    const auto bits = blackwell::operand_descriptor<kLayout>(address) + row.step[i];
    EXPECT_EQ(bits, row.constant + address / 16 + row.step[i]);
    expect_same<UMMA::Major::K>(local_tile(tile, Shape<_128, _16>{}, make_coord(0, i)), bits, 128);
  }
}

/// A [128 keys][dim] tile seen as (dim, keys), contiguous along dim: V.
template <class Element, int kDim, OperandLayout kLayout>
void expect_dim_by_keys(const auto& atom, const TabulatedOperand<kLayout>& row, uint32_t address) {
  using namespace cute;
  // All keys of one swizzle span first, then the next columns.
  const auto layout = tile_to_shape(atom, Shape<Int<kDim>, _128>{}, Step<_2, _1>{});
  const Tensor tile =
      make_tensor(make_smem_ptr(reinterpret_cast<Element*>(shared_memory + address)), layout);
  ASSERT_EQ(row.steps, 8);
  for (int i = 0; i < row.steps; ++i) {
    const auto bits = blackwell::operand_descriptor<kLayout>(address) + row.step[i];
    expect_same<UMMA::Major::MN>(local_tile(tile, Shape<Int<kDim>, _16>{}, make_coord(0, i)), bits,
                                 kDim);
  }
}

template <class Element>
void expect_operands(uint32_t address) {
  using namespace cute::UMMA;
  expect_rows_by_dim<Element, 64>(Layout_K_SW128_Atom<Element>{}, kQk64, address);
  expect_rows_by_dim<Element, 128>(Layout_K_SW128_Atom<Element>{}, kQk128, address);
  expect_rows_by_dim<Element, 96>(Layout_K_SW64_Atom<Element>{}, kQk96, address);
  expect_dim_by_keys<Element, 64>(Layout_MN_SW128_Atom<Element>{}, kV64, address);
  expect_dim_by_keys<Element, 128>(Layout_MN_SW128_Atom<Element>{}, kV128, address);
  expect_dim_by_keys<Element, 96>(Layout_MN_SW64_Atom<Element>{}, kV96, address);
}

TEST(Cutlass, EncodesEveryTileOfTheKernelAlike) {
  for (const uint32_t address : {0u, 16384u, 32768u, 5 * 32768u}) {
    expect_operands<cute::bfloat16_t>(address);
    expect_operands<cute::half_t>(address);
  }
}

template <Config kConfig>
void expect_tiles_of_the_kernel() {
  using Element = std::conditional_t<kConfig.bf16, cute::bfloat16_t, cute::half_t>;
  using Tiles = TileDescriptors<kConfig>;
  using Storage = blackwell::SharedStorage<kConfig>;
  using namespace cute;
  const auto by_dim =
      tile_to_shape(UMMA::Layout_K_SW128_Atom<Element>{}, Shape<_128, Int<kConfig.head_dim>>{});
  const auto by_keys = tile_to_shape(UMMA::Layout_MN_SW128_Atom<Element>{},
                                     Shape<Int<kConfig.head_dim>, _128>{}, Step<_2, _1>{});
  for (int slot = 0; slot < kConfig.ring_slots(); ++slot) {
    const auto address =
        static_cast<uint32_t>(offsetof(Storage, kv)) + slot * uint32_t{kConfig.tile_bytes()};
    auto* first = reinterpret_cast<Element*>(shared_memory + address);
    const Tensor k = make_tensor(make_smem_ptr(first), by_dim);
    const Tensor v = make_tensor(make_smem_ptr(first), by_keys);
    for (int i = 0; i < Tiles::kQkSteps; ++i) {
      expect_same<UMMA::Major::K>(
          local_tile(k, Shape<_128, _16>{}, make_coord(0, i)),
          blackwell::operand_descriptor<Tiles::kRowsByDim>(address) + Tiles::qk_step(i), 128);
    }
    for (int i = 0; i < Tiles::kPvSteps; ++i) {
      expect_same<UMMA::Major::MN>(
          local_tile(v, Shape<Int<kConfig.head_dim>, _16>{}, make_coord(0, i)),
          blackwell::operand_descriptor<Tiles::kDimByKeys>(address) + Tiles::pv_step(i),
          kConfig.head_dim);
    }
  }
}

TEST(Cutlass, EncodesEveryRingSlotOfTheKernelAlike) {
  expect_tiles_of_the_kernel<Config{.head_dim = 64}>();
  expect_tiles_of_the_kernel<Config{.head_dim = 128}>();
  expect_tiles_of_the_kernel<Config{.head_dim = 64, .bf16 = false}>();
  expect_tiles_of_the_kernel<Config{.head_dim = 128, .bf16 = false}>();
}

template <class Element, int kColumns, cute::UMMA::Major kMajor>
uint32_t cutlass_instruction() {
  return static_cast<uint32_t>(cute::UMMA::make_instr_desc<Element, Element, float, 128, kColumns,
                                                           cute::UMMA::Major::K, kMajor>());
}

template <int kColumns>
uint32_t cutlass_instruction(bool bf16, blackwell::Major b_major) {
  using cute::UMMA::Major;
  if (b_major == blackwell::Major::k) {
    return bf16 ? cutlass_instruction<cute::bfloat16_t, kColumns, Major::K>()
                : cutlass_instruction<cute::half_t, kColumns, Major::K>();
  }
  return bf16 ? cutlass_instruction<cute::bfloat16_t, kColumns, Major::MN>()
              : cutlass_instruction<cute::half_t, kColumns, Major::MN>();
}

TEST(Cutlass, EncodesEveryInstructionAlike) {
  for (const TabulatedInstruction& row : kInstructions) {
    const uint32_t bits = row.columns == 64   ? cutlass_instruction<64>(row.bf16, row.b_major)
                          : row.columns == 96 ? cutlass_instruction<96>(row.bf16, row.b_major)
                                              : cutlass_instruction<128>(row.bf16, row.b_major);
    EXPECT_EQ(bits, row.bits) << row.columns;
    EXPECT_EQ(blackwell::instruction_descriptor(row.bf16, row.b_major, 128, row.columns), bits);
  }
}

TEST(Cutlass, NamesTheSameFieldsInAnyBitPattern) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    SmemDescriptor theirs;
    theirs.desc_ = random();
    const SharedOperand ours = decode_operand(theirs.desc_);
    ASSERT_EQ(ours.start, uint32_t{theirs.start_address_} << 4);
    ASSERT_EQ(ours.leading_bytes, uint32_t{theirs.leading_byte_offset_} << 4);
    ASSERT_EQ(ours.stride_bytes, uint32_t{theirs.stride_byte_offset_} << 4);
    cute::UMMA::InstrDescriptor instruction;
    instruction.desc_ = static_cast<uint32_t>(random());
    const emulator::MmaShape shape = emulator::decode_instruction(instruction.desc_);
    ASSERT_EQ(shape.rows, instruction.m_dim_ * 16);
    ASSERT_EQ(shape.columns, instruction.n_dim_ * 8);
    ASSERT_EQ(shape.a_bf16, instruction.a_format_ == 1);
    ASSERT_EQ(shape.b_bf16, instruction.b_format_ == 1);
    ASSERT_EQ(shape.a_mn_major, instruction.a_major_ == 1);
    ASSERT_EQ(shape.b_mn_major, instruction.b_major_ == 1);
    const bool plain = instruction.sparse_id2_ == 0 && instruction.sparse_flag_ == 0 &&
                       instruction.saturate_ == 0 && instruction.a_negate_ == 0 &&
                       instruction.b_negate_ == 0 && instruction.max_shift_ == 0;
    ASSERT_TRUE(plain || shape.fault != nullptr);
  }
}

TEST(Cutlass, SwizzlesEveryAddressAlike) {
  for (uint32_t address = 0; address < sizeof shared_memory; ++address) {
    ASSERT_EQ(swizzled(Swizzle::bytes128, address), (cute::Swizzle<3, 4, 3>{}(address)));
    ASSERT_EQ(swizzled(Swizzle::bytes64, address), (cute::Swizzle<2, 4, 3>{}(address)));
    ASSERT_EQ(swizzled(Swizzle::bytes32, address), (cute::Swizzle<1, 4, 3>{}(address)));
    ASSERT_EQ(swizzled(Swizzle::none, address), (cute::Swizzle<0, 4, 3>{}(address)));
  }
}

}  // namespace
}  // namespace deuce::test
