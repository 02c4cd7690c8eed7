// SPDX-License-Identifier: Apache-2.0
// Step 2: one loop. A running maximum and sum make the array of scores unnecessary: when a larger
// score comes, what has been summed so far shrinks by 2^(old maximum - new maximum). K and V are
// read once, side by side, and memory no longer grows with the context.
#include "ladder.h"

namespace deuce::ladder {
namespace {

void attend(Machine& machine, const Inputs& in) {
  const int row = machine.thread();
  const Row q = load_row(machine, in.q + row * kDim);
  float max = -__builtin_huge_valf(), sum = 0;
  Row out{};
  for (int key = 0; key < kKeys; ++key) {
    const Row k = load_row(machine, in.k + key * kDim);
    const Row v = load_row(machine, in.v + key * kDim);
    float score = 0;
    for (std::size_t d = 0; d < kDim; ++d) score += q[d] * k[d];
    score *= kScaleLog2;
    const float larger = score > max ? score : max;
    const float shrink = machine.exp2(max - larger), p = machine.exp2(score - larger);
    machine.charge(Work::exp2, 2);
    max = larger;
    sum = sum * shrink + p;
    for (std::size_t d = 0; d < kDim; ++d) out[d] = out[d] * shrink + p * v[d];
    machine.charge(Work::fma, kDim);
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
  return deuce::ladder::run_step("02_one_loop", kernel, deuce::ladder::attend);
}
