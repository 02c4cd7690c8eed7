// SPDX-License-Identifier: Apache-2.0
// Running an Instance through the C API, with the frame of checks around it.
#include "support/subject.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>

#include "api/validate.h"
#include "plan/backend.h"
#include "plan/forced_workers.h"

namespace deuce::testing {
namespace {

/// Ends the process with the case's text when a call does not return.
class Watchdog {
 public:
  explicit Watchdog(const Case& from) {
    text() = "no return from: " + describe(from) + "\n";
    std::signal(SIGALRM, [](int) {
      [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text().data(), text().size());
      std::_Exit(3);
    });
    alarm(100);
  }
  ~Watchdog() { alarm(0); }

 private:
  static std::string& text() {
    static std::string text;
    return text;
  }
};

/// Moves the pointers of `args` from the instance's buffers to copies on the device.
class Relocation {
 public:
  Relocation(DeviceMemory& device, const Instance& instance) : device_(device) {
    for (const GuardedBuffer& buffer : instance.buffers()) {
      copies_.push_back({&buffer, device.upload(buffer.data(), buffer.bytes())});
    }
  }
  ~Relocation() { device_.release_all(); }

  template <class T>
  void move(T*& pointer) const {
    const auto* address = reinterpret_cast<const std::byte*>(pointer);
    for (const Copy& copy : copies_) {
      const std::byte* first = copy.host->data();
      if (address < first || address > first + copy.host->bytes()) continue;
      if (address == first + copy.host->bytes() && copy.host->bytes() > 0) continue;
      pointer = reinterpret_cast<T*>(copy.device + (address - first));
      return;
    }
  }
  void move_all(deuce_decode_args& args) const {
    move(args.q), move(args.k), move(args.v), move(args.out), move(args.lse);
    move(args.cu_q_len), move(args.kv_len), move(args.kv_start), move(args.cache_row);
    move(args.block_table), move(args.page_indptr), move(args.page_indices);
    move(args.last_page_len), move(args.sink), move(args.q_descale), move(args.k_descale);
    move(args.v_descale), move(args.k_token_scale), move(args.v_token_scale);
  }
  void download(const void* of) const {
    for (const Copy& copy : copies_) {
      if (copy.host->data() == of) {
        device_.download(copy.host->data(), copy.device, copy.host->bytes());
      }
    }
  }

 private:
  struct Copy {
    const GuardedBuffer* host;
    std::byte* device;
  };
  DeviceMemory& device_;
  std::vector<Copy> copies_;
};

deuce_status run_on_device(DeviceMemory& device, deuce_decode_plan plan, Instance& instance,
                           deuce_decode_args args, std::byte* workspace, std::size_t bytes) {
  const Relocation relocation(device, instance);
  relocation.move_all(args);
  relocation.move(workspace);
  const deuce_status status = deuce_decode_run(plan, &args, workspace, bytes, nullptr);
  relocation.download(instance.args.out);
  if (instance.args.lse != nullptr) relocation.download(instance.args.lse);
  return status;
}

/// The reference's view of an instance: validated, with every default resolved.
Status resolve(const Instance& instance, Problem& problem, Call& call) {
  deuce_decode_config config = instance.config;
  config.backend = DEUCE_BACKEND_REFERENCE;
  config.score_slots = config.row_replicas = config.sm_margin = 0;
  Result<Problem> resolved = validate_config(config);
  if (!resolved.ok()) return resolved.status();
  problem = resolved.value();
  call = instance.args;
  return validate_args(problem, call);
}

std::string differing(const char* name, const std::vector<uint32_t>& a,
                      const std::vector<uint32_t>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) {
      return fmt::format("{} element {} depends on unused bytes: {:#x} with NaN, {:#x} with zeros",
                         name, i, a[i], b[i]);
    }
  }
  return {};
}

}  // namespace

ServedCases& served_cases() {
  static ServedCases cases;
  return cases;
}

std::vector<Subject>& device_subjects() {
  static std::vector<Subject> list;
  return list;
}

std::vector<Subject> subjects() {
  if (!device_subjects().empty()) return device_subjects();
  std::vector<Subject> found;
  for (const BackendEntry& entry : backends()) {
    if (entry.id == Backend::reference || entry.id == Backend::cpu) {
      found.push_back({.name = entry.name, .backend = static_cast<int32_t>(entry.id)});
    }
    if (entry.id == Backend::emulator) {
      found.push_back({.name = "emulator_blackwell",
                       .backend = DEUCE_BACKEND_EMULATOR,
                       .emulated_backend = DEUCE_BACKEND_BLACKWELL});
      found.push_back({.name = "emulator_hopper",
                       .backend = DEUCE_BACKEND_EMULATOR,
                       .emulated_backend = DEUCE_BACKEND_HOPPER});
    }
  }
  return found;
}

