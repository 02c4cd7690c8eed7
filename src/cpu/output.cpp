// SPDX-License-Identifier: Apache-2.0
// Reading sinks and rounding results; see output.h.
#include "cpu/output.h"

namespace deuce::cpu {
namespace {

template <class T>
T rounded(float value) {
  if constexpr (std::is_same_v<T, float>)
    return value;
  else
    return from_float<T>(value);
}

template <class T>
void store_row(std::byte* to, const float* o, float scale, int count) {
  for (int i = 0; i < count; ++i) {
    const T value = rounded<T>(o[i] * scale);
    std::memcpy(to + i * static_cast<int>(sizeof value), &value, sizeof value);
  }
}

}  // namespace

float RowWriter::sink_of(int64_t head) const {
  if (call_.sink == nullptr) return kNoKey;
  const auto* at =
      static_cast<const std::byte*>(call_.sink) + head * dtype_bytes(problem_.sink_type);
  if (problem_.sink_type == DType::f32) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value * kLog2E;
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  const float value =
      problem_.sink_type == DType::bf16 ? to_float(Bf16{bits}) : to_float(Half{bits});
  return value * kLog2E;
}

void RowWriter::put(int64_t request, int64_t token, int64_t head, const float* o,
                    const RowResult& result) const {
  const int size = dtype_bytes(problem_.out_type);
  auto* to = static_cast<std::byte*>(call_.out) + view_.out_offset(request, token, head) * size;
  if (o == nullptr) {
    std::memset(to, 0, static_cast<std::size_t>(problem_.head_dim_v) * size);
  } else if (problem_.out_type == DType::bf16) {
    store_row<Bf16>(to, o, result.scale, problem_.head_dim_v);
  } else if (problem_.out_type == DType::f16) {
    store_row<Half>(to, o, result.scale, problem_.head_dim_v);
  } else {
    store_row<float>(to, o, result.scale, problem_.head_dim_v);
  }
  if (call_.lse != nullptr) call_.lse[view_.lse_offset(request, token, head)] = result.lse;
}

}  // namespace deuce::cpu
