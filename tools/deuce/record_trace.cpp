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
#include "trace/hang_report.h"
#ifdef DEUCE_HAS_HOPPER
#include <cstdio>
#include <cstdlib>

#include "device.h"
#include "exit_code.h"
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
  options.filter = settings.filter;
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
  if (settings.cold) text += ", cold cache";
  return text;
}

}  // namespace

// Four times the L2 of an H200 and more passes through before a cache is read again; no more
// copies than launches could use.
Result<std::size_t> cold_copies(std::size_t cache_bytes) {
  constexpr std::size_t kL2Bytes = std::size_t{64} << 20, kColdBytes = 4 * kL2Bytes, kMost = 64;
  if (kMost * cache_bytes < kL2Bytes) {
    return unsupported("cold",
                       "--cold: {} copies of {} bytes of K and V stay in the L2 together; a cold "
                       "trace needs at least {} bytes",
                       kMost, cache_bytes, kL2Bytes / kMost);
  }
  return std::min(kColdBytes / cache_bytes + 1, kMost);
}

#ifdef DEUCE_HAS_HOPPER
namespace {

using Placed = std::map<const void*, void*>;  // where a host array lies on the device

/// Copies an array of the call to the device, where `memory` keeps it.
Status place(const emulator::GlobalRange& range, Device& device, Placed& placed,
             std::vector<Memory>& memory) {
  Result<Memory> one = device.place(range.base, range.bytes);
  if (!one.ok()) return one.status();
  placed[range.base] = one.value().get();
  memory.push_back(std::move(one.value()));
  return {};
}

/// The call with the device's addresses; an array that is placed but not moved would be read from
/// the host, so it is an error.
Result<Call> moved(Call call, const Placed& placed) {
  std::size_t count = 0;
  const auto move = [&](auto&... pointers) {
    const auto move_one = [&](auto*& pointer) {
      const auto found = placed.find(pointer);
      if (found == placed.end()) return;
      pointer = static_cast<std::remove_reference_t<decltype(pointer)>>(found->second);
      ++count;
    };
    (move_one(pointers), ...);
  };
  move(call.q, call.k, call.v, call.out, call.lse, call.kv_len, call.kv_start, call.cu_q_len,
       call.cache_row, call.page_indptr, call.last_page_len, call.page_indices, call.block_table,
       call.k_descale, call.v_descale, call.sink);
  if (count == placed.size()) return call;
  return Status(
      DEUCE_INVALID_ARGUMENT, "call",
      fmt::format("{} arrays of the call, {} of them moved to the device", placed.size(), count));
}

/// The case's call on the device, and when cold several times with a K and V of its own.
Result<std::vector<Call>> place_calls(const emulator::DecodeCase& decode, bool cold, Device& device,
                                      std::vector<Memory>& memory) {
  std::vector<Call> calls;
  Placed placed;
  std::size_t copies = 1, cache = 0;
  const auto ranges = emulator::memory_ranges(decode.problem(), decode.call());
  const auto is_cache = [](const emulator::GlobalRange& range) {
    return range.name == "k" || range.name == "v";
  };
  for (const emulator::GlobalRange& range : ranges) cache += is_cache(range) ? range.bytes : 0;
  if (cold) {
    const Result<std::size_t> wanted = cold_copies(cache);
    if (!wanted.ok()) return wanted.status();
    copies = wanted.value();
  }
  for (std::size_t i = 0; i < copies; ++i) {
    for (const emulator::GlobalRange& range : ranges) {
      if (i > 0 && !is_cache(range)) continue;
      if (Status bad = place(range, device, placed, memory); !bad.ok()) return bad;
    }
    const Result<Call> call = moved(decode.call(), placed);
    if (!call.ok()) return call.status();
    calls.push_back(call.value());
  }
  return calls;
}

/// Memory of a device whose kernel hangs cannot be freed, so the process ends here.
[[noreturn]] void end_hung(double seconds, const hopper::TracedRun& run) {
  std::string report = trace::hang_report(run.slices);
  if (report.empty()) report = "it has ended while its records were read\n";
  if (!run.unread.ok()) {
    report = fmt::format("its records could not be read: {}\n", run.unread.sentence());
  }
  fmt::print(stderr, "backend hopper: the kernel has not ended after {} s\n{}", seconds, report);
  std::fflush(nullptr);
  std::_Exit(static_cast<int>(ExitCode::run_failed));
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
  const Result<std::vector<Call>> calls =
      place_calls(decode, settings.cold, *device.value(), memory);
  if (!calls.ok()) return calls.status();
  Result<hopper::TracedRun> run = hopper::run_traced(
      decode.problem(), calls.value(),
      {.capacity = settings.capacity,
       .policy = settings.keeps_newest ? trace::kKeepNewest : trace::Policy::keep_first,
       .hang_seconds = settings.hang_seconds});
  if (!run.ok()) return run.status();
  hopper::TracedRun& result = run.value();
  if (result.hangs) end_hung(settings.hang_seconds, result);
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
                .untraced_cycles = result.untraced_seconds * result.clock_hz,
                .self_cost = result.record_cycles};
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
  if (traced.report.has_error()) {
    return Status{DEUCE_HAZARD, "", traced.report.text() + trace::hang_report(recorder.take())};
  }
  if (plain.report.has_error()) return Status{DEUCE_HAZARD, "", plain.report.text()};
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
