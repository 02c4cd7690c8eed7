// SPDX-License-Identifier: Apache-2.0
// Counts visible keys request by request.
#include "traffic.h"

#include <algorithm>

#include "plan/problem.h"

namespace deuce::cli {
namespace {

int64_t live_end(const deuce_decode_config& config, const deuce_decode_args& args,
                 int32_t request) {
  if (args.kv_len != nullptr) return args.kv_len[request];
  if (args.page_indptr == nullptr) return args.kv_len_all;
  const int64_t pages = int64_t{args.page_indptr[request + 1]} - args.page_indptr[request];
  return pages == 0 ? 0 : (pages - 1) * config.page_size + args.last_page_len[request];
}

/// Keys that some row sees: the first row's window begins first, and the last row sees the last
/// key.
int64_t visible_keys(const deuce_decode_config& config, const deuce_decode_args& args,
                     int32_t request) {
  const int64_t end = live_end(config, args, request);
  const int64_t rows = args.cu_q_len == nullptr
                           ? args.q_len
                           : int64_t{args.cu_q_len[request + 1]} - args.cu_q_len[request];
  if (rows == 0) return 0;
  int64_t begin = args.kv_start == nullptr ? 0 : args.kv_start[request];
  if (config.window_left >= 0) begin = std::max(begin, end - rows - config.window_left);
  return std::max<int64_t>(0, end - begin);
}

}  // namespace

Traffic traffic_of(const deuce_decode_config& config, const deuce_decode_args& args) {
  Traffic traffic;
  for (int32_t request = 0; request < args.batch; ++request) {
    const int64_t keys = visible_keys(config, args, request);
    traffic.keys += keys;
    traffic.longest = std::max(traffic.longest, keys);
  }
  const int64_t element = dtype_bytes(static_cast<DType>(config.kv_dtype));
  int64_t per_key = (int64_t{config.head_dim_qk} + config.head_dim_v) * element;
  per_key += args.k_token_scale != nullptr ? 4 : 0;
  per_key += args.v_token_scale != nullptr ? 4 : 0;
  traffic.kv_bytes = traffic.keys * config.num_kv_heads * per_key;
  return traffic;
}

}  // namespace deuce::cli
