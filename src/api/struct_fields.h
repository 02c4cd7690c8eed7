// SPDX-License-Identifier: Apache-2.0
// Where the fields of the versioned structs lie, so that a struct_size which ends inside one can be
// refused by its name. Used by structs.cpp; a field that is missing here does not compile.
#pragma once

#include <cstddef>

#include "deuce/deuce.h"

namespace deuce {

struct StructField {
  const char* name;
  std::size_t begin, bytes;
};

/// Whether each field begins where the one before it ends: none of the structs has padding.
template <std::size_t kCount>
consteval bool fills(const StructField (&fields)[kCount], std::size_t struct_bytes) {
  std::size_t end = 0;
  for (const StructField& field : fields) {
    if (field.begin != end) return false;
    end = field.begin + field.bytes;
  }
  return end == struct_bytes;
}

struct ConfigFields {
  using S = deuce_decode_config;
  static constexpr StructField kList[] = {
      {"struct_size", offsetof(S, struct_size), sizeof(S::struct_size)},
      {"flags", offsetof(S, flags), sizeof(S::flags)},
      {"backend", offsetof(S, backend), sizeof(S::backend)},
      {"emulated_backend", offsetof(S, emulated_backend), sizeof(S::emulated_backend)},
      {"device_type", offsetof(S, device_type), sizeof(S::device_type)},
      {"device_id", offsetof(S, device_id), sizeof(S::device_id)},
      {"num_q_heads", offsetof(S, num_q_heads), sizeof(S::num_q_heads)},
      {"num_kv_heads", offsetof(S, num_kv_heads), sizeof(S::num_kv_heads)},
      {"head_dim_qk", offsetof(S, head_dim_qk), sizeof(S::head_dim_qk)},
      {"head_dim_v", offsetof(S, head_dim_v), sizeof(S::head_dim_v)},
      {"q_dtype", offsetof(S, q_dtype), sizeof(S::q_dtype)},
      {"kv_dtype", offsetof(S, kv_dtype), sizeof(S::kv_dtype)},
      {"out_dtype", offsetof(S, out_dtype), sizeof(S::out_dtype)},
      {"sink_dtype", offsetof(S, sink_dtype), sizeof(S::sink_dtype)},
      {"page_size", offsetof(S, page_size), sizeof(S::page_size)},
      {"max_batch", offsetof(S, max_batch), sizeof(S::max_batch)},
      {"max_q_len", offsetof(S, max_q_len), sizeof(S::max_q_len)},
      {"causal", offsetof(S, causal), sizeof(S::causal)},
      {"max_kv_len", offsetof(S, max_kv_len), sizeof(S::max_kv_len)},
      {"window_left", offsetof(S, window_left), sizeof(S::window_left)},
      {"window_right", offsetof(S, window_right), sizeof(S::window_right)},
      {"softmax_scale", offsetof(S, softmax_scale), sizeof(S::softmax_scale)},
      {"softcap", offsetof(S, softcap), sizeof(S::softcap)},
      {"lse_base", offsetof(S, lse_base), sizeof(S::lse_base)},
      {"num_splits", offsetof(S, num_splits), sizeof(S::num_splits)},
      {"split_kv_len", offsetof(S, split_kv_len), sizeof(S::split_kv_len)},
      {"score_slots", offsetof(S, score_slots), sizeof(S::score_slots)},
      {"sm_margin", offsetof(S, sm_margin), sizeof(S::sm_margin)},
      {"row_replicas", offsetof(S, row_replicas), sizeof(S::row_replicas)},
      {"emulator_seed", offsetof(S, emulator_seed), sizeof(S::emulator_seed)},
  };
};
static_assert(fills(ConfigFields::kList, sizeof(deuce_decode_config)));

struct ArgsFields {
  using S = deuce_decode_args;
  static constexpr StructField kList[] = {
      {"struct_size", offsetof(S, struct_size), sizeof(S::struct_size)},
      {"tag", offsetof(S, tag), sizeof(S::tag)},
      {"batch", offsetof(S, batch), sizeof(S::batch)},
      {"q_len", offsetof(S, q_len), sizeof(S::q_len)},
      {"q", offsetof(S, q), sizeof(S::q)},
      {"k", offsetof(S, k), sizeof(S::k)},
      {"v", offsetof(S, v), sizeof(S::v)},
      {"out", offsetof(S, out), sizeof(S::out)},
      {"lse", offsetof(S, lse), sizeof(S::lse)},
      {"q_stride", offsetof(S, q_stride), sizeof(S::q_stride)},
      {"out_stride", offsetof(S, out_stride), sizeof(S::out_stride)},
      {"lse_stride", offsetof(S, lse_stride), sizeof(S::lse_stride)},
      {"k_stride", offsetof(S, k_stride), sizeof(S::k_stride)},
      {"v_stride", offsetof(S, v_stride), sizeof(S::v_stride)},
      {"cu_q_len", offsetof(S, cu_q_len), sizeof(S::cu_q_len)},
      {"kv_len", offsetof(S, kv_len), sizeof(S::kv_len)},
      {"kv_start", offsetof(S, kv_start), sizeof(S::kv_start)},
      {"kv_len_all", offsetof(S, kv_len_all), sizeof(S::kv_len_all)},
      {"cache_slots", offsetof(S, cache_slots), sizeof(S::cache_slots)},
      {"cache_row", offsetof(S, cache_row), sizeof(S::cache_row)},
      {"block_table", offsetof(S, block_table), sizeof(S::block_table)},
      {"block_table_stride", offsetof(S, block_table_stride), sizeof(S::block_table_stride)},
      {"block_table_columns", offsetof(S, block_table_columns), sizeof(S::block_table_columns)},
      {"num_pages", offsetof(S, num_pages), sizeof(S::num_pages)},
      {"page_indptr", offsetof(S, page_indptr), sizeof(S::page_indptr)},
      {"page_indices", offsetof(S, page_indices), sizeof(S::page_indices)},
      {"last_page_len", offsetof(S, last_page_len), sizeof(S::last_page_len)},
      {"sink", offsetof(S, sink), sizeof(S::sink)},
      {"q_descale", offsetof(S, q_descale), sizeof(S::q_descale)},
      {"k_descale", offsetof(S, k_descale), sizeof(S::k_descale)},
      {"v_descale", offsetof(S, v_descale), sizeof(S::v_descale)},
      {"q_descale_stride", offsetof(S, q_descale_stride), sizeof(S::q_descale_stride)},
      {"k_descale_stride", offsetof(S, k_descale_stride), sizeof(S::k_descale_stride)},
      {"v_descale_stride", offsetof(S, v_descale_stride), sizeof(S::v_descale_stride)},
      {"k_token_scale", offsetof(S, k_token_scale), sizeof(S::k_token_scale)},
      {"v_token_scale", offsetof(S, v_token_scale), sizeof(S::v_token_scale)},
      {"k_token_scale_stride", offsetof(S, k_token_scale_stride), sizeof(S::k_token_scale_stride)},
      {"v_token_scale_stride", offsetof(S, v_token_scale_stride), sizeof(S::v_token_scale_stride)},
      {"score_scale", offsetof(S, score_scale), sizeof(S::score_scale)},
      {"out_scale", offsetof(S, out_scale), sizeof(S::out_scale)},
      {"tree_mask", offsetof(S, tree_mask), sizeof(S::tree_mask)},
      {"tree_mask_stride", offsetof(S, tree_mask_stride), sizeof(S::tree_mask_stride)},
      {"trace", offsetof(S, trace), sizeof(S::trace)},
      {"trace_bytes", offsetof(S, trace_bytes), sizeof(S::trace_bytes)},
  };
};
static_assert(fills(ArgsFields::kList, sizeof(deuce_decode_args)));

struct FaultFields {
  using S = deuce_fault;
  static constexpr StructField kList[] = {
      {"struct_size", offsetof(S, struct_size), sizeof(S::struct_size)},
      {"code", offsetof(S, code), sizeof(S::code)},
      {"request", offsetof(S, request), sizeof(S::request)},
      {"column", offsetof(S, column), sizeof(S::column)},
      {"value", offsetof(S, value), sizeof(S::value)},
      {"lowest", offsetof(S, lowest), sizeof(S::lowest)},
      {"highest", offsetof(S, highest), sizeof(S::highest)},
      {"tag", offsetof(S, tag), sizeof(S::tag)},
      {"reserved", offsetof(S, reserved), sizeof(S::reserved)},
  };
};
static_assert(fills(FaultFields::kList, sizeof(deuce_fault)));

}  // namespace deuce
