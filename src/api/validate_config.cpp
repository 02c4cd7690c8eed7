// SPDX-License-Identifier: Apache-2.0
// Config rules that hold on every backend, in the order of the struct's fields.
// A value that no backend could accept is invalid here; the rest is each backend's own check.
#include <cmath>

#include "api/checks.h"
#include "api/device.h"
#include "api/validate.h"
#include "plan/limits.h"
#include "plan/names.h"

namespace deuce {
namespace {

constexpr uint32_t kKnownFlags = DEUCE_FLAG_TRACE | DEUCE_FLAG_WORKSPACE_KEPT | DEUCE_FLAG_PDL;

Status in_range(const char* field, int64_t value, int64_t lowest, int64_t highest) {
  if (value >= lowest && value <= highest) return {};
  return invalid(field, "{} is {}: it must be in {} .. {}", field, value, lowest, highest);
}

bool is_dtype(int32_t value) { return value >= DEUCE_F32 && value <= DEUCE_E5M2; }

Status check_backend(const deuce_decode_config& config) {
  if (config.flags & ~kKnownFlags) {
    return invalid("flags", "flags has unknown bits 0x{:x}: the known ones are 0x{:x}",
                   config.flags & ~kKnownFlags, kKnownFlags);
  }
  if ((config.flags & DEUCE_FLAG_PDL) != 0 && (config.flags & DEUCE_FLAG_WORKSPACE_KEPT) == 0) {
    return invalid("flags",
                   "flags has DEUCE_FLAG_PDL without DEUCE_FLAG_WORKSPACE_KEPT: clearing the "
                   "workspace would stand between the two kernels");
  }
  if (config.backend < DEUCE_BACKEND_AUTO || config.backend > DEUCE_BACKEND_REFERENCE) {
    return invalid("backend", "backend is {}: it must be one of DEUCE_BACKEND_*, 0 .. 5",
                   config.backend);
  }
  if (config.emulated_backend != 0 && !is_gpu(Backend{config.emulated_backend})) {
    return invalid("emulated_backend",
                   "emulated_backend is {}: it must be 0, DEUCE_BACKEND_HOPPER (2) or "
                   "DEUCE_BACKEND_BLACKWELL (3)",
                   config.emulated_backend);
  }
  if (config.emulated_backend != 0 && config.backend != DEUCE_BACKEND_EMULATOR) {
    return invalid("emulated_backend",
                   "emulated_backend is {} but backend is {}: only emulator has it",
                   config.emulated_backend, name_of(Backend{config.backend}));
  }
  if (config.emulator_seed != 0 && config.backend != DEUCE_BACKEND_EMULATOR) {
    return invalid("emulator_seed", "emulator_seed is {} but backend is {}: only emulator has it",
                   config.emulator_seed, name_of(Backend{config.backend}));
  }
  return {};
}

Status check_device(const deuce_decode_config& config) {
  if (config.device_type != 0 && config.device_type != kDeviceCpu &&
      config.device_type != kDeviceCuda) {
    return invalid("device_type",
                   "device_type is {}: it must be 0 (implied by backend), 1 (CPU) or 2 (CUDA)",
                   config.device_type);
  }
  if (config.device_id < -1) {
    return invalid("device_id",
                   "device_id is {}: it must be -1 (current device) or a device number",
                   config.device_id);
  }
  const bool wants_cuda = is_gpu(Backend{config.backend});
  const bool automatic = config.backend == DEUCE_BACKEND_AUTO;
  const bool on_host = automatic ? config.device_type != kDeviceCuda : !wants_cuda;
  if (on_host && config.device_id > 0) {
    return invalid("device_id", "device_id is {}: host memory has device 0 only", config.device_id);
  }
  if (automatic || config.device_type == 0) return {};
  if (wants_cuda != (config.device_type == kDeviceCuda)) {
    return invalid("device_type", "device_type is {} but backend {} works on {} memory",
                   config.device_type == kDeviceCuda ? "2 (CUDA)" : "1 (CPU)",
                   name_of(Backend{config.backend}), wants_cuda ? "CUDA" : "CPU");
  }
  return {};
}

Status check_heads(const deuce_decode_config& config) {
  if (Status bad = in_range("num_q_heads", config.num_q_heads, 1, kMaxHeads); !bad.ok()) return bad;
  if (Status bad = in_range("num_kv_heads", config.num_kv_heads, 1, kMaxHeads); !bad.ok())
    return bad;
  if (config.num_q_heads % config.num_kv_heads != 0) {
    return invalid("num_q_heads", "num_q_heads is {}: it must be a multiple of num_kv_heads, {}",
                   config.num_q_heads, config.num_kv_heads);
  }
  if (Status bad = in_range("head_dim_qk", config.head_dim_qk, 1, kMaxHeadDim); !bad.ok())
    return bad;
  return in_range("head_dim_v", config.head_dim_v, 1, kMaxHeadDim);
}

Status check_dtype(const char* field, int32_t value, bool may_be_default) {
  if (is_dtype(value) || (may_be_default && value == 0)) return {};
  return invalid(field,
                 "{} is {}: it must be {}DEUCE_F32 (1), F16 (2), BF16 (3), E4M3 (4) or E5M2 (5)",
                 field, value, may_be_default ? "0 (default), " : "");
}

Status check_dtypes(const deuce_decode_config& config) {
  if (Status bad = check_dtype("q_dtype", config.q_dtype, false); !bad.ok()) return bad;
  if (Status bad = check_dtype("kv_dtype", config.kv_dtype, false); !bad.ok()) return bad;
  if (Status bad = check_dtype("out_dtype", config.out_dtype, true); !bad.ok()) return bad;
  if (Status bad = check_dtype("sink_dtype", config.sink_dtype, true); !bad.ok()) return bad;
  for (const auto& [field, value] :
       {std::pair{"out_dtype", config.out_dtype}, std::pair{"sink_dtype", config.sink_dtype}}) {
    if (value != 0 && is_fp8(DType{value})) {
      return unsupported(field, "{} is {}: no backend has fp8 there; take f32, f16 or bf16", field,
                         name_of(DType{value}));
    }
  }
  return {};
}

Status check_extents(const deuce_decode_config& config) {
  if (Status bad = in_range("page_size", config.page_size, 0, kMaxPageSize); !bad.ok()) return bad;
  if (Status bad = in_range("max_batch", config.max_batch, 1, kMaxBatch); !bad.ok()) return bad;
  if (Status bad = in_range("max_q_len", config.max_q_len, 1, kMaxQLen); !bad.ok()) return bad;
  if (Status bad = in_range("causal", config.causal, 0, 1); !bad.ok()) return bad;
  if (Status bad = in_range("max_kv_len", config.max_kv_len, 1, kMaxKvLen); !bad.ok()) return bad;
  const int64_t rows = int64_t{config.max_q_len} * (config.num_q_heads / config.num_kv_heads);
  if (rows > kMaxRows) {
    return unsupported("max_q_len",
                       "max_q_len is {}: with {} query heads a KV head that is more "
                       "than the {} rows that a request may have",
                       config.max_q_len, config.num_q_heads / config.num_kv_heads, kMaxRows);
  }
  for (const auto& [field, value] : {std::pair{"window_left", config.window_left},
                                     std::pair{"window_right", config.window_right}}) {
    if (value < -1) {
      return invalid(field, "{} is {}: it must be -1 (open) or a count of keys, 0 or more", field,
                     value);
    }
  }
  return {};
}

float resolved_scale(const deuce_decode_config& config) {
  if (config.softmax_scale != 0) return config.softmax_scale;
  return 1.0f / std::sqrt(static_cast<float>(config.head_dim_qk));
}

Status check_numbers(const deuce_decode_config& config) {
  if (!std::isfinite(config.softmax_scale)) {
    return invalid("softmax_scale",
                   "softmax_scale is {}: it must be finite, or 0 for 1 / sqrt(head_dim_qk)",
                   config.softmax_scale);
  }
  if (!std::isfinite(config.softcap) || config.softcap < 0) {
    return invalid("softcap", "softcap is {}: it must be 0 (off) or positive and finite",
                   config.softcap);
  }
  if (!std::isfinite(config.softcap * kLog2OfE)) {
    return invalid(
        "softcap",
        "softcap is {}: it must be below 2.35e38, as scores times log2(e) must be finite "
        "in fp32",
        config.softcap);
  }
  const float scale = resolved_scale(config);
  return config.lse_base != 0 && config.lse_base != 2
             ? invalid("lse_base", "lse_base is {}: it must be 0 (natural) or 2", config.lse_base)
             : check_score_factor("softmax_scale", scale, scale, config.softcap);
}

Status check_ways(const deuce_decode_config& config) {
  if (Status bad = in_range("num_splits", config.num_splits, 0, kMaxSplits); !bad.ok()) return bad;
  if (config.split_kv_len < 0 || config.split_kv_len % kSplitGranule != 0) {
    return invalid("split_kv_len", "split_kv_len is {}: it must be 0 or a multiple of {}",
                   config.split_kv_len, kSplitGranule);
  }
  const int64_t rows = int64_t{config.max_q_len} * (config.num_q_heads / config.num_kv_heads);
  const double parts = static_cast<double>(config.max_batch) * config.num_kv_heads *
                       static_cast<double>(rows) * std::max(config.num_splits, 1);
  if (config.num_splits > 0 && parts > static_cast<double>(kMaxParts)) {
    return unsupported("num_splits",
                       "num_splits is {}: with max_batch {}, {} KV heads and {} rows "
                       "that is more than the {} parts that a workspace may hold",
                       config.num_splits, config.max_batch, config.num_kv_heads, rows, kMaxParts);
  }
  if (config.num_splits != 0 && config.split_kv_len != 0) {
    return invalid("split_kv_len", "split_kv_len is {} and num_splits is {}: give one of them",
                   config.split_kv_len, config.num_splits);
  }
  if (Status bad = in_range("score_slots", config.score_slots, 0, kMaxScoreSlots); !bad.ok()) {
    return bad;
  }
  if (config.sm_margin < 0) {
    return invalid("sm_margin", "sm_margin is {}: it must be 0 or more", config.sm_margin);
  }
  const int32_t replicas = config.row_replicas;
  if (replicas != 0 && replicas != 1 && replicas != 2 && replicas != 4) {
    return invalid("row_replicas", "row_replicas is {}: it must be 0 (choose), 1, 2 or 4",
                   replicas);
  }
  return {};
}

DType resolve_out_type(const deuce_decode_config& config) {
  if (config.out_dtype != 0) return DType{config.out_dtype};
  return is_fp8(DType{config.q_dtype}) ? DType::bf16 : DType{config.q_dtype};
}

Problem resolve(const deuce_decode_config& config) {
  Problem problem;
  problem.backend = Backend{config.backend};
  problem.emulated =
      config.emulated_backend != 0 ? Backend{config.emulated_backend} : Backend::blackwell;
  problem.flags = config.flags;
  problem.device_id = config.device_id;
  problem.num_q_heads = config.num_q_heads;
  problem.num_kv_heads = config.num_kv_heads;
  problem.group = config.num_q_heads / config.num_kv_heads;
  problem.head_dim_qk = config.head_dim_qk;
  problem.head_dim_v = config.head_dim_v;
  problem.q_type = DType{config.q_dtype};
  problem.kv_type = DType{config.kv_dtype};
  problem.out_type = resolve_out_type(config);
  problem.sink_type = config.sink_dtype != 0 ? DType{config.sink_dtype} : DType::f32;
  problem.page_size = config.page_size;
  problem.max_batch = config.max_batch;
  problem.max_q_len = config.max_q_len;
  problem.causal = config.causal != 0 && config.max_q_len > 1;
  problem.max_kv_len = config.max_kv_len;
  problem.window_left = config.window_left;
  problem.window_right = config.window_right;
  problem.softmax_scale = resolved_scale(config);
  problem.softcap = config.softcap;
  problem.lse_base2 = config.lse_base == 2;
  problem.num_splits = config.num_splits;
  problem.split_kv_len = config.split_kv_len;
  problem.score_slots = config.score_slots;
  problem.row_replicas = config.row_replicas;
  problem.sm_margin = config.sm_margin;
  problem.emulator_seed = config.emulator_seed;
  return problem;
}

}  // namespace

Result<Problem> validate_config(const deuce_decode_config& config) {
  for (Status (*check)(const deuce_decode_config&) :
       {check_backend, check_device, check_heads, check_dtypes, check_extents, check_numbers,
        check_ways}) {
    if (Status bad = check(config); !bad.ok()) return bad;
  }
  return resolve(config);
}

}  // namespace deuce
