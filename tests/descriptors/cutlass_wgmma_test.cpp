// SPDX-License-Identifier: Apache-2.0
// The descriptors of wgmma by CUTLASS's encoder, run on the host: bit by bit against the kernel's,
// and address by address against what the emulator decodes from the bits.
#include "descriptors/cutlass_host.h"

#include <cute/tensor.hpp>
// The order matters: the descriptors use what the tensor header declares.
#include <cute/arch/mma_sm90_desc.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>

#include "kernel/hopper/group_descriptors.h"

namespace deuce::test {
namespace {

using emulator::decode_wgmma_operand;
using hopper::Config;

/// What CUTLASS leaves zero where the hardware ignores it.
constexpr uint64_t kLeading = uint64_t{0x3fff} << 16;

template <cute::GMMA::Major kMajor>
void expect_same(const auto& step, uint64_t bits, int rows, uint64_t ignored) {
  const auto theirs = static_cast<uint64_t>(cute::SM90::GMMA::make_gmma_desc<kMajor>(step));
  EXPECT_EQ(theirs & ~ignored, bits & ~ignored);
  expect_same_places(step, decode_wgmma_operand(bits), kMajor == cute::GMMA::Major::MN, rows);
}

template <class Element, int kDim>
void expect_tiles(uint32_t address) {
  using namespace cute;
  using Tiles = hopper::GroupDescriptors<Config{.head_dim = kDim}>;
  auto* first = reinterpret_cast<Element*>(shared_memory + address);
  const Tensor k =
      make_tensor(make_smem_ptr(first),
                  tile_to_shape(GMMA::Layout_K_SW128_Atom<Element>{}, Shape<_64, Int<kDim>>{}));
  const Tensor v =
      make_tensor(make_smem_ptr(first), tile_to_shape(GMMA::Layout_MN_SW128_Atom<Element>{},
                                                      Shape<Int<kDim>, _64>{}, Step<_2, _1>{}));
  for (int i = 0; i < Tiles::kKeySteps; ++i) {
    expect_same<GMMA::Major::K>(local_tile(k, Shape<_64, _16>{}, make_coord(0, i)),
                                Tiles::keys(address) + Tiles::key_step(i), 64, kLeading);
  }
  for (int i = 0; i < Tiles::kValueSteps; ++i) {
    expect_same<GMMA::Major::MN>(local_tile(v, Shape<Int<kDim>, _16>{}, make_coord(0, i)),
                                 Tiles::values(address) + Tiles::value_step(i), kDim,
                                 kDim == 64 ? kLeading : 0);
  }
}

TEST(CutlassWgmma, EncodesEveryTileOfTheKernelAlike) {
  for (const uint32_t address : {0u, 8192u, 16384u, 5 * 32768u}) {
    expect_tiles<cute::bfloat16_t, 128>(address);
    expect_tiles<cute::bfloat16_t, 64>(address);
    expect_tiles<cute::half_t, 128>(address);
    expect_tiles<cute::half_t, 64>(address);
  }
}

}  // namespace
}  // namespace deuce::test
