// SPDX-License-Identifier: Apache-2.0
// The ABI rule of versioned structs, written once for config, args and fault.
// Nothing beyond struct_size bytes of the caller's memory is touched.
#include "api/structs.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "api/struct_fields.h"

namespace deuce {

// Bindings in other languages count on these; a new field goes to the end and changes its line.
static_assert(sizeof(deuce_decode_config) == 128);
static_assert(sizeof(deuce_decode_args) == 456);
static_assert(sizeof(deuce_fault) == 48);

namespace {

// A size beyond this is an uninitialised struct_size, not a future version.
constexpr std::size_t kLargestStruct = 4096;

struct StructRule {
  const char* name;      // C name of the struct
  const char* argument;  // name of the parameter
  std::size_t known;     // sizeof in this library
  std::size_t smallest;  // up to here zero is not a valid "not given"
  std::span<const StructField> fields;
};

Status check_size(const StructRule& rule, std::size_t size) {
  if (size < rule.smallest || size > kLargestStruct) {
    return invalid("struct_size",
                   "struct_size of {} is {}: set it to sizeof({}), {} in this version",
                   rule.argument, size, rule.name, rule.known);
  }
  if (size >= rule.known) return {};
  for (const StructField& field : rule.fields) {
    const std::size_t end = field.begin + field.bytes;
    if (size <= field.begin || size >= end) continue;
    return invalid("struct_size",
                   "struct_size of {} is {}: it ends inside {}, bytes {} .. {}; set it to "
                   "sizeof({}), {} in this version",
                   rule.argument, size, field.name, field.begin, end - 1, rule.name, rule.known);
  }
  return {};
}

Status read_struct(const StructRule& rule, const void* from, void* to) {
  if (from == nullptr) return invalid(rule.argument, "{} is null", rule.argument);
  uint32_t size = 0;
  std::memcpy(&size, from, sizeof size);
  if (Status bad = check_size(rule, size); !bad.ok()) return bad;

  const auto* bytes = static_cast<const unsigned char*>(from);
  for (std::size_t offset = rule.known; offset < size; ++offset) {
    if (bytes[offset] != 0) {
      return {DEUCE_VERSION_MISMATCH, "struct_size",
              fmt::format("{} has {} bytes and byte {} is not zero: deuce {} knows the first {}; "
                          "leave newer fields zero or load a newer library",
                          rule.name, size, offset, DEUCE_VERSION, rule.known)};
    }
  }
  const std::size_t copied = std::min<std::size_t>(size, rule.known);
  std::memcpy(to, from, copied);
  std::memset(static_cast<unsigned char*>(to) + copied, 0, rule.known - copied);
  return {};
}

}  // namespace

Status read_config(const deuce_decode_config* from, deuce_decode_config& to) {
  // Up to window_right: -1, not zero, stands for "not given" in device_id and the windows.
  constexpr StructRule kRule{"deuce_decode_config", "config", sizeof(deuce_decode_config),
                             offsetof(deuce_decode_config, softmax_scale), ConfigFields::kList};
  return read_struct(kRule, from, &to);
}

Status read_args(const deuce_decode_args* from, deuce_decode_args& to) {
  constexpr StructRule kRule{"deuce_decode_args", "args", sizeof(deuce_decode_args),
                             offsetof(deuce_decode_args, q), ArgsFields::kList};
  return read_struct(kRule, from, &to);
}

Status check_fault(const deuce_fault* to) {
  constexpr StructRule kRule{"deuce_fault", "fault", sizeof(deuce_fault),
                             offsetof(deuce_fault, request), FaultFields::kList};
  if (to == nullptr) return invalid(kRule.argument, "{} is null", kRule.argument);
  return check_size(kRule, to->struct_size);
}

void write_fault(const deuce_fault& fault, deuce_fault& to) {
  constexpr std::size_t kBody = sizeof fault.struct_size;
  const std::size_t end = std::min<std::size_t>(to.struct_size, sizeof fault);
  std::memcpy(reinterpret_cast<unsigned char*>(&to) + kBody,
              reinterpret_cast<const unsigned char*>(&fault) + kBody, end - kBody);
}

}  // namespace deuce
