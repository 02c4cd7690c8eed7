// SPDX-License-Identifier: Apache-2.0
// Safetensors files as byte strings, right or wrong on purpose. Used by the tests of the reader.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace deuce::io {

/// Header length, header, data; the length may lie.
inline std::string file_bytes(std::string_view json, std::string_view data,
                              uint64_t header_length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header_length >> (8 * i));
  return bytes.append(json).append(data);
}

inline std::string file_bytes(std::string_view json, std::size_t data_bytes) {
  return file_bytes(json, std::string(data_bytes, '\x5a'), json.size());
}

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace deuce::io
