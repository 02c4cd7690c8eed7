// SPDX-License-Identifier: Apache-2.0
// The contracts on the emulator, under every schedule mode, without a finding.
#include <gtest/gtest.h>

#include <cstring>

#include "contract/expected.h"
#include "emulator/machine.h"
#include "emulator/tensor_map.h"

namespace deuce::contract {
namespace {

using emulator::Launch;
using emulator::Machine;
using emulator::Mode;
using emulator::Op;
using emulator::OpContext;
using emulator::Options;
using emulator::Report;

struct Emulated {
  Report report;
  std::vector<uint32_t> out;
};

Emulated emulate(const Case& contract, Mode mode, emulator::OpFilter* filter) {
  const std::vector<uint16_t> values = tensor();
  std::vector<uint16_t> memory(values.size() + 8);  // 16-byte aligned copy
  uint16_t* source =
      memory.data() + (16 - reinterpret_cast<uintptr_t>(memory.data()) % 16) % 16 / 2;
  std::memcpy(source, values.data(), values.size() * sizeof(uint16_t));
  Emulated result{{}, std::vector<uint32_t>(kOutWords)};
  Params params{};
  TensorMapSpec map = contract.map;
  map.base = source;
  if (contract.operation == Operation::box) params.map = emulator::encode(map);
  std::memcpy(params.coordinate, contract.coordinate.data(), sizeof params.coordinate);
  params.source = reinterpret_cast<const uint32_t*>(source);
  params.out = result.out.data();
  emulator::KernelSpec kernel;
  kernel.threads = kThreads;
  kernel.shared_bytes = sizeof(Storage);
  kernel.roles = {{Role::attend, 0, 4, 128}};
  Launch launch;
  launch.kernel = &kernel;
  launch.memory = {{"source", source, values.size() * sizeof(uint16_t), false},
                   {"out", params.out, kOutWords * sizeof(uint32_t), true}};
  launch.entry = [&](Machine& machine) { run(machine, contract.operation, params); };
  Options options;
  options.run = {mode, 0, 1};
  options.filter = filter;
  result.report = emulator::run(launch, options).report;
  return result;
}

class Contract : public testing::TestWithParam<Case> {};

TEST_P(Contract, HoldsOnTheEmulator) {
  for (const Mode mode : {Mode::timed, Mode::eager, Mode::lazy, Mode::random, Mode::adversarial}) {
    const Emulated result = emulate(GetParam(), mode, nullptr);
    EXPECT_EQ(result.report.text(), "");
    EXPECT_EQ(result.out, expected(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, Contract, testing::ValuesIn(cases()),
                         [](const auto& contract) { return contract.param.name; });

/// Drops every operation of one kind.
class Drop final : public emulator::OpFilter {
 public:
  explicit Drop(emulator::OpKind kind) : kind_(kind) {}
  bool pass(Op& op, const OpContext&) override { return op.kind != kind_; }

 private:
  emulator::OpKind kind_;
};

TEST(Contract, ACopyOverStoresWithoutAProxyFenceIsReported) {
  Drop no_fence(emulator::OpKind::fence_async);
  const Case box = cases().back();
  ASSERT_EQ(box.operation, Operation::box);
  for (const Mode mode : {Mode::timed, Mode::eager, Mode::lazy, Mode::random, Mode::adversarial}) {
    EXPECT_TRUE(emulate(box, mode, &no_fence).report.has("H3"));
  }
}

}  // namespace
}  // namespace deuce::contract
