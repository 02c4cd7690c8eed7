// SPDX-License-Identifier: Apache-2.0
// Mutants of the GPU kernels; see mutant.h.
#include "hazard/mutant.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <regex>
#include <utility>

#include "emulator/record.h"

namespace deuce::test {
namespace {

using emulator::Finding;
using emulator::KernelSpec;
using emulator::Mode;
using emulator::Op;
using emulator::OpContext;
using emulator::OpKind;

class Filter final : public emulator::OpFilter {
 public:
  Filter(const KernelSpec& kernel, Spoil spoil) : kernel_(kernel), spoil_(std::move(spoil)) {}
  bool pass(Op& op, const OpContext& context) override {
    return !spoil_ || spoil_(op, context, locate(op, context));
  }

 private:
  Where locate(const Op& op, const OpContext& context) const {
    const auto [row, slot] = emulator::edge_of(kernel_, op, context);
    if (row < 0) return {};
    return {&kernel_.edges[static_cast<std::size_t>(row)], slot};
  }
  const KernelSpec& kernel_;
  Spoil spoil_;
};

const char* name_of(Mode mode) {
  constexpr const char* kNames[] = {"timed", "eager", "lazy", "random", "adversarial"};
  return kNames[static_cast<std::size_t>(mode)];
}

bool is_right(const Finding& finding, const Mutant& mutant) {
  return std::any_of(mutant.right.begin(), mutant.right.end(), [&](const Expected& expected) {
    if (finding.check != expected.check) return false;
    if (finding.check != "deadlock") {
      return finding.edge.empty() ? finding.text.find(expected.about) != std::string::npos
                                  : finding.edge.starts_with(expected.about);
    }
    // Of a cycle of several edges: the very edge, not one that happens to be waited for as well.
    const std::string edges = fmt::format(", {},", finding.edge);
    return edges.find(fmt::format(", {},", expected.about)) != std::string::npos;
  });
}

/// Whether a finding says which warp of which CTA stands at which line of the kernel, and of a race
/// the other side as well.
bool names_the_actors(const Finding& finding) {
  if (finding.check == "deadlock" || finding.check == "H11") return true;  // texts of their own
  const auto lines_like = [&](const std::string& verbs) {
    const std::regex line("\n  (" + verbs + ") +CTA [0-9]+  [a-z ]+ warp [0-9]+  .*:[0-9]+");
    return std::distance(std::sregex_iterator(finding.text.begin(), finding.text.end(), line),
                         std::sregex_iterator());
  };
  const bool race = finding.check == "H1" || finding.check == "H2" || finding.check == "H3" ||
                    finding.check == "H12" || finding.check == "H13";
  return lines_like("at|access") > 0 && (!race || lines_like("against") > 0);
}

}  // namespace

emulator::CaseSpec stimulus() {
  return {.kv_len = {600, 500, 300, 200, 260, 200}, .num_splits = 2, .growing = true};
}

emulator::CaseSpec hopper_stimulus(int rows) {
  return {.kernel = Backend::hopper,
          .head_dim = 128,
          .group = rows,
          .kv_len = {600, 300, 500, 200, 260, 200},
          .num_splits = 2,
          .score_slots = 0,
          .row_replicas = 0,
          .growing = true};
}

std::unique_ptr<emulator::OpFilter> make_filter(const KernelSpec& kernel, Spoil spoil) {
  return std::make_unique<Filter>(kernel, std::move(spoil));
}

emulator::RunResult run_mutant(emulator::DecodeCase& decode, Mode mode, const Mutant& mutant) {
  if (mutant.kernel == Backend::blackwell) {
    decode.problem().score_slots = mutant.slots;
    decode.problem().row_replicas = mutant.replicas;
  } else if (mutant.rows > 16) {
    decode.problem().score_slots = mutant.slots;
  }
  const auto kernel = emulator::make_decode_kernel(decode.problem(), 2);
  emulator::Options options;
  options.run = {mode, mode == Mode::adversarial ? 2 : 0, 5};
  options.strict = mutant.strict;
  options.strict_order = mutant.strict && !mutant.relies;
  options.table_counts = mutant.table_counts;
  options.step_limit = 2'000'000;
  Filter filter(kernel->spec(options), mutant.spoil);
  options.filter = &filter;
  std::vector<std::byte> workspace(kernel->workspace().bytes);
  return kernel->run(decode.call(), workspace.data(), options);
}

bool is_wait(const Op& op) {  // a test that fails leads to the wait
  return op.kind == OpKind::wait || op.kind == OpKind::test || op.kind == OpKind::sync_named;
}
bool is_arrival(const Op& op) {
  return op.kind == OpKind::arrive || op.kind == OpKind::commit ||
         op.kind == OpKind::arrive_expect || op.kind == OpKind::arrive_named;
}
bool is_in(const Op& op, std::string_view file) {
  return std::string_view(op.site.file).find(file) != std::string_view::npos;
}

Spoil drop(OpKind kind) {
  return [kind](const Op& op, const OpContext&, const Where&) { return op.kind != kind; };
}

Spoil drop(OpKind kind, Role role) {
  return [kind, role](const Op& op, const OpContext& context, const Where&) {
    return !(op.kind == kind && context.role == role);
  };
}

Spoil wait_for_other_parity(std::string_view edge) {
  return [edge](Op& op, const OpContext&, const Where& where) {
    if (is_wait(op) && where.is(edge)) op.index += 1;
    return true;
  };
}

Spoil wait_for_next_slot(const Edge& edge) {
  return [name = edge.name, slots = edge.slots](Op& op, const OpContext&, const Where& where) {
    if (is_wait(op) && where.is(name)) {
      op.barrier += where.slot + 1 < slots ? 1 : 1 - slots;
    }
    return true;
  };
}

Spoil announce_bytes(std::string_view edge, int change) {
  return [edge, change](Op& op, const OpContext&, const Where& where) {
    if (op.kind == OpKind::arrive_expect && where.is(edge))
      op.bytes += static_cast<uint32_t>(change);
    return true;
  };
}

std::string survivors(const Mutant& mutant) {
  emulator::DecodeCase decode(mutant.kernel == Backend::hopper ? hopper_stimulus(mutant.rows)
                                                               : stimulus());
  std::string wrong;
  for (const Mode mode : kModes) {
    const emulator::RunResult result = run_mutant(decode, mode, mutant);
    const auto& findings = result.report.findings();
    const auto error = std::find_if(findings.begin(), findings.end(), [](const Finding& finding) {
      return finding.severity == emulator::Severity::error;
    });
    const bool found = error != findings.end();
    if (mutant.right.empty() && !found) continue;
    if (found && is_right(*error, mutant)) {
      if (!names_the_actors(*error)) wrong += fmt::format("  {}\n", error->text);
      continue;
    }
    wrong += fmt::format("  {}: {}\n", name_of(mode),
                         !found ? "no error"
                                : fmt::format("{} [{}] {}", error->check, error->edge,
                                              error->text.substr(0, error->text.find('\n'))));
  }
  return wrong;
}

void expect_caught(const std::vector<Mutant>& mutants) {
  std::size_t caught = 0, equivalent = 0;
  for (const Mutant& mutant : mutants) {
    const std::string wrong = survivors(mutant);
    EXPECT_EQ(wrong, "") << mutant.name;
    (mutant.right.empty() ? equivalent : caught) += wrong.empty() ? 1 : 0;
  }
  fmt::print("caught {} / total {} / equivalent {}\n", caught, mutants.size(), equivalent);
}

}  // namespace deuce::test
