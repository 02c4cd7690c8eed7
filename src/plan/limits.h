// SPDX-License-Identifier: Apache-2.0
// The documented upper ends of counts, the same on every backend; deuce.h states them in prose.
// Within them every product of two counts fits in 64 bits, and a key position fits in int32.
#pragma once

#include <cstddef>
#include <cstdint>

namespace deuce {

inline constexpr int32_t kMaxHeads = 1 << 20;
inline constexpr int32_t kMaxHeadDim = 1 << 12;
inline constexpr int32_t kMaxBatch = 1 << 24;
inline constexpr int32_t kMaxQLen = 1 << 20;
inline constexpr int32_t kMaxPageSize = 1 << 24;
inline constexpr int64_t kMaxKvLen = INT32_MAX;
inline constexpr int32_t kMaxSplits = 256;
inline constexpr int32_t kSplitGranule = 128;  // split_kv_len is a multiple: the largest KV tile
inline constexpr int32_t kMaxScoreSlots = 3;
/// Packed rows (q_len * group) of a request, and parts of all items of a plan (kernel/partials.h).
inline constexpr int64_t kMaxRows = INT32_MAX;
inline constexpr int64_t kMaxParts = int64_t{1} << 40;
inline constexpr std::size_t kWorkspaceAlignment = 256;

/// Bytes of a workspace part, rounded up so that the next part is aligned.
constexpr std::size_t workspace_aligned(std::size_t bytes) {
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

}  // namespace deuce
