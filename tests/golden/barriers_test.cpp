// SPDX-License-Identifier: Apache-2.0
// Role graph and barrier table of docs/blackwell.md, rendered from the kernel's edge table and held
// against the page (DEUCE_UPDATE_GOLDEN=1 rewrites them; the change is then reviewed), and its
// table of simulated cycles against the timing model.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "emulator/blackwell.h"
#include "emulator/timing_report.h"

namespace deuce {
namespace {

using emulator::KernelSpec;

const char* const kPage = DEUCE_DOCS_FOLDER "/blackwell.md";
constexpr std::string_view kBegin = "<!-- edges: made by tests/golden, not by hand -->\n";
constexpr std::string_view kEnd = "<!-- end of edges -->\n";

void add_once(std::vector<Role>& roles, Role role) {
  const bool known = std::find(roles.begin(), roles.end(), role) != roles.end();
  if (role != Role::idle && !known) roles.push_back(role);
}
std::vector<Role> arriving(const Edge& edge) {
  std::vector<Role> roles;
  for (const Arrival& arrival : edge.arrives) add_once(roles, arrival.role);
  return roles;
}
std::vector<Role> waiting(const Edge& edge) {
  std::vector<Role> roles{edge.waits};
  for (const Role role : edge.waits_too) add_once(roles, role);
  return roles;
}

/// "load q, mma" or, as names of a graph's nodes, "load_q & mma".
std::string names(const std::vector<Role>& roles, bool nodes) {
  std::string text;
  for (const Role role : roles) {
    std::string name(name_of(role));
    if (nodes) std::replace(name.begin(), name.end(), ' ', '_');
    text += (text.empty() ? "" : nodes ? " & " : ", ") + name;
  }
  return text;
}

std::string arrivals_text(const Edge& edge, const KernelSpec& kernel) {
  if (edge.kind == EdgeKind::named)
    return fmt::format("all threads that take part: {}", edge.threads);
  std::string text;
  for (const Arrival& arrival : edge.arrives) {
    if (arrival.by == By::nobody) continue;
    Edge alone{};
    alone.arrives[0] = arrival;
    const char* how = arrival.by == By::bytes               ? ", and the bytes of its copies"
                      : arrival.by == By::commit            ? ", by commit"
                      : arrival.by == By::one_lane_per_warp ? ", one a warp"
                                                            : "";
    text += fmt::format("{}{}: {}{}", text.empty() ? "" : "; ", name_of(arrival.role),
                        arrivals(alone, kernel.roles), how);
  }
  return text;
}

std::string rendered(const KernelSpec& kernel) {
  std::string graph = "```mermaid\nflowchart LR\n", table, implied;
  for (const Edge& edge : kernel.edges) {
    if (edge.kind == EdgeKind::implied) {
      implied += fmt::format("| {} | {} |\n", edge.name, edge.protects);
      continue;
    }
    graph += fmt::format("  {} -->|{}| {}\n", names(arriving(edge), true), edge.name,
                         names(waiting(edge), true));
    table += fmt::format("| {} | {}{} | {} | {} | {} |\n", edge.name, edge.slots,
                         edge.kind == EdgeKind::named ? ", named" : "", arrivals_text(edge, kernel),
                         names(waiting(edge), false), edge.protects);
  }
  return fmt::format(
      "{}```\n\n| edge | slots | arrivals of a phase | waits | protects "
      "|\n|---|---|---|---|---|\n{}"
      "\n| order without a barrier | what it protects, and why it holds |\n|---|---|\n{}",
      graph, table, implied);
}

std::string page_text() {
  std::ifstream file(kPage, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(BlackwellPage, ShowsTheEdgeTable) {
  std::string page = page_text();
  const std::size_t begin = page.find(kBegin), end = page.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::size_t first = begin + kBegin.size();
  const std::string wanted =
      rendered(*emulator::blackwell_spec({.head_dim = 64, .score_slots = 2}));
  if (std::getenv("DEUCE_UPDATE_GOLDEN") != nullptr) {
    page.replace(first, end - first, wanted);
    std::ofstream(kPage, std::ios::binary) << page;
  } else {
    EXPECT_EQ(page.substr(first, end - first), wanted);
  }
}

/// "1999 (1729 to 2285) | 17 % |"; the base path has no gain over itself.
std::string cycles_text(const emulator::TimingReport& report, std::size_t row) {
  const auto& cycles = report.slots[row].cycles_per_block;
  return fmt::format(
      "{:.0f} ({:.0f} to {:.0f}) |{} |", cycles[1], cycles[0], cycles[2],
      row == 0 ? "" : fmt::format(" {:.0f} %", report.gain_percent(report.slots[row])));
}

TEST(BlackwellPage, StatesTheSimulatedCycles) {
  const std::string page = page_text();
  const auto narrow = emulator::predict_timing(64, 16), wide = emulator::predict_timing(128, 16);
  ASSERT_TRUE(narrow.ok() && wide.ok());
  for (std::size_t row = 0; row < narrow.value().slots.size(); ++row) {
    const emulator::SlotTiming& timing = narrow.value().slots[row];
    const std::string wanted =
        fmt::format("| {}, {}{} | {} {}\n", timing.score_slots, timing.row_replicas,
                    row == 0   ? " (base)"
                    : row == 1 ? " (ping-pong)"
                               : "",
                    cycles_text(narrow.value(), row), cycles_text(wide.value(), row));
    EXPECT_NE(page.find(wanted), std::string::npos) << wanted;
  }
}

}  // namespace
}  // namespace deuce
