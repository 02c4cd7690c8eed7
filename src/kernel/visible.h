// SPDX-License-Identifier: Apache-2.0
// Which keys a row sees, as one interval of logical positions: live AND causal AND window.
// Used by the work cutting and by every kernel's masks. Positions are 64-bit, so that windows and
// lengths near any limit add without care; the reference asks the same question key by key.
#pragma once

#include <cstdint>

namespace deuce {

/// Causal and window rule of a call.
struct MaskRule {
  bool causal = false;
  int64_t window_left = -1, window_right = -1;  // keys beyond the own position, -1 = open
};

/// Live sizes of one request, read at run time. Live keys are kv_start .. kv_len - 1.
struct RequestSizes {
  int64_t kv_start = 0, kv_len = 0;
  int32_t q_len = 0;
};

/// Keys first .. last - 1; nothing when last <= first.
struct KeySpan {
  int64_t first = 0, last = 0;
  constexpr bool empty() const { return last <= first; }
};

constexpr int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

/// Keys that at least one of the rows first_row .. last_row (inclusive) sees. The union of
/// neighbouring rows is an interval, because each row's own position lies inside its window.
constexpr KeySpan visible_keys(const MaskRule& mask, const RequestSizes& sizes, int64_t first_row,
                               int64_t last_row) {
  const int64_t offset = sizes.kv_len - sizes.q_len;  // bottom-right: row i stands at offset + i
  KeySpan span{sizes.kv_start, sizes.kv_len};
  if (mask.causal) span.last = min64(span.last, offset + last_row + 1);
  if (mask.window_right >= 0) {
    span.last = min64(span.last, offset + last_row + mask.window_right + 1);
  }
  if (mask.window_left >= 0) {
    span.first = max64(span.first, offset + first_row - mask.window_left);
  }
  return span;
}

/// Keys that one row sees.
constexpr KeySpan visible_keys(const MaskRule& mask, const RequestSizes& sizes, int64_t row) {
  return visible_keys(mask, sizes, row, row);
}

/// Keys that all of the rows first_row .. last_row (inclusive) see: no mask is needed inside.
constexpr KeySpan common_keys(const MaskRule& mask, const RequestSizes& sizes, int64_t first_row,
                              int64_t last_row) {
  return {visible_keys(mask, sizes, last_row).first, visible_keys(mask, sizes, first_row).last};
}

}  // namespace deuce
