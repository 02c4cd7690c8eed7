// SPDX-License-Identifier: Apache-2.0
// Allocation, fetching and writing of what a call computes.
#include "result.h"

namespace deuce::cli {
namespace {

io::TensorType tensor_type_of(DType type) {
  switch (type) {
    case DType::f32: return io::TensorType::f32;
    case DType::f16: return io::TensorType::f16;
    case DType::bf16: return io::TensorType::bf16;
    case DType::e4m3: return io::TensorType::e4m3;
    case DType::e5m2: return io::TensorType::e5m2;
  }
  return io::TensorType::f32;
}

/// All ones is a NaN in every type that a result can have: a row nobody wrote shows.
constexpr std::byte kUnwritten{0xff};

}  // namespace

DType resolved_out_dtype(const deuce_decode_config& config) {
  if (config.out_dtype != 0) return static_cast<DType>(config.out_dtype);
  const auto q_type = static_cast<DType>(config.q_dtype);
  return is_fp8(q_type) ? DType::bf16 : q_type;
}

Result<CallResult> CallResult::create(Device& device, const deuce_decode_config& config,
                                      int64_t rows, deuce_decode_args& args) {
  CallResult result;
  const DType type = resolved_out_dtype(config);
  result.out_type_ = tensor_type_of(type);
  result.out_shape_ = {rows, config.num_q_heads, config.head_dim_v};
  result.lse_shape_ = {rows, config.num_q_heads};
  const auto heads = static_cast<std::size_t>(rows) * static_cast<std::size_t>(config.num_q_heads);
  result.lse_.assign(heads * sizeof(float), kUnwritten);
  result.out_.assign(heads * static_cast<std::size_t>(config.head_dim_v * dtype_bytes(type)),
                     kUnwritten);
  Result<Memory> out = device.allocate(result.out_.size());
  if (!out.ok()) return out.status();
  Result<Memory> lse = device.allocate(result.lse_.size());
  if (!lse.ok()) return lse.status();
  result.out_memory_ = out.value();
  result.lse_memory_ = lse.value();
  if (Status status =
          device.upload(result.out_memory_.get(), result.out_.data(), result.out_.size());
      !status.ok())
    return status;
  if (Status status =
          device.upload(result.lse_memory_.get(), result.lse_.data(), result.lse_.size());
      !status.ok())
    return status;
  args.out = result.out_memory_.get();
  args.lse = reinterpret_cast<float*>(result.lse_memory_.get());
  return result;
}

Status CallResult::fetch(Device& device) {
  if (Status status = device.download(out_.data(), out_memory_.get(), out_.size()); !status.ok())
    return status;
  return device.download(lse_.data(), lse_memory_.get(), lse_.size());
}

deuce_decode_args CallResult::on_host(deuce_decode_args args) {
  args.out = out_.data();
  args.lse = reinterpret_cast<float*>(lse_.data());
  return args;
}

Status CallResult::write(const std::string& path, const io::Metadata& metadata) const {
  const std::vector<io::TensorView> tensors{
      {"out", out_type_, out_shape_, out_.data(), out_.size()},
      {"lse", io::TensorType::f32, lse_shape_, lse_.data(), lse_.size()}};
  return io::write_safetensors(path, tensors, metadata);
}

}  // namespace deuce::cli
