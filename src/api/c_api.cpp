// SPDX-License-Identifier: Apache-2.0
// The C functions: each reads its structs, validates, hands over to the backend and reports.
// Nothing throws across this file's functions, and run() allocates nothing unless it refuses.
#include <cstring>
#include <new>

#include "api/explain.h"
#include "api/last_error.h"
#include "api/plan.h"
#include "api/structs.h"
#include "api/validate.h"
#include "plan/fault.h"
#include "plan/host_data.h"
#include "plan/limits.h"

namespace deuce {
namespace {

// Runs `body`, keeps its sentence for deuce_last_error and turns exceptions into a status.
template <class Body>
deuce_status guarded(Body body) noexcept {
  try {
    return report(body());
  } catch (const std::bad_alloc&) {
    return report_out_of_memory();
  } catch (const std::exception& error) {
    return report({DEUCE_RUNTIME_ERROR, "", error.what()});
  } catch (...) {
    return report({DEUCE_RUNTIME_ERROR, "", "an exception of unknown type"});
  }
}

Result<std::unique_ptr<deuce_decode_plan_st>> make_plan(const deuce_decode_config* config) {
  Result<Selection> selection = select_backend(config);
  if (!selection.ok()) return selection.status();
  const BackendEntry& entry = *selection.value().entry;
  Result<std::unique_ptr<BackendPlan>> backend = entry.create(selection.value().problem);
  if (!backend.ok()) return backend.status();
  auto plan = std::make_unique<deuce_decode_plan_st>();
  plan->selection = std::move(selection.value());
  plan->backend = std::move(backend.value());
  plan->need = plan->backend->workspace();
  return plan;
}

Status check_workspace(const WorkspaceNeed& need, const void* workspace, std::size_t bytes) {
  if (need.bytes == 0) return {};
  if (workspace == nullptr) {
    return invalid("workspace", "workspace is null: this plan needs {} bytes", need.bytes);
  }
  if (reinterpret_cast<std::uintptr_t>(workspace) % kWorkspaceAlignment != 0) {
    return invalid("workspace", "workspace is {}: it must be a multiple of {} bytes", workspace,
                   kWorkspaceAlignment);
  }
  if (bytes < need.bytes) {
    return {DEUCE_WORKSPACE_TOO_SMALL, "bytes",
            fmt::format("workspace has {} bytes: this plan needs {}", bytes, need.bytes)};
  }
  return {};
}

Status clear_control(const deuce_decode_plan_st& plan, void* workspace, deuce_stream stream) {
  const std::size_t bytes = plan.need.control_bytes;
  if (bytes == 0) return {};
  const BackendEntry& entry = *plan.selection.entry;
  if (!entry.on_host()) {
    return entry.clear(plan.selection.problem, static_cast<std::byte*>(workspace), bytes, stream);
  }
  std::memset(workspace, 0, bytes);
  return {};
}

Status pending_fault(const deuce_decode_plan_st& plan) {
  deuce_fault fault{};
  if (!plan.backend->take_fault(fault)) return {};
  return describe_fault(fault);
}

Status run(deuce_decode_plan plan, const deuce_decode_args* from, void* workspace,
           std::size_t bytes, deuce_stream stream) {
  if (plan == nullptr) return invalid("plan", "plan is null");
  if (Status pending = pending_fault(*plan); !pending.ok()) return pending;
  const Problem& problem = plan->selection.problem;
  Call call;
  if (Status bad = read_args(from, call); !bad.ok()) return bad;
  if (Status bad = validate_args(problem, call); !bad.ok()) return bad;
  if (call.batch == 0) return {};
  if (Status bad = check_workspace(plan->need, workspace, bytes); !bad.ok()) return bad;

  const BackendEntry& entry = *plan->selection.entry;
  if (entry.checks_host_data) {
    if (Status bad = check_host_data(problem, call); !bad.ok()) return bad;
  }
  if (entry.on_host() && (problem.flags & DEUCE_FLAG_WORKSPACE_KEPT) == 0) {
    if (Status bad = clear_control(*plan, workspace, stream); !bad.ok()) return bad;
  }
  return plan->backend->run(call, static_cast<std::byte*>(workspace), stream);
}

Status explain_into(deuce_decode_plan plan, const deuce_decode_args* from, char* text,
                    std::size_t* bytes) {
  if (plan == nullptr) return invalid("plan", "plan is null");
  if (bytes == nullptr) return invalid("bytes", "bytes is null");
  const Problem& problem = plan->selection.problem;
  Call call;
  if (from != nullptr) {
    if (Status bad = read_args(from, call); !bad.ok()) return bad;
    if (Status bad = validate_args(problem, call); !bad.ok()) return bad;
    if (plan->selection.entry->checks_host_data) {
      if (Status bad = check_host_data(problem, call); !bad.ok()) return bad;
    }
  }
  const std::string written = explain(*plan, from != nullptr ? &call : nullptr);
  const std::size_t room = *bytes;
  *bytes = written.size() + 1;
  if (text == nullptr) return {};
  if (room < *bytes) {
    return {DEUCE_WORKSPACE_TOO_SMALL, "bytes",
            fmt::format("text has room for {} bytes: {} are needed", room, *bytes)};
  }
  std::memcpy(text, written.c_str(), *bytes);
  return {};
}

}  // namespace
}  // namespace deuce

