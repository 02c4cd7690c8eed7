// SPDX-License-Identifier: Apache-2.0
// The words for enum values in sentences, JSON and environment variables: one list for all faces.
// The strings are those that users write: "cpu", "bf16".
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "plan/problem.h"

namespace deuce {

struct BackendName {
  Backend id;
  std::string_view name;
};

inline constexpr std::array kBackendNames{
    BackendName{Backend::automatic, "auto"},    BackendName{Backend::cpu, "cpu"},
    BackendName{Backend::hopper, "hopper"},     BackendName{Backend::blackwell, "blackwell"},
    BackendName{Backend::emulator, "emulator"}, BackendName{Backend::reference, "reference"},
};

constexpr std::string_view name_of(Backend id) {
  for (const BackendName& entry : kBackendNames) {
    if (entry.id == id) return entry.name;
  }
  return "unknown";
}

constexpr std::optional<Backend> backend_named(std::string_view name) {
  for (const BackendName& entry : kBackendNames) {
    if (entry.name == name) return entry.id;
  }
  return std::nullopt;
}

constexpr std::string_view name_of(DType type) {
  switch (type) {
    case DType::f32: return "f32";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::e4m3: return "e4m3";
    case DType::e5m2: return "e5m2";
  }
  return "unknown";
}

}  // namespace deuce
