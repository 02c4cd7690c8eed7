// SPDX-License-Identifier: Apache-2.0
// The fault word: how a kernel tells the host about lengths or page ids that cannot be right.
// A small block of pinned host memory, mapped into the device, one per plan. The first fault wins
// until the host has read it; the kernel never waits and never reads out of bounds for it.
#pragma once

#include <cstdint>

#include "kernel/machine.h"

namespace deuce {

/// DEUCE_FAULT_* of the public header, for kernels.
enum class FaultCode : uint32_t {
  none = 0,
  kv_len = 1,
  page_id = 2,
  q_len = 3,
  last_page_len = 4,
  kv_start = 5,
  cache_row = 6
};

struct FaultRecord {
  int32_t request = 0, column = -1;            // column of the page table, or -1
  int64_t value = 0, lowest = 0, highest = 0;  // what was found, what was allowed
  uint32_t tag = 0;                            // the caller's mark
};

struct FaultWord {
  uint32_t claimed;  // 0 free; set by the thread that writes the record, cleared by the host
  uint32_t code;     // written last; the record is complete when it is not 0
  FaultRecord record;
};

/// Each thread. Writes the record unless another fault is pending.
template <class Machine>
DEUCE_DEVICE void report_fault(Machine& machine, FaultWord* word, FaultCode code,
                               const FaultRecord& record) {
  if constexpr (Machine::kTraces) machine.trace_instant({trace::Event::fault});
  if (word == nullptr || !machine.claim(&word->claimed)) return;
  machine.store_global(&word->record.request, record.request);
  machine.store_global(&word->record.column, record.column);
  machine.store_global(&word->record.value, record.value);
  machine.store_global(&word->record.lowest, record.lowest);
  machine.store_global(&word->record.highest, record.highest);
  machine.store_global(&word->record.tag, record.tag);
  machine.store_release_system(&word->code, static_cast<uint32_t>(code));
}

}  // namespace deuce
