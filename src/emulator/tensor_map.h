// SPDX-License-Identifier: Apache-2.0
// The emulator's own encoding of a tensor map, and the copy of one box.
// Real maps are opaque and made by the driver; here the 128 bytes hold the arguments. The copy
// keeps the hardware's rules: zeros outside the tensor, whole-box bytes, swizzle by shared address.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "kernel/machine.h"
#include "plan/tensor_map_spec.h"

namespace deuce::emulator {

/// Packs a spec for which fault() is nullptr.
TensorMap encode(const TensorMapSpec& spec);
/// Unpacks and checks the mark; nothing when the bytes were not made by encode().
std::optional<TensorMapSpec> decode(const TensorMap& map);

/// One row of a box: `bytes` at `source`, or zeros when it is null, to logical offset `offset`.
struct BoxRow {
  const void* source;
  uint32_t offset, bytes;
};
/// Calls `row` for every contiguous piece of the box; a row cut by the tensor's edge is two pieces.
void for_each_row(const TensorMapSpec& spec, const int32_t* coordinate,
                  const std::function<void(const BoxRow&)>& row);
/// Copies the box to `shared` + `address` with the map's swizzle.
void copy_box(const TensorMapSpec& spec, const int32_t* coordinate, std::byte* shared,
              uint32_t address);

}  // namespace deuce::emulator
