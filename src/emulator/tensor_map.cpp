// SPDX-License-Identifier: Apache-2.0
// Tensor maps of the emulator; see tensor_map.h.
#include "emulator/tensor_map.h"

#include <algorithm>
#include <cstring>

namespace deuce::emulator {
namespace {

constexpr uint32_t kMark = 0x50414d44;  // "DMAP": bytes of another origin are refused

struct Packed {
  uint32_t mark;
  uint8_t rank, element_bytes, swizzle, bf16;
  const void* base;
  uint64_t extent_less_one[5];  // 2^32 fits
  uint64_t stride_bytes[4];
  uint16_t box[5];
};
static_assert(sizeof(Packed) <= sizeof(TensorMap));

}  // namespace

TensorMap encode(const TensorMapSpec& spec) {
  Packed packed{};
  packed.mark = kMark;
  packed.rank = static_cast<uint8_t>(spec.rank);
  packed.element_bytes = static_cast<uint8_t>(spec.element_bytes);
  packed.swizzle = static_cast<uint8_t>(spec.swizzle);
  packed.bf16 = spec.bf16;
  packed.base = spec.base;
  for (int d = 0; d < spec.rank; ++d) {
    packed.extent_less_one[d] = spec.extent[d] - 1;
    packed.box[d] = static_cast<uint16_t>(spec.box[d]);
    if (d > 0) packed.stride_bytes[d - 1] = spec.stride_bytes[d - 1];
  }
  TensorMap map{};
  std::memcpy(map.bytes, &packed, sizeof packed);
  return map;
}

std::optional<TensorMapSpec> decode(const TensorMap& map) {
  Packed packed;
  std::memcpy(&packed, map.bytes, sizeof packed);
  if (packed.mark != kMark) return std::nullopt;
  TensorMapSpec spec;
  spec.base = packed.base;
  spec.rank = packed.rank;
  spec.element_bytes = packed.element_bytes;
  spec.swizzle = static_cast<Swizzle>(packed.swizzle);
  spec.bf16 = packed.bf16 != 0;
  for (int d = 0; d < spec.rank; ++d) {
    spec.extent[d] = packed.extent_less_one[d] + 1;
    spec.box[d] = packed.box[d];
    if (d > 0) spec.stride_bytes[d - 1] = packed.stride_bytes[d - 1];
  }
  return spec;
}

void for_each_row(const TensorMapSpec& spec, const int32_t* coordinate,
                  const std::function<void(const BoxRow&)>& row) {
  uint32_t rows = 1;
  for (int d = 1; d < spec.rank; ++d) rows *= spec.box[d];
  const uint32_t row_bytes = spec.box[0] * spec.element_bytes;
  const int64_t first = coordinate[0];
  const auto width = static_cast<int64_t>(spec.extent[0]);
  const int64_t begin = std::clamp<int64_t>(-first, 0, spec.box[0]);  // live elements of a row
  const int64_t end = std::clamp<int64_t>(width - first, begin, spec.box[0]);
  const auto live_begin = static_cast<uint32_t>(begin) * spec.element_bytes;
  const auto live_end = static_cast<uint32_t>(end) * spec.element_bytes;
  for (uint32_t r = 0; r < rows; ++r) {
    bool inside = live_end > live_begin;
    int64_t offset = 0;
    uint32_t rest = r;
    for (int d = 1; d < spec.rank; ++d) {
      const int64_t at = coordinate[d] + static_cast<int64_t>(rest % spec.box[d]);
      rest /= spec.box[d];
      inside = inside && at >= 0 && at < static_cast<int64_t>(spec.extent[d]);
      offset += at * static_cast<int64_t>(spec.stride_bytes[d - 1]);
    }
    const uint32_t base = r * row_bytes;
    if (!inside) {
      row({nullptr, base, row_bytes});
      continue;
    }
    const auto* source = static_cast<const std::byte*>(spec.base) + offset +
                         (first + begin) * static_cast<int64_t>(spec.element_bytes);
    if (live_begin > 0) row({nullptr, base, live_begin});
    row({source, base + live_begin, live_end - live_begin});
    if (live_end < row_bytes) row({nullptr, base + live_end, row_bytes - live_end});
  }
}

void copy_box(const TensorMapSpec& spec, const int32_t* coordinate, std::byte* shared,
              uint32_t address) {
  for_each_row(spec, coordinate, [&](const BoxRow& row) {
    const auto* source = static_cast<const std::byte*>(row.source);
    for (uint32_t done = 0; done < row.bytes;) {
      const uint32_t logical = address + row.offset + done;
      const uint32_t piece = std::min(16 - logical % 16, row.bytes - done);
      std::byte* target = shared + swizzled(spec.swizzle, logical);
      if (source != nullptr) {
        std::memcpy(target, source + done, piece);
      } else {
        std::memset(target, 0, piece);
      }
      done += piece;
    }
  });
}

}  // namespace deuce::emulator
