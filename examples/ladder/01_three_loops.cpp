// SPDX-License-Identifier: Apache-2.0
// Step 1: attention is three loops. A thread owns a row: scores, softmax, weighted sum of values.
// Everything comes from global memory, and all scores of a row must be kept.
#include <array>

#include "ladder.h"

namespace deuce::ladder {
namespace {

void attend(Machine& machine, const Inputs& in) {
  const int row = machine.thread();
  const Row q = load_row(machine, in.q + row * kDim);
  std::array<float, kKeys> p;

  float max = -__builtin_huge_valf();
  for (int key = 0; key < kKeys; ++key) {  // loop 1: scores
    const Row k = load_row(machine, in.k + key * kDim);
    float score = 0;
    for (std::size_t d = 0; d < kDim; ++d) score += q[d] * k[d];
    p[static_cast<std::size_t>(key)] = score * kScaleLog2;
    max = score * kScaleLog2 > max ? score * kScaleLog2 : max;
  }

  float sum = 0;
  for (float& value : p) {  // loop 2: softmax
    value = machine.exp2(value - max);
    sum += value;
  }
  machine.charge(Work::exp2, kKeys);

  Row out{};
  for (int key = 0; key < kKeys; ++key) {  // loop 3: values
    const Row v = load_row(machine, in.v + key * kDim);
    for (std::size_t d = 0; d < kDim; ++d) out[d] += p[static_cast<std::size_t>(key)] * v[d];
  }
  for (std::size_t d = 0; d < kDim; ++d) {
    machine.store_global(in.out + row * kDim + static_cast<int>(d), out[d] / sum);
  }
}

}  // namespace
}  // namespace deuce::ladder

int main() {
  deuce::emulator::KernelSpec kernel;
  kernel.threads = deuce::ladder::kRows;
  kernel.roles = {{deuce::Role::attend, 0, 4, 128}};
  return deuce::ladder::run_step("01_three_loops", kernel, deuce::ladder::attend);
}