Case within_reach(const Subject& subject, Case drawn) {
  const bool hopper =
      subject.backend == DEUCE_BACKEND_HOPPER || subject.emulated_backend == DEUCE_BACKEND_HOPPER;
  if (subject.backend != DEUCE_BACKEND_EMULATOR && !hopper) return drawn;
  drawn.head_dim_qk = drawn.head_dim_v = drawn.head_dim_qk > 64 ? 128 : 64;
  const int32_t type = drawn.seed % 2 == 0 ? DEUCE_BF16 : DEUCE_F16;
  if (hopper) {
    drawn.q_dtype = type;
    drawn.kv_dtype = drawn.seed / 2 % 3 == 0 ? DEUCE_E4M3 : type;
    drawn.token_scales = false;
    drawn.descales = drawn.descales && drawn.fp8_cache();
    if (drawn.out_dtype == DEUCE_E4M3 || drawn.out_dtype == DEUCE_E5M2) drawn.out_dtype = type;
    drawn.padding = 16;
    drawn.row_replicas = 0;
    // Kernels of more than 16 rows have one score slot or two.
    const bool has_slots = drawn.group * drawn.max_q_len() > 16 && !drawn.fp8_cache();
    drawn.score_slots = has_slots ? static_cast<int32_t>(drawn.seed / 8 % 3) : 0;
    if (subject.backend == DEUCE_BACKEND_EMULATOR) drawn.sm_margin = std::min(drawn.sm_margin, 3);
    return drawn;
  }
  drawn.q_dtype = drawn.kv_dtype = drawn.out_dtype = type;
  drawn.descales = drawn.token_scales = false;
  if (drawn.page_size > 0) drawn.page_size = std::max(drawn.page_size, 8);
  drawn.padding = 16;
  constexpr int32_t kReplicas[] = {0, 1, 2, 4};
  drawn.row_replicas = kReplicas[drawn.seed / 8 % 4];
  if (drawn.row_replicas * drawn.group > 128) drawn.row_replicas = 0;
  drawn.score_slots = static_cast<int32_t>(drawn.seed / 2 % 4);
  drawn.sm_margin = std::min(drawn.sm_margin, 3);
  return drawn;
}

Outcome run(const Subject& subject, Instance& instance, const RunOptions& options) {
  const Watchdog watchdog(instance.source());
  deuce_decode_config config = instance.config;
  deuce_decode_args args = instance.args;
  config.backend = subject.backend;
  config.emulated_backend = subject.emulated_backend;
  config.flags |= options.flags;
  if (subject.mutate) subject.mutate(config, args);
  forced_workers() = instance.source().workers;

  Outcome outcome;
  if (subject.direct) {
    Problem problem;
    Call call{};
    const Status status = resolve(instance, problem, call);
    outcome.status = status.code();
    outcome.sentence = status.sentence();
    if (!status.ok()) return outcome;
    if (call.batch > 0) subject.direct(problem, call, instance.source().workers);
    outcome.out = instance.output_bits();
    outcome.lse = instance.lse_bits();
    return outcome;
  }
  deuce_decode_plan plan = nullptr;
  outcome.status = deuce_decode_plan_create(&config, &plan);
  if (outcome.status == DEUCE_OK) {
    std::size_t bytes = 0, control = 0;
    deuce_decode_workspace_size(&config, &bytes, &control);
    bytes += options.workspace_excess;
    std::byte* workspace = instance.make_workspace(bytes, options.workspace_fill);
    if ((options.flags & DEUCE_FLAG_WORKSPACE_KEPT) != 0) std::memset(workspace, 0, control);
    outcome.status = subject.device == nullptr
                         ? deuce_decode_run(plan, &args, workspace, bytes, nullptr)
                         : run_on_device(*subject.device, plan, instance, args, workspace, bytes);
    if (outcome.status == DEUCE_OK && subject.damage) subject.damage(instance);
  }
  if (outcome.status != DEUCE_OK) {
    outcome.sentence = deuce_last_error();
    outcome.field = deuce_last_error_field();
  }
  deuce_decode_plan_destroy(plan);
  forced_workers() = 0;
  served_cases().note(outcome.status);
  if (outcome.status == DEUCE_OK) {
    outcome.out = instance.output_bits();
    outcome.lse = instance.lse_bits();
  }
  return outcome;
}

reference::Verdict judge_results(const Subject& subject, const Instance& instance) {
  Problem problem;
  Call call{};
  reference::Verdict verdict;
  if (const Status status = resolve(instance, problem, call); !status.ok()) {
    verdict.ok = false;
    verdict.first_failure = "the reference refuses this case: " + status.sentence();
    return verdict;
  }
  if (call.batch == 0) return verdict;
  const bool emulated = subject.backend == DEUCE_BACKEND_EMULATOR;
  const Backend arithmetic{emulated ? subject.emulated_backend : subject.backend};
  return reference::judge(problem, call, reference::precision_of(arithmetic, problem));
}

std::string check_frame(const Subject& subject, const Case& from, bool* refused) {
  if (refused != nullptr) *refused = false;
  Instance poisoned(from, {.fill = Poison::Fill::nan});
  const Outcome first = run(subject, poisoned);
  if (first.refused() && refused != nullptr) {
    *refused = true;
    if (first.field.empty()) return "a refusal names no field: " + first.sentence;
    return poisoned.results_untouched() ? "" : "a refused call wrote results";
  }
  if (first.status != DEUCE_OK) return "refused: " + first.sentence;
  if (std::string text = poisoned.frame_violation(); !text.empty()) return text;
  const reference::Verdict verdict = judge_results(subject, poisoned);
  if (!verdict.ok) return verdict.first_failure;

  Instance clean(from, {.fill = Poison::Fill::zeros});
  const Outcome second = run(subject, clean);
  if (second.status != DEUCE_OK) return "refused with zeros only: " + second.sentence;
  std::string text = differing("out", first.out, second.out);
  return text.empty() ? differing("lse", first.lse, second.lse) : text;
}

std::string shrink(const Subject& subject, const Case& failing, const Property& property) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(8);
  Case smallest = failing;
  bool found = true;
  while (found && std::chrono::steady_clock::now() < deadline) {
    found = false;
    for (const Case& candidate : simpler(smallest)) {
      if (std::chrono::steady_clock::now() > deadline) break;
      if (property(subject, candidate).empty()) continue;
      smallest = candidate;
      found = true;
      break;
    }
  }
  return fmt::format("{}\n  on {}, seed {}\n  shrunk to {}\n  from {}", property(subject, smallest),
                     subject.name, failing.seed, describe(smallest), describe(failing));
}

}  // namespace deuce::testing
