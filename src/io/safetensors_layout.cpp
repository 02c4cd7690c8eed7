// SPDX-License-Identifier: Apache-2.0
// Sizes, ranges, overlap and holes of a safetensors header, and the texts that name them.
#include "io/safetensors_layout.h"

#include <limits>

namespace deuce::io {

std::string shape_text(std::span<const int64_t> shape) {
  constexpr std::size_t kShown = 8;
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size() && i < kShown; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", shape[i]);
  }
  return text + (shape.size() > kShown ? ", ...]" : "]");
}

std::string quoted_name(std::string_view name) {
  constexpr std::size_t kShown = 64;
  std::string text = "'";
  for (const char c : name.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  return text + (name.size() > kShown ? "...'" : "'");
}

std::optional<uint64_t> dense_bytes(TensorType type, std::span<const int64_t> shape) {
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  bool empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    empty = empty || extent == 0;
  }
  if (empty) return 0;  // before the product, which need not fit
  uint64_t bytes = static_cast<uint64_t>(tensor_type_bytes(type));
  for (const int64_t extent : shape) {
    if (bytes > kMax / static_cast<uint64_t>(extent)) return std::nullopt;
    bytes *= static_cast<uint64_t>(extent);
  }
  return bytes;
}

Status check_entry(const std::string& file, const TensorEntry& tensor, uint64_t data_bytes) {
  const std::string name = quoted_name(tensor.name);
  if (tensor.begin > tensor.end) {
    return invalid(tensor.name, "{}: tensor {}: data_offsets [{}, {}] run backwards", file, name,
                   tensor.begin, tensor.end);
  }
  if (tensor.end > data_bytes) {
    return invalid(tensor.name,
                   "{}: tensor {}: data_offsets [{}, {}] end beyond the {} bytes of data", file,
                   name, tensor.begin, tensor.end, data_bytes);
  }
  const std::optional<uint64_t> needed = dense_bytes(tensor.type, tensor.shape);
  if (!needed) {
    return invalid(tensor.name, "{}: tensor {}: the size of {} {} does not fit 63 bits", file, name,
                   tensor_type_name(tensor.type), shape_text(tensor.shape));
  }
  if (tensor.end - tensor.begin != *needed) {
    return invalid(tensor.name,
                   "{}: tensor {}: data_offsets [{}, {}] hold {} bytes, {} {} needs {}", file, name,
                   tensor.begin, tensor.end, tensor.end - tensor.begin,
                   tensor_type_name(tensor.type), shape_text(tensor.shape), *needed);
  }
  return {};
}

Status check_cover(const std::string& file, std::span<const TensorEntry> tensors,
                   uint64_t data_bytes) {
  uint64_t covered = 0;
  for (const TensorEntry& tensor : tensors) {
    if (tensor.begin < covered) {
      return invalid(tensor.name,
                     "{}: tensor {}: begins at byte {} of the data, inside another tensor", file,
                     quoted_name(tensor.name), tensor.begin);
    }
    if (tensor.begin > covered) {
      return invalid(tensor.name, "{}: tensor {}: bytes {} to {} before it belong to no tensor",
                     file, quoted_name(tensor.name), covered, tensor.begin);
    }
    covered = tensor.end;
  }
  if (covered != data_bytes) {
    return invalid("file", "{}: {} bytes after the last tensor belong to no tensor", file,
                   data_bytes - covered);
  }
  return {};
}

}  // namespace deuce::io
