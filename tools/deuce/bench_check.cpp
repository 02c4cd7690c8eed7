// SPDX-License-Identifier: Apache-2.0
// Each chosen request is judged as a batch of one: the same arguments, moved to its place.
#include "bench_check.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "result.h"
#include "verify.h"

namespace deuce::cli {
namespace {

/// Scores that are judged after the longest request; double precision does some 10^7 a second.
constexpr int64_t kScoreBudget = 1 << 20;

template <class T>
T* moved(T* pointer, int64_t elements, DType type) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return static_cast<Byte*>(pointer) + elements * dtype_bytes(type);
}

deuce_decode_args request_alone(const deuce_decode_config& config, deuce_decode_args args,
                                int32_t request) {
  args.batch = 1;
  args.q = moved(args.q, request * args.q_stride[0], static_cast<DType>(config.q_dtype));
  args.out = moved(args.out, request * args.out_stride[0], resolved_out_dtype(config));
  args.lse += request * args.lse_stride[0];
  args.kv_len += request;
  if (args.kv_start != nullptr) args.kv_start += request;
  if (args.block_table != nullptr) {
    args.block_table += request * args.block_table_stride;
  } else {
    const auto type = static_cast<DType>(config.kv_dtype);
    args.k = moved(args.k, request * args.k_stride[0], type);
    args.v = moved(args.v, request * args.v_stride[0], type);
    args.num_pages = 1;
  }
  return args;
}

int64_t length_of(const deuce_decode_args& args, int32_t request) {
  return args.kv_len[request] - (args.kv_start == nullptr ? 0 : args.kv_start[request]);
}

}  // namespace

Result<BenchCheck> check_requests(const deuce_decode_config& config, const deuce_decode_args& args,
                                  Backend used) {
  std::vector<int32_t> order(static_cast<std::size_t>(args.batch));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&args](int32_t a, int32_t b) {
    return length_of(args, a) < length_of(args, b);
  });
  std::rotate(order.begin(), order.end() - 1,
              order.end());  // the longest first, then from the shortest on

  BenchCheck check{.of = args.batch, .first_failure = {}};
  int64_t scores = 0;
  for (const int32_t request : order) {
    const int64_t more = length_of(args, request) * args.q_len * config.num_q_heads;
    if (check.requests > 0 && scores + more > kScoreBudget) continue;
    scores += check.requests > 0 ? more : 0;
    const auto verdict = verify(config, request_alone(config, args, request), used);
    if (!verdict.ok()) return verdict.status();
    ++check.requests;
    check.worst_ratio = std::max(check.worst_ratio, verdict.value().worst_ratio);
    if (verdict.value().ok || !check.ok) continue;
    check.ok = false;
    check.first_failure =
        fmt::format("request {} (alone): {}", request, verdict.value().first_failure);
  }
  return check;
}

}  // namespace deuce::cli
