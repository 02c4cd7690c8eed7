// SPDX-License-Identifier: Apache-2.0
// `deuce info`: what this build can do on this machine. Text and JSON come from the same facts.
#include <fmt/ranges.h>

#include "command.h"
#include "device.h"
#include "facts_json.h"
#include "options.h"
#include "plan/names.h"
#include "shapes.h"
#include "units.h"

namespace deuce::cli {
namespace {

using Json = nlohmann::ordered_json;

struct InfoOptions {
  bool roof = false, json = false;
};

struct BackendShapes {
  std::string name;
  SupportedShapes shapes;
  std::string_view note;
};

/// What a user should know beside what is refused.
std::string_view note_of(Backend backend) {
  return backend == Backend::blackwell
             ? "has never run on silicon; its source is tested in the emulator"
             : "";
}

struct Info {
  MachineFacts machine;
  std::vector<BackendShapes> backends;
  std::optional<double> roof;  // bytes per second
};

Info gather(const InfoOptions& options) {
  Info info{.machine = machine_facts(), .backends = {}, .roof = {}};
  for (const BackendName& entry : kBackendNames) {
    if (entry.id == Backend::automatic) continue;
    if (entry.id == Backend::emulator) {
      for (const Backend kernel : {Backend::blackwell, Backend::hopper}) {
        info.backends.push_back({fmt::format("{}:{}", entry.name, name_of(kernel)),
                                 supported_shapes(entry.id, kernel), ""});
      }
      continue;
    }
    info.backends.push_back(
        {std::string(entry.name), supported_shapes(entry.id), note_of(entry.id)});
  }
  if (!options.roof) return info;
  const Result<std::unique_ptr<Device>> host = open_device(Backend::cpu);
  if (host.ok()) info.roof = host.value()->read_roof();
  return info;
}

Json to_json(const Info& info) {
  Json json;
  json["deuce"] = deuce_version();
  json["abi"] = deuce_abi_version();
  json["build"] = build_json(info.machine);
  json["machine"] = machine_json(info.machine);
  json["backends"] = Json::array();
  for (const auto& [name, shapes, note] : info.backends) {
    Json entry{{"name", name}, {"usable", shapes.refusal.empty()}, {"reason", shapes.refusal}};
    if (!note.empty()) entry["note"] = note;
    if (shapes.refusal.empty()) {
      entry["head_dims"] = shapes.head_dims;
      entry["types"] = shapes.types;
      entry["out_types"] = shapes.out_types;
      entry["sink_types"] = shapes.sink_types;
      entry["contiguous"] = shapes.contiguous;
      entry["smallest_page"] = shapes.smallest_page;
      entry["out_as_q"] = shapes.out_as_q;
      entry["most_score_slots"] = shapes.most_score_slots;
      entry["most_row_replicas"] = shapes.most_row_replicas;
      entry["features"] = shapes.features;
      entry["refused_features"] = shapes.refused_features;
    }
    json["backends"].push_back(std::move(entry));
  }
  if (info.roof) json["roof_bytes_per_s"] = *info.roof;
  return json;
}

void line(std::string_view title, std::string_view text) { fmt::print("{:<11}{}\n", title, text); }

/// The pairs, or in short that every type goes with every other.
std::string types_text(const std::vector<std::string>& types) {
  constexpr std::size_t kEveryPair = 25;
  if (types.size() < kEveryPair) return fmt::format("{}", fmt::join(types, ", "));
  return "f32, f16, bf16, e4m3, e5m2, each with each";
}

void print(const SupportedShapes& shapes) {
  line("", "  head dims  " + ranges_text(shapes.head_dims));
  line("", "  q x kv     " + types_text(shapes.types));
  line("", fmt::format("  out        {}{}", fmt::join(shapes.out_types, ", "),
                       shapes.out_as_q ? ", as q" : ""));
  line("", fmt::format("  sinks      {}", fmt::join(shapes.sink_types, ", ")));
  line("", fmt::format("  cache      {}{}", shapes.contiguous ? "contiguous, " : "",
                       shapes.smallest_page > 0
                           ? fmt::format("pages of {} and more", shapes.smallest_page)
                           : "no pages"));
  line("", fmt::format("  features   {}; score_slots to {}, row_replicas to {}",
                       fmt::join(shapes.features, ", "), shapes.most_score_slots,
                       shapes.most_row_replicas));
  if (!shapes.refused_features.empty())
    line("", fmt::format("  refused    {}", fmt::join(shapes.refused_features, ", ")));
}

void print(const Info& info) {
  const MachineFacts& machine = info.machine;
  line("deuce", fmt::format("{} (ABI {})", deuce_version(), deuce_abi_version()));
  line("build",
       fmt::format("{}, {}, commit {}", machine.compiler, machine.build_type, machine.commit));
  line("machine", fmt::format("{}, {}", machine.cpu, machine.system));
  line("cpu", fmt::format("{} threads, {}, last-level cache {}", machine.threads, machine.simd,
                          bytes_text(static_cast<double>(machine.cache_bytes))));
  if (info.roof) line("read roof", three_digits(*info.roof * 1e-9) + " GB/s");
  for (const auto& [name, shapes, note] : info.backends) {
    line("backend",
         fmt::format("{:<19}{}", name, shapes.refusal.empty() ? "usable" : shapes.refusal));
    if (!note.empty()) line("", fmt::format("  note       {}", note));
    if (shapes.refusal.empty()) print(shapes);
  }
}

Result<ExitCode> info(const InfoOptions& options) {
  const Info found = gather(options);
  if (options.json) {
    fmt::print("{}\n", to_json(found).dump(2));
  } else {
    print(found);
  }
  return ExitCode::ok;
}

}  // namespace

void add_info(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("info", "Show backends, machine and supported shapes");
  auto options = std::make_shared<InfoOptions>();
  command.add_flag("--roof", options->roof,
                   "measure the read roof of the cpu's memory (a few seconds)");
  command.add_flag("--json", options->json, "one JSON object (docs/cli.md)");
  command.callback([options, &action] { action = [options] { return info(*options); }; });
}

}  // namespace deuce::cli
