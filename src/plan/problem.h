// SPDX-License-Identifier: Apache-2.0
// Problem and Call: a config and its run arguments after validation, every default resolved.
// Made by src/api/validate only; every backend reads these and never the C structs of a caller.
#pragma once

#include <cstdint>

#include "deuce/deuce.h"

namespace deuce {

enum class DType : int32_t {
  f32 = DEUCE_F32,
  f16 = DEUCE_F16,
  bf16 = DEUCE_BF16,
  e4m3 = DEUCE_E4M3,
  e5m2 = DEUCE_E5M2
};
enum class Backend : int32_t {
  automatic = DEUCE_BACKEND_AUTO,
  cpu = DEUCE_BACKEND_CPU,
  hopper = DEUCE_BACKEND_HOPPER,
  blackwell = DEUCE_BACKEND_BLACKWELL,
  emulator = DEUCE_BACKEND_EMULATOR,
  reference = DEUCE_BACKEND_REFERENCE
};

constexpr int dtype_bytes(DType type) {
  return type == DType::f32 ? 4 : (type == DType::e4m3 || type == DType::e5m2) ? 1 : 2;
}
constexpr bool is_fp8(DType type) { return type == DType::e4m3 || type == DType::e5m2; }

/// What does not change from step to step (deuce_decode_config), defaults resolved.
struct Problem {
  Backend backend = Backend::cpu;         // never `automatic`
  Backend emulated = Backend::blackwell;  // emulator only
  uint32_t flags = 0;                     // DEUCE_FLAG_*
  int32_t device_id = -1;
  int32_t num_q_heads = 0, num_kv_heads = 0, group = 0;  // group = num_q_heads / num_kv_heads
  int32_t head_dim_qk = 0, head_dim_v = 0;
  DType q_type{}, kv_type{}, out_type{}, sink_type{};
  int32_t page_size = 0;  // 0 = contiguous
  int32_t max_batch = 0, max_q_len = 0;
  bool causal = false;  // already off for max_q_len 1
  int64_t max_kv_len = 0;
  int64_t window_left = -1, window_right = -1;  // inclusive counts, -1 = open
  float softmax_scale = 0, softcap = 0;         // scale resolved; softcap 0 = off
  bool lse_base2 = false;
  int32_t num_splits = 0, split_kv_len = 0;
  int32_t score_slots = 0, row_replicas = 0, sm_margin = 0;
  uint64_t emulator_seed = 0;
};

/// One step's arguments at full size, factors resolved (score_scale and out_scale never 0).
/// Field meanings are those of the public struct.
using Call = deuce_decode_args;

}  // namespace deuce
