// SPDX-License-Identifier: Apache-2.0
// Records traces on the emulator and on a GPU; see record_trace.h.
#include "record_trace.h"

#include <algorithm>
#include <map>
#include <vector>

#include "decode_options.h"
#include "emulator/blackwell.h"
#include "emulator/decode_kernel.h"
#include "emulator/hopper.h"
#include "emulator/memory_ranges.h"
#include "machine_facts.h"
#include "plan/hopper_shapes.h"
#include "trace/hang_report.h"
#ifdef DEUCE_HAS_HOPPER
#include <fmt/chrono.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "device.h"
#include "exit_code.h"
#include "gpu/hopper_trace.h"
#endif

namespace deuce::cli {
namespace {

emulator::RunResult run_once(const TraceSettings& settings, const emulator::DecodeKernel& kernel,
                             const Call& call, trace::Recorder* recorder) {
  std::vector<std::byte> workspace(kernel.workspace().bytes);
  emulator::Options options;
  options.recorder = recorder;
  options.filter = settings.filter;
  options.band = settings.costs == "low"    ? emulator::Band::low
                 : settings.costs == "high" ? emulator::Band::high
                                            : emulator::Band::best;
  return kernel.run(call, workspace.data(), options);
}

std::string text_of(const TraceSettings& settings, int row_replicas) {
  const emulator::CaseSpec& spec = settings.spec;
  std::string text = fmt::format("head dim {}, {}, {}", spec.head_dim,
                                 spec.e4m3   ? "e4m3"
                                 : spec.bf16 ? "bf16"
                                             : "f16",
                                 problem_text(spec));
  if (row_replicas > 1) text += fmt::format(", {} row replicas", row_replicas);
  if (settings.cold) text += ", cold cache";
  return text;
}

/// Facts of a run that do not depend on where it runs.
trace::Facts facts_of(const TraceSettings& settings, const Problem& problem) {
  const emulator::CaseSpec& spec = settings.spec;
  trace::Facts facts;
  facts.label = settings.label;
  facts.commit = machine_facts().commit;
  facts.level = settings.level;
  facts.head_dim = spec.head_dim;
  facts.rows = spec.group * spec.q_len;
  facts.element_bytes = spec.e4m3 ? 1 : 2;
  facts.seed = spec.seed;
  if (spec.kernel == Backend::hopper) {
    facts.kernel = "hopper";
    facts.kv_block = hopper::kTileTokens;
    facts.score_slots =
        hopper::kShapes[static_cast<std::size_t>(hopper::shape_of(problem))].score_slots;
  } else {
    const BlackwellPlan plan = plan_blackwell(problem, settings.blocks);
    facts.kernel = "blackwell";
    facts.score_slots = plan.score_slots;
    facts.row_replicas = plan.row_replicas;
  }
  facts.problem = text_of(settings, facts.row_replicas);
  return facts;
}

}  // namespace

// A case of the same shape in which each request has one key: only the kernel is asked for.
Status check_traced(const TraceSettings& settings) {
  emulator::CaseSpec spec = settings.spec;
  std::fill(spec.kv_len.begin(), spec.kv_len.end(), 1);
  const emulator::DecodeCase decode(spec);
  Status bad = emulator::check_kernel(decode.problem());
  if (!bad.ok()) return bad;
  if (spec.kernel == Backend::hopper) return hopper::check_call(decode.problem(), decode.call());
  bad = check_blackwell_call(decode.problem(), decode.call());
  if (!bad.ok()) return bad;
  const BlackwellPlan plan = plan_blackwell(decode.problem(), settings.blocks);
  return emulator::check_compiled({.head_dim = spec.head_dim,
                                   .score_slots = plan.score_slots,
                                   .bf16 = spec.bf16,
                                   .row_replicas = plan.row_replicas});
}

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

/// "2026-11-30", in UTC.
std::string today() {
  const std::time_t now = std::time(nullptr);
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(now));
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

Result<Recorded> trace_on_hopper(const TraceSettings& settings) {
  emulator::DecodeCase decode(settings.spec);
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
       .policy = settings.keeps_newest ? trace::Policy::keep_newest : trace::Policy::keep_first,
       .level = settings.level,
       .hang_seconds = settings.hang_seconds});
  if (!run.ok()) return run.status();
  hopper::TracedRun& result = run.value();
  if (result.hangs) end_hung(settings.hang_seconds, result);
  Recorded recorded;
  recorded.kernel = &emulator::hopper_spec(hopper::shape_of(decode.problem()));
  trace::Facts& facts = recorded.file.facts = facts_of(settings, decode.problem());
  facts.chip = result.device;
  facts.recorded = today();
  if (const std::optional<GpuFacts> gpu = device.value()->gpu()) facts.driver = gpu->driver;
  facts.simulated = false;
  facts.clock_hz = result.clock_hz;
  facts.cycles = result.traced_seconds * result.clock_hz;
  facts.untraced_cycles = result.untraced_seconds * result.clock_hz;
  facts.self_cost = result.record_cycles;
  recorded.file.slices = std::move(result.slices);
  return recorded;
}
#else
Result<Recorded> trace_on_hopper(const TraceSettings&) {
  return Status(DEUCE_NO_DEVICE, "backend", "backend hopper: this build has no GPU kernels");
}
#endif

Result<Recorded> trace_on_emulator(const TraceSettings& settings) {
  emulator::DecodeCase decode(settings.spec);
  const auto kernel = emulator::make_decode_kernel(decode.problem(), settings.blocks);
  trace::Recorder recorder(settings.level, settings.capacity);
  const emulator::RunResult traced = run_once(settings, *kernel, decode.call(), &recorder);
  const emulator::RunResult plain = run_once(settings, *kernel, decode.call(), nullptr);
  if (traced.report.has_error()) {
    return Status{DEUCE_HAZARD, "", traced.report.text() + trace::hang_report(recorder.take())};
  }
  if (plain.report.has_error()) return Status{DEUCE_HAZARD, "", plain.report.text()};
  const emulator::ChipFacts chip = emulator::facts_of(
      settings.spec.kernel == Backend::hopper ? emulator::Chip::h200 : emulator::Chip::b200);
  Recorded recorded;
  recorded.kernel = &kernel->spec({});
  trace::Facts& facts = recorded.file.facts = facts_of(settings, decode.problem());
  facts.problem += fmt::format(", {} CTA{}", settings.blocks, settings.blocks == 1 ? "" : "s");
  facts.chip = fmt::format("{} (model)", chip.name);
  facts.clock_hz = chip.clock_hz;
  facts.costs = settings.costs;
  facts.cycles = traced.cycles;
  facts.untraced_cycles = plain.cycles;
  recorded.file.slices = recorder.take();
  return recorded;
}

}  // namespace deuce::cli
