// SPDX-License-Identifier: Apache-2.0
// Records traces on the emulator; see record_trace.h.
#include "record_trace.h"

#include <algorithm>
#include <map>
#include <vector>

#include "emulator/blackwell.h"
#include "emulator/decode_kernel.h"
#include "emulator/memory_ranges.h"
#include "kernel/hopper/config.h"
#ifdef DEUCE_HAS_HOPPER
#include "device.h"
#include "gpu/hopper_trace.h"
#endif

namespace deuce::cli {
namespace {

emulator::RunResult run_once(const TraceSettings& settings, trace::Recorder* recorder) {
  emulator::DecodeCase decode(settings.spec);
  const auto kernel = emulator::make_decode_kernel(decode.problem(), settings.blocks);
  std::vector<std::byte> workspace(kernel->workspace().bytes);
  emulator::Options options;
  options.recorder = recorder;
  options.band = settings.costs == "low"    ? emulator::Band::low
                 : settings.costs == "high" ? emulator::Band::high
                                            : emulator::Band::best;
  return kernel->run(decode.call(), workspace.data(), options);
}

/// What the kernel, or this build of it, does not take.
Status refuse(const emulator::CaseSpec& spec) {
  Status bad = emulator::check_kernel(emulator::DecodeCase(spec).problem());
  if (!bad.ok() || spec.kernel == Backend::hopper) return bad;
  return emulator::check_compiled({.head_dim = spec.head_dim,
                                   .score_slots = spec.score_slots,
                                   .bf16 = spec.bf16,
                                   .row_replicas = spec.row_replicas});
}

std::string problem_text(const TraceSettings& settings) {
  const emulator::CaseSpec& spec = settings.spec;
  std::string text = fmt::format("head dim {}, {}, {} request{} of {} keys, {} rows", spec.head_dim,
                                 spec.e4m3   ? "e4m3"
                                 : spec.bf16 ? "bf16"
                                             : "f16",
                                 spec.kv_len.size(), spec.kv_len.size() == 1 ? "" : "s",
                                 spec.kv_len.front(), spec.group * spec.q_len);
  if (spec.kv_heads > 1) text += fmt::format(", {} KV heads", spec.kv_heads);
  if (spec.page_size > 0) text += fmt::format(", pages of {}", spec.page_size);
  if (spec.row_replicas > 1) text += fmt::format(", {} row replicas", spec.row_replicas);
  if (spec.growing) text += ", growing scores";
  return text;
}

}  // namespace

#ifdef DEUCE_HAS_HOPPER
namespace {

/// The case's call with its arrays on the device, which `memory` keeps.
Result<Call> place_call(const emulator::DecodeCase& decode, Device& device,
                        std::vector<Memory>& memory) {
  Call call = decode.call();
  std::map<const void*, void*> placed;
  for (const emulator::GlobalRange& range : emulator::memory_ranges(decode.problem(), call)) {
    Result<Memory> one = device.place(range.base, range.bytes);
    if (!one.ok()) return one.status();
    placed[range.base] = one.value().get();
    memory.push_back(std::move(one.value()));
  }
  const auto move = [&placed](auto&... pointers) {
    const auto move_one = [&placed](auto*& pointer) {
      const auto found = placed.find(pointer);
      if (found != placed.end())
        pointer = static_cast<std::remove_reference_t<decltype(pointer)>>(found->second);
    };
    (move_one(pointers), ...);
  };
  move(call.q, call.k, call.v, call.out, call.lse, call.kv_len, call.kv_start, call.cu_q_len,
       call.cache_row, call.page_indptr, call.last_page_len, call.page_indices, call.block_table,
       call.sink);
  return call;
}

}  // namespace

Result<trace::TraceFile> trace_on_hopper(const TraceSettings& settings) {
  emulator::CaseSpec spec = settings.spec;
  spec.score_slots = 0;
  spec.row_replicas = 0;
  emulator::DecodeCase decode(spec);
  decode.problem().backend = Backend::hopper;
  const Result<std::unique_ptr<Device>> device = open_device(Backend::hopper);
  if (!device.ok()) return device.status();
  std::vector<Memory> memory;
  const Result<Call> call = place_call(decode, *device.value(), memory);
  if (!call.ok()) return call.status();
  Result<hopper::TracedRun> run =
      hopper::run_traced(decode.problem(), call.value(), settings.capacity);
  if (!run.ok()) return run.status();
  hopper::TracedRun& result = run.value();
  trace::TraceFile file;
  file.facts = {.label = "hopper",
                .kernel = "hopper",
                .problem = problem_text(settings),
                .chip = result.device,
                .simulated = false,
                .clock_hz = result.clock_hz,
                .level = trace::Level::edges,
                .head_dim = spec.head_dim,
                .rows = spec.group * spec.q_len,
                .score_slots = 1,
                .kv_block = hopper::kTileTokens,
                .seed = spec.seed,
                .costs = {},
                .cycles = result.traced_seconds * result.clock_hz,
                .untraced_cycles = result.untraced_seconds * result.clock_hz};
  file.slices = std::move(result.slices);
  return file;
}
#else
Result<trace::TraceFile> trace_on_hopper(const TraceSettings&) {
  return Status(DEUCE_NO_DEVICE, "backend", "backend hopper: this build has no GPU kernels");
}
#endif

Result<trace::TraceFile> trace_on_emulator(const TraceSettings& settings,
                                           const std::string& label) {
  const emulator::CaseSpec& spec = settings.spec;
  const Status refusal = refuse(spec);
  if (!refusal.ok()) return refusal;
  trace::Recorder recorder(settings.level, settings.capacity);
  const emulator::RunResult traced = run_once(settings, &recorder);
  const emulator::RunResult plain = run_once(settings, nullptr);
  for (const emulator::RunResult* result : {&traced, &plain}) {
    if (result->report.has_error()) return Status{DEUCE_HAZARD, "", result->report.text()};
  }
  const bool on_hopper = spec.kernel == Backend::hopper;
  const emulator::ChipFacts chip =
      emulator::facts_of(on_hopper ? emulator::Chip::h200 : emulator::Chip::b200);
  trace::TraceFile file;
  file.facts = {.label = label,
                .kernel = on_hopper ? "hopper" : "blackwell",
                .problem = problem_text(settings) + fmt::format(", {} CTA{}", settings.blocks,
                                                                settings.blocks == 1 ? "" : "s"),
                .chip = fmt::format("{} (model)", chip.name),
                .simulated = true,
                .clock_hz = chip.clock_hz,
                .level = settings.level,
                .head_dim = spec.head_dim,
                .rows = spec.group * spec.q_len,
                .score_slots = on_hopper ? 1 : spec.score_slots,
                .row_replicas = on_hopper ? 1 : spec.row_replicas,
                .kv_block = on_hopper ? hopper::kTileTokens : 128,
                .seed = spec.seed,
                .costs = settings.costs,
                .cycles = traced.cycles,
                .untraced_cycles = plain.cycles};
  file.slices = recorder.take();
  return file;
}

}  // namespace deuce::cli
