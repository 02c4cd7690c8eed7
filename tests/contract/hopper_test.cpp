// SPDX-License-Identifier: Apache-2.0
// The contracts on a Hopper GPU: the words must be those that the emulator is held to. Without a
// GPU these tests skip, with the reason.
#include <gtest/gtest.h>

#include <cstring>

#include "contract/expected.h"
#include "contract/hopper_kernel.h"
#include "gpu/device_buffer.h"
#include "gpu/tensor_map.h"

namespace deuce::contract {
namespace {

constexpr int kRuns = 50;  // silicon picks a schedule of its own each time

class HopperContract : public testing::TestWithParam<Case> {};

TEST_P(HopperContract, HoldsOnTheGpu) {
  DEUCE_NEEDS_HOPPER();
  const test::DeviceBuffer<uint16_t> source(tensor());
  const std::vector<uint32_t> zeros(kOutWords);
  const test::DeviceBuffer<uint32_t> out(zeros);
  Params params{};
  if (GetParam().operation == Operation::box) {
    TensorMapSpec map = GetParam().map;
    map.base = source.data();
    const Status status = encode_tensor_map(map, params.map);
    ASSERT_TRUE(status.ok()) << status.sentence();
  }
  std::memcpy(params.coordinate, GetParam().coordinate.data(), sizeof params.coordinate);
  params.source = reinterpret_cast<const uint32_t*>(source.data());
  params.out = out.data();
  for (int i = 0; i < kRuns; ++i) {
    out.upload(zeros);
    ASSERT_EQ(launch(GetParam().operation, params), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_EQ(out.to_host(), expected(GetParam())) << "run " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, HopperContract, testing::ValuesIn(cases()),
                         [](const auto& contract) { return contract.param.name; });

}  // namespace
}  // namespace deuce::contract
