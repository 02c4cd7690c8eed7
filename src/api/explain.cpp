// SPDX-License-Identifier: Apache-2.0
// Joins what the API layer knows (choice, environment, workspace) with the backend's own facts.
// Keys are part of the interface: tools and tests read them.
#include "api/explain.h"

#include <nlohmann/json.hpp>

#include "plan/names.h"

namespace deuce {
namespace {

nlohmann::ordered_json environment_changes(const Selection& selection) {
  auto list = nlohmann::ordered_json::array();
  for (const EnvironmentChange& change : selection.environment) {
    list.push_back(
        {{"variable", change.variable}, {"value", change.value}, {"field", change.field}});
  }
  return list;
}

nlohmann::ordered_json not_taken(const Selection& selection) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& [name, reason] : reasons_not_taken(selection)) {
    list.push_back({{"backend", name}, {"reason", reason}});
  }
  return list;
}

}  // namespace

std::string explain(const deuce_decode_plan_st& plan, const Call* call) {
  nlohmann::ordered_json text;
  text["version"] = DEUCE_VERSION;
  text["backend"] = plan.selection.entry->name;
  text["chosen_by"] = plan.selection.automatic ? "automatic" : "request";
  text["environment"] = environment_changes(plan.selection);
  text["workspace"] = {{"bytes", plan.need.bytes}, {"control_bytes", plan.need.control_bytes}};
  text["kernel"] = nlohmann::ordered_json::parse(plan.backend->explain(call));
  text["not_taken"] = not_taken(plan.selection);
  return text.dump(2);
}

}  // namespace deuce
