// SPDX-License-Identifier: Apache-2.0
// Inputs, exact result and judgement of the ladder; see ladder.h.
#include "ladder.h"

#include <fmt/format.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "emulator/tensor_map.h"

namespace deuce::ladder {
namespace {

// P is rounded to bf16: 2^-9 of what it weighs, values of V up to 4 or so; and as much again.
constexpr double kTolerance = 0.02;

std::vector<Bf16> draw(int rows, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<Bf16> values(static_cast<std::size_t>(rows) * kDim + 8);
  for (Bf16& value : values) value = from_float<Bf16>(normal(random));
  return values;
}

/// 16-byte aligned start of an array.
const Bf16* aligned(const std::vector<Bf16>& values) {
  return values.data() + (16 - reinterpret_cast<uintptr_t>(values.data()) % 16) % 16 / 2;
}

TensorMap map_of(const Bf16* base, int rows) {
  TensorMapSpec spec;
  spec.base = base;
  spec.rank = 2;
  spec.extent = {kDim, static_cast<uint64_t>(rows)};
  spec.stride_bytes = {2 * kDim};
  spec.box = {kDim, kTileKeys};
  spec.swizzle = Swizzle::bytes128;
  return emulator::encode(spec);
}

/// Largest error against attention in double precision.
double worst_error(const Inputs& in) {
  double worst = 0;
  std::vector<double> p(kKeys);
  for (int row = 0; row < kRows; ++row) {
    double sum = 0;
    for (int key = 0; key < kKeys; ++key) {
      double score = 0;
      for (int d = 0; d < kDim; ++d) {
        score += double{to_float(in.q[row * kDim + d])} * double{to_float(in.k[key * kDim + d])};
      }
      sum += p[static_cast<std::size_t>(key)] = std::exp(score / 8);
    }
    for (int d = 0; d < kDim; ++d) {
      double exact = 0;
      for (int key = 0; key < kKeys; ++key) {
        exact += p[static_cast<std::size_t>(key)] * double{to_float(in.v[key * kDim + d])};
      }
      const double error = std::abs(exact / sum - double{in.out[row * kDim + d]});
      worst = error <= worst ? worst : error;  // NaN counts
    }
  }
  return worst;
}

}  // namespace

int run_step(const char* name, const emulator::KernelSpec& kernel,
             const std::function<void(Machine&, const Inputs&)>& body) {
  using emulator::Mode;
  const std::vector<Bf16> q = draw(kRows, 1), k = draw(kKeys, 2), v = draw(kKeys, 3);
  std::vector<float> out(kRows * kDim);
  Inputs in{aligned(q), aligned(k), aligned(v), out.data(), {}, {}, {}};
  in.q_map = map_of(in.q, kRows);
  in.k_map = map_of(in.k, kKeys);
  in.v_map = map_of(in.v, kKeys);
  emulator::Launch launch;
  launch.kernel = &kernel;
  launch.memory = {{"q", in.q, kRows * kDim * sizeof(Bf16), false},
                   {"k", in.k, kKeys * kDim * sizeof(Bf16), false},
                   {"v", in.v, kKeys * kDim * sizeof(Bf16), false},
                   {"out", out.data(), out.size() * sizeof(float), true}};
  launch.entry = [&](Machine& machine) { body(machine, in); };
  double cycles = 0;
  for (const Mode mode : {Mode::timed, Mode::eager, Mode::lazy, Mode::random, Mode::adversarial}) {
    out.assign(out.size(), NAN);
    emulator::Options options;
    options.run = {mode, 0, 1};
    const emulator::RunResult result = emulator::run(launch, options);
    if (mode == Mode::timed) cycles = result.cycles;
    const double error = worst_error(in);
    if (result.report.verdict() == emulator::Verdict::clean && error < kTolerance) continue;
    fmt::print("{}: {}, error {}\n{}", name, options.run.text(), error, result.report.text());
    return 1;
  }
  fmt::print("{:<22} {:>8.0f} cycles (simulated), right and clean in 5 schedule modes\n", name,
             cycles);
  return 0;
}

}  // namespace deuce::ladder