using namespace deuce;  // NOLINT(google-build-using-namespace): the C functions below are its face

extern "C" {

deuce_status deuce_decode_check(const deuce_decode_config* config) {
  return guarded([&] { return select_backend(config).status(); });
}

deuce_status deuce_decode_workspace_size(const deuce_decode_config* config, size_t* bytes,
                                         size_t* control_bytes) {
  return guarded([&]() -> Status {
    if (bytes == nullptr) return invalid("bytes", "bytes is null");
    auto plan = make_plan(config);
    if (!plan.ok()) return plan.status();
    *bytes = plan.value()->need.bytes;
    if (control_bytes != nullptr) *control_bytes = plan.value()->need.control_bytes;
    return {};
  });
}

deuce_status deuce_decode_workspace_init(const deuce_decode_config* config, void* workspace,
                                         size_t bytes, deuce_stream stream) {
  return guarded([&]() -> Status {
    auto plan = make_plan(config);
    if (!plan.ok()) return plan.status();
    if (Status bad = check_workspace(plan.value()->need, workspace, bytes); !bad.ok()) return bad;
    return clear_control(*plan.value(), workspace, stream);
  });
}

deuce_status deuce_decode_plan_create(const deuce_decode_config* config, deuce_decode_plan* plan) {
  return guarded([&]() -> Status {
    if (plan == nullptr) return invalid("plan", "plan is null");
    auto made = make_plan(config);
    if (!made.ok()) return made.status();
    *plan = made.value().release();
    return {};
  });
}

deuce_status deuce_decode_run(deuce_decode_plan plan, const deuce_decode_args* args,
                              void* workspace, size_t bytes, deuce_stream stream) {
  return guarded([&] { return run(plan, args, workspace, bytes, stream); });
}

deuce_status deuce_decode_explain(deuce_decode_plan plan, const deuce_decode_args* args, char* text,
                                  size_t* bytes) {
  return guarded([&] { return explain_into(plan, args, text, bytes); });
}

deuce_status deuce_decode_fault(deuce_decode_plan plan, deuce_fault* fault) {
  return guarded([&]() -> Status {
    if (plan == nullptr) return invalid("plan", "plan is null");
    if (Status bad = check_fault(fault); !bad.ok()) return bad;
    deuce_fault found{};
    found.column = -1;
    plan->backend->take_fault(found);
    write_fault(found, *fault);
    return {};
  });
}

void deuce_decode_plan_destroy(deuce_decode_plan plan) { delete plan; }

const char* deuce_status_string(deuce_status status) { return status_word(status); }
const char* deuce_last_error(void) { return last_sentence(); }
const char* deuce_last_error_field(void) { return last_field(); }
uint32_t deuce_abi_version(void) { return DEUCE_ABI_VERSION; }
const char* deuce_version(void) { return DEUCE_VERSION; }

}  // extern "C"
