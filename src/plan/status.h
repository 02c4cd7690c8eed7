// SPDX-License-Identifier: Apache-2.0
// Status and Result<T>: how every internal function reports a fault.
// A fault is one sentence for the caller, plus the name of the field it is about. Nothing throws.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "deuce/deuce.h"

namespace deuce {

/// Outcome of an operation. `field` is the public name of the argument at fault, or empty.
/// Success is a null pointer: checks run at every call, so that passing one must cost next to
/// nothing.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(deuce_status code, std::string field, std::string sentence)
      : fault_(std::make_unique<Fault>(Fault{code, std::move(field), std::move(sentence)})) {}
  Status(const Status& other)
      : fault_(other.fault_ ? std::make_unique<Fault>(*other.fault_) : nullptr) {}
  Status& operator=(const Status& other) { return *this = Status(other); }
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  bool ok() const { return fault_ == nullptr; }
  deuce_status code() const { return ok() ? DEUCE_OK : fault_->code; }
  const std::string& field() const { return ok() ? no_text() : fault_->field; }
  const std::string& sentence() const { return ok() ? no_text() : fault_->sentence; }

 private:
  struct Fault {
    deuce_status code;
    std::string field, sentence;
  };
  static const std::string& no_text() {
    static const std::string kNone;
    return kNone;
  }

  std::unique_ptr<Fault> fault_;
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
