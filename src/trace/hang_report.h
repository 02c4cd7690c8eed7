// SPDX-License-Identifier: Apache-2.0
// A run that stands still, in words: where each warp is, by the last record that it has written.
// Used on slices of a GPU that still runs and on those of the emulator after a deadlock.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "kernel/edges.h"
#include "trace/recorder.h"

namespace deuce::trace {

/// Records in the order in which they were written, of a slice that was zero before and is perhaps
/// being written still: nothing behind the first empty place, or all, from the oldest clock on.
/// Records that follow each other must lie less than 2^31 cycles apart, 1.2 s at 1.81 GHz.
inline std::vector<Record> in_order(const std::vector<Record>& slice) {
  const auto empty = std::find_if(slice.begin(), slice.end(), [](const Record& record) {
    return record.clock == 0 && record.word == 0;
  });
  std::vector<Record> records(slice.begin(), empty);
  if (empty != slice.end()) return records;
  for (std::size_t i = 1; i < records.size(); ++i) {
    if (static_cast<int32_t>(records[i].clock - records[i - 1].clock) >= 0) continue;
    std::rotate(records.begin(), records.begin() + static_cast<std::ptrdiff_t>(i), records.end());
    break;
  }
  return records;
}

/// The last thing that a warp has recorded.
struct LastEvent {
  Kind kind = Kind::begin;
  Event event{};
  bool started = false, ended = false;  // has recorded anything; has left the kernel
  int slot = 0, block = 0, parity = 0;  // of the event, or of the range that it ends
};
LastEvent last_event(const std::vector<Record>& records);

/// "waits for k_arrived (wait_K), slot 2, block 14, parity 1".
std::string text_of(const LastEvent& last);

/// One line for each warp that has not ended, of the first CTAs that have such; empty when all
/// have.
std::string hang_report(const std::vector<Slice>& slices);

}  // namespace deuce::trace
