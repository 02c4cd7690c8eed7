// SPDX-License-Identifier: Apache-2.0
// `deuce run`: computes one captured step, says what it was and how long it took, checks it on
// request and writes the result.
#include <sys/stat.h>

#include <algorithm>

#include "capture.h"
#include "command.h"
#include "execution.h"
#include "options.h"
#include "plan.h"
#include "plan/names.h"
#include "result.h"
#include "run_report.h"
#include "traffic.h"
#include "verify.h"

namespace deuce::cli {
namespace {

struct RunOptions {
  std::string file, out;
  ScalarTexts scalars;
  Execution execution;
  int32_t repeat = 0;  // 0 = until kAutomaticSeconds have passed
  bool check = false, explain = false, roof = false;
};

constexpr const char* kFormat =
    "Tensors of FILE, outermost axis first, d = head dim:\n"
    "  q            [tokens, q heads, d]         F32, F16, BF16, F8_E4M3 or F8_E5M2\n"
    "  k, v         [pages, slot, kv heads, d]   with a page table\n"
    "               [batch, tokens, kv heads, d] without\n"
    "  kv_len       [batch]                      live keys; needed with block_table\n"
    "  block_table  [batch, pages]               page ids, or the other style of table:\n"
    "  page_indptr  [batch + 1]                  with page_indices [pages of all requests]\n"
    "                                            and last_page_len [batch]\n"
    "Optional tensors:\n"
    "  cu_q_len     [batch + 1]                  first token of each request; else the same\n"
    "                                            number of tokens each\n"
    "  kv_start     [batch]                      first live slot\n"
    "  cache_row    [batch]                      row of the cache, without a page table\n"
    "  sink         [q heads]                    F32, F16 or BF16\n"
    "  q_scale, k_scale, v_scale                 F32 [1], [kv heads] or [batch, kv heads], fp8 "
    "only;\n"
    "                                            k_scale, v_scale also as k without d\n"
    "Lengths, tables and rows are I32, or I64 with values of 32 bits. Metadata keys are the flags\n"
    "of \"What is computed\" with underscores. Unknown tensors and keys are refused.";

constexpr double kAutomaticSeconds = 0.2;
constexpr std::size_t kAutomaticRepeats = 20;

bool same_file(const std::string& a, const std::string& b) {
  struct stat about_a {
  }, about_b{};
  return ::stat(a.c_str(), &about_a) == 0 && ::stat(b.c_str(), &about_b) == 0 &&
         about_a.st_dev == about_b.st_dev && about_a.st_ino == about_b.st_ino;
}

/// The capture's arguments with every pointer on the device.
Result<deuce_decode_args> place_inputs(const Capture& capture, Device& device,
                                       std::vector<Memory>& memory) {
  deuce_decode_args args = capture.args;
  for (const Input& input : capture.inputs) {
    Result<Memory> placed = device.place(input.data, input.bytes);
    if (!placed.ok()) return placed.status();
    void* address = placed.value().get();
    std::memcpy(reinterpret_cast<char*>(&args) + input.field, &address, sizeof address);
    memory.push_back(std::move(placed.value()));
  }
  return args;
}

/// Seconds of each repeat; the last result is compared with the first. The first run finds cold
/// caches, so it counts only where it is the only one.
Result<std::vector<double>> measure(const RunOptions& options, Device& device, const Plan& plan,
                                    const deuce_decode_args& args, CallResult& result,
                                    bool& repeats_agree) {
  const Result<double> cold = device.time([&] { return plan.run(args); });
  if (!cold.ok()) return cold.status();
  if (Status status = plan.fault(); !status.ok()) return status;
  if (Status status = result.fetch(device); !status.ok()) return status;
  if (options.repeat == 1 || (options.repeat == 0 && cold.value() >= kAutomaticSeconds))
    return std::vector<double>{cold.value()};
  const CallResult first = result;
  auto repeat = device.repeat(1, [&](std::size_t) { return plan.run(args); });
  if (!repeat.ok()) return repeat.status();
  std::vector<double> seconds;
  double total = 0;
  const auto enough = [&] {
    if (options.repeat > 0) return seconds.size() >= static_cast<std::size_t>(options.repeat);
    return total >= kAutomaticSeconds || seconds.size() >= kAutomaticRepeats;
  };
  do {
    const Result<Timed> timed = repeat.value()->sample();
    if (!timed.ok()) return timed.status();
    seconds.push_back(timed.value().seconds);
    total += timed.value().spent_s;
  } while (!enough());
  if (Status status = result.fetch(device); !status.ok()) return status;
  repeats_agree = result.same_bits(first);
  return seconds;
}

Result<ExitCode> run(const RunOptions& options) {
  Result<io::SafetensorsFile> file = io::SafetensorsFile::open(options.file);
  if (!file.ok()) return file.status();
  if (!options.out.empty() && same_file(options.file, options.out)) {
    return invalid("out", "--out: {} is the input file", options.out);
  }
  Result<Capture> read = read_capture(std::move(file.value()), options.scalars);
  if (!read.ok()) return read.status();
  Capture& capture = read.value();
  apply(options.execution, capture.config);

  Result<std::unique_ptr<Device>> device = open_device(options.execution.backend);
  if (!device.ok()) return device.status();
  Result<Plan> plan = Plan::create(capture.config, *device.value());
  if (!plan.ok()) return plan.status();
  std::vector<Memory> memory;
  Result<deuce_decode_args> args = place_inputs(capture, *device.value(), memory);
  if (!args.ok()) return args.status();
  Result<CallResult> result =
      CallResult::create(*device.value(), capture.config, capture.tokens, args.value());
  if (!result.ok()) return result.status();

  RunReport report(capture, plan.value().backend());
  const auto seconds = measure(options, *device.value(), plan.value(), args.value(), result.value(),
                               report.repeats_agree);
  if (!seconds.ok()) return seconds.status();
  report.seconds = seconds.value();
  if (options.check) {
    const auto verdict =
        verify(capture.config, result.value().on_host(capture.args), report.backend);
    if (!verdict.ok()) return verdict.status();
    report.verdict = verdict.value();
  }
  if (!options.out.empty()) {
    const io::Metadata metadata{{"backend", std::string(name_of(report.backend))},
                                {"deuce", deuce_version()},
                                {"lse_base", capture.config.lse_base == 2 ? "2" : "natural"}};
    if (Status status = result.value().write(options.out, metadata); !status.ok()) return status;
    report.written = options.out;
  }
  if (options.roof) {
    const double roof = device.value()->read_roof();
    if (roof > 0) report.roof = roof;
  }
  print(report);
  if (options.explain) {
    const auto text = plan.value().explain(&args.value());
    if (!text.ok()) return text.status();
    fmt::print("{}\n", text.value());
  }
  return report.failed() ? ExitCode::check_failed : ExitCode::ok;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("run", "Compute a captured decode step");
  command.footer(kFormat);
  auto options = std::make_shared<RunOptions>();
  command.add_option("FILE", options->file, "safetensors file with the captured step")
      ->required()
      ->type_name("");
  command
      .add_option("--out", options->out, "write out [tokens, q heads, d] and lse [tokens, q heads]")
      ->type_name("FILE");
  command.add_flag("--check", options->check,
                   "compare with double precision; exit code 1 outside the tolerance");
  command.add_flag("--roof", options->roof,
                   "measure the machine's read roof and show it next to the GB/s");
  command.add_flag("--explain", options->explain,
                   "print as JSON how the backend computes this call");
  integer_option(command, "--repeat", options->repeat, 1,
                 "runs to time (default: up to 20 in 0.2 s)", 1'000'000);
  add_meaning_options(command, options->scalars);
  add_execution_options(command, options->execution);
  command.callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace deuce::cli
