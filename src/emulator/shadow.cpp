// SPDX-License-Identifier: Apache-2.0
// Shadow memory; see shadow.h.
#include "emulator/shadow.h"

#include <algorithm>

namespace deuce::emulator {
namespace {

constexpr uint32_t kColumns = 512;

bool ordered(const Mark& mark, const Clock& clock) {
  return clock.k[static_cast<std::size_t>(mark.component)] >= mark.epoch;
}

/// Whether a tcgen05 operation of another thread lacks the fences that order it before this one.
bool lacks_tensor_fence(const Mark& mark, const Accessor& by) {
  if (by.tensor_order == nullptr || !is_tensor_component(mark.component)) return false;
  const bool both_streams =
      mark.component >= stream_component(0) && by.component >= stream_component(0);
  const bool same_warp =
      both_streams || (mark.component < stream_component(0) && by.component < stream_component(0) &&
                       mark.component % kMaxWarps == by.component % kMaxWarps);
  return !same_warp && (*by.tensor_order)[tensor_index(mark.component)] < mark.epoch;
}

/// Which 4-byte words of cell `cell` the range touches.
uint8_t words_of(uint32_t cell, uint32_t address, uint32_t bytes) {
  const uint32_t begin = std::max(cell * 16, address) - cell * 16;
  const uint32_t end = std::min(cell * 16 + 16, address + bytes) - cell * 16;
  const uint32_t first = begin / 4, last = (end + 3) / 4;
  return static_cast<uint8_t>(((1u << last) - 1u) & ~((1u << first) - 1u));
}

}  // namespace

Shadow::Shadow(uint32_t shared_bytes, bool watches) : watches_(watches) {
  if (!watches) return;
  shared_.resize((shared_bytes + 15) / 16);
  tensor_.resize(std::size_t{4} * kColumns);
  records_.resize(kRecords);
}

uint32_t Shadow::add_record(const AccessRecord& record) {
  if (!watches_) return 0;
  records_[next_record_ % kRecords] = record;
  return next_record_++;
}

void Shadow::note_read(Cell& cell, uint8_t words, const Accessor& by) {
  const Mark mark{by.epoch, by.record, by.component, words};
  for (Mark& read : cell.reads) {
    if (read.component == by.component || read.component < 0) {
      const auto merged = static_cast<uint8_t>(read.component < 0 ? words : read.words | words);
      read = mark;
      read.words = merged;
      return;
    }
  }
  std::vector<Mark>& more = more_reads_[&cell];
  for (Mark& read : more) {
    if (read.component == by.component) {
      read = mark;
      return;
    }
  }
  more.push_back(mark);
}

// The bytes stay, so neither readers nor other threads' stores of them are disturbed. False where
// the cell holds a copy, which even equal bytes may not meet without order.
bool Shadow::note_echo(Cell& cell, uint8_t words, const Accessor& by) {
  if (cell.write.component >= kMaxWarps && !ordered(cell.write, *by.clock)) return false;
  std::vector<Mark>& marks = echoes_[&cell];
  const auto known = std::find_if(marks.begin(), marks.end(),
                                  [&](const Mark& mark) { return mark.component == by.component; });
  const Mark mark{by.epoch, by.record, by.component, words};
  if (known == marks.end()) {
    marks.push_back(mark);
  } else {
    *known = mark;
  }
  return true;
}

/// Of a read that is not ordered behind the last store: none behind a store of the same bytes that
/// is ordered before it and visible to it.
Conflict Shadow::behind_own_echo(const Cell& cell, const Accessor& by) const {
  Conflict conflict = Conflict::read_after_write;
  const auto found = echoes_.find(&cell);
  if (found == echoes_.end()) return conflict;
  for (const Mark& mark : found->second) {
    const auto warp = static_cast<std::size_t>(mark.component);
    if (!ordered(mark, *by.clock) || by.clock->c[warp] < mark.epoch) continue;
    if (!by.async_proxy || by.clock->f[warp] >= mark.epoch) return Conflict::none;
    conflict = Conflict::no_proxy_fence;
  }
  return conflict;
}

Conflict Shadow::read(Cell& cell, uint8_t words, const Accessor& by, uint32_t* other) {
  const Mark& last = cell.write;
  Conflict conflict = Conflict::none;
  *other = last.record;
  if (last.component < 0) {
    conflict = Conflict::uninitialised;
  } else if ((last.words & words) != 0) {
    if (!ordered(last, *by.clock)) {
      conflict = Conflict::read_after_write;
    } else if (last.component < kMaxWarps) {  // a generic write
      const auto warp = static_cast<std::size_t>(last.component);
      if (by.generic_proxy && by.clock->c[warp] < last.epoch) conflict = Conflict::not_visible;
      if (by.async_proxy && by.clock->f[warp] < last.epoch) conflict = Conflict::no_proxy_fence;
    } else if (lacks_tensor_fence(last, by)) {
      conflict = Conflict::no_tensor_fence;
    }
  }
  if (conflict == Conflict::read_after_write && last.component < kMaxWarps && !echoes_.empty()) {
    conflict = behind_own_echo(cell, by);
  }
  note_read(cell, words, by);
  return conflict;
}

Conflict Shadow::write(Cell& cell, uint8_t words, const Accessor& by, uint32_t* other) {
  Conflict conflict = Conflict::none;
  if (by.echo && note_echo(cell, words, by)) return conflict;
  const auto clashes = [&](const Mark& mark) {
    return mark.component >= 0 && (mark.words & words) != 0 && !ordered(mark, *by.clock);
  };
  // What is ordered may still lack a fence: of two threads' tcgen05 operations, or of the proxies.
  const auto judge_fences = [&](const Mark& mark, bool is_read) {
    if (conflict != Conflict::none || mark.component < 0 || (mark.words & words) == 0) return;
    if (lacks_tensor_fence(mark, by)) {
      conflict = Conflict::no_tensor_fence;
    } else if (is_read && by.async_proxy && mark.component < kMaxWarps &&
               by.clock->f[static_cast<std::size_t>(mark.component)] < mark.epoch) {
      conflict = Conflict::no_read_fence;
    } else {
      return;
    }
    *other = mark.record;
  };
  if (clashes(cell.write)) {
    conflict = Conflict::write_after_write;
    *other = cell.write.record;
  }
  if (by.async_proxy && cell.write.component >= 0 && cell.write.component < kMaxWarps &&
      (cell.write.words & words) != 0 && conflict == Conflict::none &&
      by.clock->f[static_cast<std::size_t>(cell.write.component)] < cell.write.epoch) {
    conflict = Conflict::no_proxy_fence;
    *other = cell.write.record;
  }
  judge_fences(cell.write, false);
  for (Mark& read : cell.reads) {
    if (clashes(read)) {
      conflict = Conflict::write_after_read;
      *other = read.record;
    }
    judge_fences(read, true);
    if (words == 15) read.component = -1;
  }
  if (!more_reads_.empty()) {
    const auto more = more_reads_.find(&cell);
    if (more != more_reads_.end()) {
      for (const Mark& read : more->second) {
        judge_fences(read, true);
        if (!clashes(read)) continue;
        conflict = Conflict::write_after_read;
        *other = read.record;
      }
      if (words == 15) more_reads_.erase(more);
    }
  }
  if (!echoes_.empty()) {
    const auto found = echoes_.find(&cell);
    if (found != echoes_.end()) {
      for (const Mark& echo : found->second) {
        if (clashes(echo)) {
          conflict = Conflict::write_after_write;
        } else if (by.async_proxy &&
                   by.clock->f[static_cast<std::size_t>(echo.component)] < echo.epoch) {
          conflict = Conflict::no_proxy_fence;
        } else {
          continue;
        }
        *other = echo.record;
      }
      echoes_.erase(found);
    }
  }
  const bool merges = cell.write.component == by.component;
  const auto merged = static_cast<uint8_t>(merges ? cell.write.words | words : words);
  cell.write = Mark{by.epoch, by.record, by.component, merged};
  return conflict;
}

void Shadow::watch_words(uint32_t address, uint32_t bytes) {
  if (!watches_) return;
  words_first_ = address / 16;
  words_.resize(std::size_t{4} * ((address + bytes + 15) / 16 - words_first_));
}

template <class F>
void Shadow::each_cell(uint32_t address, uint32_t bytes, F&& visit) {
  for (uint32_t cell = address / 16; cell <= (address + bytes - 1) / 16; ++cell) {
    const uint8_t words = words_of(cell, address, bytes);
    const std::size_t first = std::size_t{4} * (cell - words_first_);
    if (cell < words_first_ || first >= words_.size()) {
      visit(shared_[cell], words, cell * 16);
      continue;
    }
    for (uint32_t word = 0; word < 4; ++word) {
      if ((words >> word & 1u) != 0) visit(words_[first + word], uint8_t{15}, cell * 16 + word * 4);
    }
  }
}

Clash Shadow::read_shared(uint32_t address, uint32_t bytes, const Accessor& by) {
  Clash clash;
  if (!watches_) return clash;
  each_cell(address, bytes, [&](Cell& cell, uint8_t words, uint32_t at) {
    uint32_t other = 0;
    const Conflict conflict = read(cell, words, by, &other);
    if (conflict > clash.conflict) clash = {conflict, other, at};
  });
  return clash;
}

Clash Shadow::write_shared(uint32_t address, uint32_t bytes, const Accessor& by) {
  Clash clash;
  if (!watches_) return clash;
  each_cell(address, bytes, [&](Cell& cell, uint8_t words, uint32_t at) {
    uint32_t other = 0;
    const Conflict conflict = write(cell, words, by, &other);
    if (conflict > clash.conflict) clash = {conflict, other, at};
  });
  return clash;
}

Clash Shadow::read_tensor(uint32_t quarters, uint32_t first, uint32_t count, const Accessor& by) {
  Clash clash;
  if (!watches_) return clash;
  for (uint32_t q = 0; q < 4; ++q) {
    if ((quarters >> q & 1u) == 0) continue;
    for (uint32_t i = q * kColumns + first; i < q * kColumns + first + count; ++i) {
      uint32_t other = 0;
      const Conflict conflict = read(tensor_[i], 15, by, &other);
      if (conflict > clash.conflict) clash = {conflict, other, i};
    }
  }
  return clash;
}

Clash Shadow::write_tensor(uint32_t quarters, uint32_t first, uint32_t count, const Accessor& by) {
  Clash clash;
  if (!watches_) return clash;
  for (uint32_t q = 0; q < 4; ++q) {
    if ((quarters >> q & 1u) == 0) continue;
    for (uint32_t i = q * kColumns + first; i < q * kColumns + first + count; ++i) {
      uint32_t other = 0;
      const Conflict conflict = write(tensor_[i], 15, by, &other);
      if (conflict > clash.conflict) clash = {conflict, other, i};
    }
  }
  return clash;
}

void Shadow::clear_tensor() { std::fill(tensor_.begin(), tensor_.end(), Cell{}); }

const AccessRecord* Shadow::writer(uint32_t address) const {
  if (!watches_) return nullptr;
  const Mark& mark = shared_[address / 16].write;
  return mark.component < 0 || !remembers(mark.record) ? nullptr
                                                       : &records_[mark.record % kRecords];
}

Clash Shadow::free_tensor(const Clock& clock) const {
  for (uint32_t i = 0; i < tensor_.size(); ++i) {
    const Cell& cell = tensor_[i];
    const auto open = [&](const Mark& mark) {
      return mark.component >= 0 && !ordered(mark, clock);
    };
    if (open(cell.write)) return {Conflict::write_after_write, cell.write.record, i};
    for (const Mark& read : cell.reads) {
      if (open(read)) return {Conflict::write_after_read, read.record, i};
    }
  }
  return {};
}

}  // namespace deuce::emulator
