// SPDX-License-Identifier: Apache-2.0
// Element types of the safetensors format: name in the file and size.
// Used by reader, writer and the command line tool; the table is the only list.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace deuce::io {

enum class TensorType : uint8_t {
  boolean,
  u8,
  i8,
  e4m3,
  e5m2,
  e8m0,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  i64,
  u64,
  f64,
  c64
};

struct TensorTypeRow {
  TensorType type;
  std::string_view name;  // as written in the file
  int bytes;              // of one element
};

inline constexpr std::array kTensorTypes{
    TensorTypeRow{TensorType::boolean, "BOOL", 1}, TensorTypeRow{TensorType::u8, "U8", 1},
    TensorTypeRow{TensorType::i8, "I8", 1},        TensorTypeRow{TensorType::e4m3, "F8_E4M3", 1},
    TensorTypeRow{TensorType::e5m2, "F8_E5M2", 1}, TensorTypeRow{TensorType::e8m0, "F8_E8M0", 1},
    TensorTypeRow{TensorType::i16, "I16", 2},      TensorTypeRow{TensorType::u16, "U16", 2},
    TensorTypeRow{TensorType::f16, "F16", 2},      TensorTypeRow{TensorType::bf16, "BF16", 2},
    TensorTypeRow{TensorType::i32, "I32", 4},      TensorTypeRow{TensorType::u32, "U32", 4},
    TensorTypeRow{TensorType::f32, "F32", 4},      TensorTypeRow{TensorType::i64, "I64", 8},
    TensorTypeRow{TensorType::u64, "U64", 8},      TensorTypeRow{TensorType::f64, "F64", 8},
    TensorTypeRow{TensorType::c64, "C64", 8},
};

constexpr const TensorTypeRow& tensor_type_row(TensorType type) {
  return kTensorTypes[static_cast<std::size_t>(type)];
}
constexpr std::string_view tensor_type_name(TensorType type) { return tensor_type_row(type).name; }
constexpr int tensor_type_bytes(TensorType type) { return tensor_type_row(type).bytes; }

constexpr std::optional<TensorType> tensor_type_from_name(std::string_view name) {
  for (const TensorTypeRow& row : kTensorTypes) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

// The look-ups above index the table by the enum, so the rows must stand in its order.
static_assert([] {
  for (std::size_t i = 0; i < kTensorTypes.size(); ++i) {
    if (static_cast<std::size_t>(kTensorTypes[i].type) != i) return false;
  }
  return true;
}());

}  // namespace deuce::io
