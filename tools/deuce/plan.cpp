// SPDX-License-Identifier: Apache-2.0
// Thin calls into deuce.h.
#include "plan.h"

#include <nlohmann/json.hpp>

#include "plan/names.h"

namespace deuce::cli {

Status status_of(deuce_status code) {
  if (code == DEUCE_OK) return {};
  return {code, deuce_last_error_field(), deuce_last_error()};
}

Result<Plan> Plan::create(deuce_decode_config config, Device& device) {
  if (device.keeps_workspace()) config.flags |= DEUCE_FLAG_WORKSPACE_KEPT;
  deuce_decode_plan plan = nullptr;
  if (Status status = status_of(deuce_decode_plan_create(&config, &plan)); !status.ok())
    return status;
  Handle handle(plan, &deuce_decode_plan_destroy);
  std::size_t bytes = 0;
  if (Status status = status_of(deuce_decode_workspace_size(&config, &bytes, nullptr));
      !status.ok())
    return status;
  Result<Memory> workspace = device.allocate(bytes);
  if (!workspace.ok()) return workspace.status();
  if (device.keeps_workspace()) {
    if (Status status = status_of(
            deuce_decode_workspace_init(&config, workspace.value().get(), bytes, device.stream()));
        !status.ok())
      return status;
  }
  return Plan(std::move(handle), std::move(workspace.value()), bytes, device.stream());
}

Status Plan::run(const deuce_decode_args& args) const {
  return status_of(deuce_decode_run(handle_.get(), &args, workspace_.get(), bytes_, stream_));
}

Status Plan::fault() const {
  // A run of batch 0 launches nothing, but reports what an earlier one left behind.
  deuce_decode_args nothing{};
  nothing.struct_size = static_cast<uint32_t>(sizeof nothing);
  nothing.q_len = 1;
  return run(nothing);
}

Backend Plan::backend() const {
  const Result<std::string> text = explain(nullptr);
  if (!text.ok()) return Backend::automatic;
  const auto json = nlohmann::json::parse(text.value(), nullptr, false);
  return backend_named(json.value("backend", "auto")).value_or(Backend::automatic);
}

Result<std::string> Plan::explain(const deuce_decode_args* args) const {
  std::size_t bytes = 0;
  if (Status status = status_of(deuce_decode_explain(handle_.get(), args, nullptr, &bytes));
      !status.ok())
    return status;
  std::string text(bytes, '\0');
  if (Status status = status_of(deuce_decode_explain(handle_.get(), args, text.data(), &bytes));
      !status.ok())
    return status;
  text.resize(bytes - 1);  // without the terminating zero
  return text;
}

}  // namespace deuce::cli
