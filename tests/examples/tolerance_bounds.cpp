// SPDX-License-Identifier: Apache-2.0
// Prints the bounds that judge.h applies, so that test_tolerance.py can hold the example's NumPy
// mirror against them. Arguments: rows q_heads kv_heads head_dim keys, and 1 if probabilities are
// rounded to bf16. Standard input: q, k, v as float32 in the layouts of the example, one request.
// The judge keeps its bounds to itself, so each is read from the share that a known error has of
// it.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "reference/judge.h"

namespace {

using deuce::Call;
using deuce::Problem;

std::vector<float> read_floats(std::size_t count) {
  std::vector<float> values(count);
  if (std::fread(values.data(), sizeof(float), count, stdin) != count) std::exit(3);
  return values;
}

void set_stride(int64_t (&stride)[3], int64_t first, int64_t second, int64_t third) {
  stride[0] = first;
  stride[1] = second;
  stride[2] = third;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  const int rows = std::atoi(argv[1]), q_heads = std::atoi(argv[2]), kv_heads = std::atoi(argv[3]);
  const int head_dim = std::atoi(argv[4]), keys = std::atoi(argv[5]);
  const std::size_t elements = std::size_t(rows) * q_heads * head_dim;
  const std::size_t cache = std::size_t(keys) * kv_heads * head_dim;
  const std::vector<float> q = read_floats(elements), k = read_floats(cache),
                           v = read_floats(cache);

  Problem problem;
  problem.num_q_heads = q_heads, problem.num_kv_heads = kv_heads;
  problem.group = q_heads / kv_heads;
  problem.head_dim_qk = problem.head_dim_v = head_dim;
  problem.q_type = problem.kv_type = problem.out_type = problem.sink_type = deuce::DType::f32;
  problem.max_batch = 1, problem.max_q_len = rows, problem.max_kv_len = keys;
  problem.causal = rows > 1;
  problem.softmax_scale = 1 / std::sqrt(static_cast<float>(head_dim));

  std::vector<float> out(elements);
  Call call{};
  call.batch = 1, call.q_len = rows;
  call.q = q.data(), call.k = k.data(), call.v = v.data(), call.out = out.data();
  set_stride(call.q_stride, int64_t{rows} * q_heads * head_dim, q_heads * head_dim, head_dim);
  set_stride(call.out_stride, int64_t{rows} * q_heads * head_dim, q_heads * head_dim, head_dim);
  set_stride(call.k_stride, int64_t{keys} * kv_heads * head_dim, kv_heads * head_dim, head_dim);
  set_stride(call.v_stride, int64_t{keys} * kv_heads * head_dim, kv_heads * head_dim, head_dim);
  call.kv_len_all = call.cache_slots = keys;
  call.num_pages = 1;
  call.score_scale = call.out_scale = 1;
  const deuce::Problem bf16_cache{.kv_type = deuce::DType::bf16};
  const auto precision = std::atoi(argv[6]) != 0
                             ? deuce::reference::precision_of(deuce::Backend::hopper, bf16_cache)
                             : deuce::reference::Precision{};

  // An error of about 2^40 dwarfs every other element's share and the exact value beside it.
  constexpr float kFarOff = 0x1p40F;
  for (float& element : out) {
    element = kFarOff;
    std::printf("%.17g\n",
                double{kFarOff} / deuce::reference::judge(problem, call, precision).worst_ratio);
    element = 0;
  }
}
