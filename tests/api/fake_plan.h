// SPDX-License-Identifier: Apache-2.0
// A plan whose backend does what a test says: for outcomes that no host backend has, such as a
// pending device fault, a hazard or an exception.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "api/plan.h"
#include "api/sample.h"
#include "api/validate.h"

namespace deuce_test {

inline deuce_fault fault_record(int32_t code, int32_t request = 0) {
  deuce_fault fault{};
  fault.code = code;
  fault.request = request;
  fault.column = -1;
  return fault;
}

class FakeBackend final : public deuce::BackendPlan {
 public:
  deuce::WorkspaceNeed need;
  std::function<deuce::Status(const deuce::Call&)> on_run = [](const deuce::Call&) {
    return deuce::Status{};
  };
  mutable std::optional<deuce_fault> fault;
  mutable int runs = 0;

  deuce::WorkspaceNeed workspace() const override { return need; }
  deuce::Status run(const deuce::Call& call, std::byte*, deuce_stream) const override {
    ++runs;
    return on_run(call);
  }
  std::string explain(const deuce::Call*) const override { return R"({"kernel": "fake"})"; }
  bool take_fault(deuce_fault& found) const override {
    if (!fault) return false;
    found = *fault;
    fault.reset();
    return true;
  }
};

/// A handle for the C functions around a fake backend; lives as long as this object.
class FakePlan {
 public:
  /// `config` is validated as usual; `checks_host_data` as in a backend's table entry.
  explicit FakePlan(const deuce_decode_config& config, deuce::WorkspaceNeed need = {},
                    bool checks_host_data = true)
      : backend_(new FakeBackend) {
    entry_.id = deuce::Backend::reference;
    entry_.name = "fake";
    entry_.checks_host_data = checks_host_data;
    backend_->need = need;
    plan_.selection.problem = deuce::validate_config(config).value();
    plan_.selection.entry = &entry_;
    plan_.backend.reset(backend_);
    plan_.need = need;
  }

  deuce_decode_plan handle() { return &plan_; }
  FakeBackend& backend() { return *backend_; }

 private:
  deuce::BackendEntry entry_{};
  FakeBackend* backend_;
  deuce_decode_plan_st plan_;
};

}  // namespace deuce_test
