// SPDX-License-Identifier: Apache-2.0
// Where the warps of a standing run are; see hang_report.h.
#include "trace/hang_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace deuce::trace {
namespace {

constexpr std::size_t kShownCtas = 8;

/// The begin of the range that records[at] ends; `at` itself where it was not kept.
std::size_t begin_of(const std::vector<Record>& records, std::size_t at) {
  const Event event = event_of(records[at].word);
  for (std::size_t i = at; i-- > 0;) {  // no range holds one of its own event
    if (event_of(records[i].word) == event && begins_range(kind_of(records[i].word))) return i;
  }
  return at;
}

/// Number of the warp within its role and CTA, for each slice.
std::vector<int> warp_numbers(const std::vector<Slice>& slices) {
  std::map<std::pair<uint32_t, uint8_t>, int> next;
  std::vector<int> numbers;
  numbers.reserve(slices.size());
  for (const Slice& slice : slices) {
    numbers.push_back(
        slice.header.agent == Agent::warp ? next[{slice.header.cta, slice.header.role}]++ : 0);
  }
  return numbers;
}

}  // namespace

LastEvent last_event(const std::vector<Record>& records) {
  LastEvent last;
  for (std::size_t i = records.size(); i-- > 0;) {
    last.kind = kind_of(records[i].word);
    if (last.kind == Kind::value) continue;
    last.started = true;
    last.event = event_of(records[i].word);
    last.ended = last.kind == Kind::end && last.event == Event::warp_lifetime;
    const std::size_t place = last.kind == Kind::end ? begin_of(records, i) : i;
    last.slot = slot_of(records[place].word);
    last.block = block_of(records[place].word);
    last.parity = parity_of(records[place].word);
    return last;
  }
  return last;
}

std::string text_of(const LastEvent& last) {
  if (!last.started) return "has not started";
  const EventInfo& row = info(last.event);
  const std::string name =
      row.argument.empty() ? std::string(row.name) : fmt::format("{} {}", row.name, row.argument);
  const bool begins = begins_range(last.kind);
  const std::string what = begins && row.flow == Flow::wait
                               ? fmt::format("waits for {} ({})", row.edge, name)
                               : fmt::format("{} {}", begins ? "inside" : "after", name);
  return fmt::format("{}, slot {}, block {}, parity {}", what, last.slot, last.block, last.parity);
}

std::string hang_report(const std::vector<Slice>& slices) {
  const std::vector<int> numbers = warp_numbers(slices);
  std::set<uint32_t> ctas;
  std::size_t warps = 0, running = 0;
  std::string lines;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const SliceHeader& header = slices[i].header;
    if (header.agent != Agent::warp) continue;
    ++warps;
    const LastEvent last = last_event(slices[i].records);
    if (last.ended) continue;
    ++running;
    ctas.insert(header.cta);
    if (ctas.size() > kShownCtas) continue;
    lines += fmt::format("  CTA {}  {} warp {}: {}\n", header.cta,
                         name_of(static_cast<Role>(header.role)), numbers[i], text_of(last));
  }
  if (running == 0) return {};
  if (ctas.size() > kShownCtas) {
    lines += fmt::format("  and warps of {} CTAs more\n", ctas.size() - kShownCtas);
  }
  return fmt::format("{} of {} warps have not ended; their last events:\n{}", running, warps,
                     lines);
}

}  // namespace deuce::trace
