// SPDX-License-Identifier: Apache-2.0
// Status and Result<T>: how every internal function reports a fault.
// A fault is one sentence for the caller, plus the name of the field it is about. Nothing throws.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "deuce/deuce.h"

namespace deuce {

/// Outcome of an operation. `field` is the public name of the argument at fault, or empty.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(deuce_status code, std::string field, std::string sentence)
      : code_(code), field_(std::move(field)), sentence_(std::move(sentence)) {}

  bool ok() const { return code_ == DEUCE_OK; }
  deuce_status code() const { return code_; }
  const std::string& field() const { return field_; }
  const std::string& sentence() const { return sentence_; }

 private:
  deuce_status code_ = DEUCE_OK;
  std::string field_, sentence_;
};

template <class... Args>
Status invalid(std::string field, fmt::format_string<Args...> text, Args&&... args) {
  return {DEUCE_INVALID_ARGUMENT, std::move(field), fmt::format(text, std::forward<Args>(args)...)};
}

template <class... Args>
Status unsupported(std::string field, fmt::format_string<Args...> text, Args&&... args) {
  return {DEUCE_UNSUPPORTED, std::move(field), fmt::format(text, std::forward<Args>(args)...)};
}

/// A value or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : content_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return std::holds_alternative<T>(content_); }
  Status status() const { return ok() ? Status{} : std::get<Status>(content_); }
  T& value() { return std::get<T>(content_); }
  const T& value() const { return std::get<T>(content_); }

 private:
  std::variant<T, Status> content_;
};

}  // namespace deuce
