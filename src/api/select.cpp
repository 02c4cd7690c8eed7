// SPDX-License-Identifier: Apache-2.0
// Choice of the backend. Automatic means: where the tensors live decides, cpu for host memory, the
// kernel of the device for CUDA memory. Nothing ever falls back from a GPU to a CPU path.
#include "api/select.h"

#include "api/device.h"
#include "api/structs.h"
#include "api/validate.h"
#include "plan/names.h"

namespace deuce {
namespace {

Status not_in_library(Backend backend) {
  const deuce_status code = is_gpu(backend) ? DEUCE_NO_DEVICE : DEUCE_UNSUPPORTED;
  return {code, "backend",
          fmt::format("backend {} is not in this library, which has {}", name_of(backend),
                      backend_list())};
}

// The GPU backend that takes the problem; the most telling refusal when none does: one about the
// config beats one about the device.
Status choose_gpu(Selection& selection) {
  Status refusal{DEUCE_NO_DEVICE, "device_type",
                 fmt::format("device_type is 2 (CUDA): this library has no GPU backend, only {}",
                             backend_list())};
  bool has_candidate = false;
  for (const BackendEntry& entry : backends()) {
    if (!is_gpu(entry.id)) continue;
    selection.problem.backend = entry.id;
    Status status = entry.check(selection.problem);
    if (status.ok()) {
      selection.entry = &entry;
      return {};
    }
    if (!has_candidate || refusal.code() == DEUCE_NO_DEVICE) refusal = std::move(status);
    has_candidate = true;
  }
  return refusal;
}

Status choose_named(Selection& selection) {
  selection.entry = find_backend(selection.problem.backend);
  if (selection.entry == nullptr) return not_in_library(selection.problem.backend);
  return selection.entry->check(selection.problem);
}

std::string reason(const Selection& selection, Backend other) {
  const BackendEntry* entry = find_backend(other);
  if (entry == nullptr) return "not in this library";
  if (is_gpu(other) != selection.cuda_memory) {
    return fmt::format("works on {} memory, device_type is {}", is_gpu(other) ? "CUDA" : "CPU",
                       selection.cuda_memory ? "CUDA" : "CPU");
  }
  Problem problem = selection.problem;
  problem.backend = other;
  if (Status status = entry->check(problem); !status.ok()) return status.sentence();
  return selection.automatic
             ? fmt::format("would work; automatic choice takes {} here", selection.entry->name)
             : fmt::format("would work; backend {} was asked for", selection.entry->name);
}

}  // namespace

std::string backend_list() {
  std::string list;
  for (const BackendEntry& entry : backends()) {
    list += (list.empty() ? "" : ", ") + std::string(entry.name);
  }
  return list;
}

Result<Selection> select_backend(const deuce_decode_config* from) {
  deuce_decode_config config;
  if (Status bad = read_config(from, config); !bad.ok()) return bad;
  Result<std::vector<EnvironmentChange>> environment = apply_environment(config);
  if (!environment.ok()) return environment.status();
  Result<Problem> problem = validate_config(config);
  if (!problem.ok()) return problem.status();

  Selection selection;
  selection.problem = problem.value();
  selection.environment = std::move(environment.value());
  selection.automatic = selection.problem.backend == Backend::automatic;
  selection.cuda_memory =
      selection.automatic ? config.device_type == kDeviceCuda : is_gpu(selection.problem.backend);
  if (selection.automatic && !selection.cuda_memory) selection.problem.backend = Backend::cpu;

  Status status = selection.automatic && selection.cuda_memory ? choose_gpu(selection)
                                                               : choose_named(selection);
  if (!status.ok()) return status;
  return selection;
}

std::vector<std::pair<std::string, std::string>> reasons_not_taken(const Selection& selection) {
  std::vector<std::pair<std::string, std::string>> reasons;
  for (const BackendName& other : kBackendNames) {
    if (other.id == Backend::automatic || other.id == selection.problem.backend) continue;
    reasons.emplace_back(other.name, reason(selection, other.id));
  }
  return reasons;
}

}  // namespace deuce
