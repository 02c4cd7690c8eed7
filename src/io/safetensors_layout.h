// SPDX-License-Identifier: Apache-2.0
// The checks of a safetensors header that need no JSON: sizes, ranges, overlap and holes.
// Used by the header parser and the writer, so that what we write is what we accept.
#pragma once

#include "io/safetensors.h"

namespace deuce::io {

/// Bytes of a dense tensor, or nothing when a dimension is negative or the product leaves 63 bits.
std::optional<uint64_t> dense_bytes(TensorType type, std::span<const int64_t> shape);

/// One tensor: its range is ordered, inside the data, and as long as dtype and shape ask for.
Status check_entry(const std::string& file, const TensorEntry& tensor, uint64_t data_bytes);

/// All tensors together, sorted by `begin`: back to back from 0 to data_bytes.
Status check_cover(const std::string& file, std::span<const TensorEntry> tensors,
                   uint64_t data_bytes);

}  // namespace deuce::io
