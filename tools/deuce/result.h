// SPDX-License-Identifier: Apache-2.0
// Output and LSE of one call: memory on the device, a copy on the host, the file they go to.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "device.h"
#include "io/safetensors.h"

namespace deuce::cli {

/// The type a backend writes when out_dtype is 0.
DType resolved_out_dtype(const deuce_decode_config& config);

class CallResult {
 public:
  /// Allocates both tensors for `rows` query rows, filled with a NaN pattern, and points args to
  /// them.
  static Result<CallResult> create(Device& device, const deuce_decode_config& config, int64_t rows,
                                   deuce_decode_args& args);
  /// Copies both to the host.
  Status fetch(Device& device);
  bool same_bits(const CallResult& other) const { return out_ == other.out_ && lse_ == other.lse_; }
  /// args whose out and lse are the host copies: what the judge reads.
  deuce_decode_args on_host(deuce_decode_args args);
  Status write(const std::string& path, const io::Metadata& metadata) const;

 private:
  std::vector<int64_t> out_shape_, lse_shape_;
  io::TensorType out_type_{};
  Memory out_memory_, lse_memory_;
  std::vector<std::byte> out_, lse_;
};

}  // namespace deuce::cli
